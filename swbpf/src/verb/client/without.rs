//! What is told where the records are read without the agent.

use std::{os::unix::ffi::OsStrExt, path::Path};

use super::{WORDS, records::has_record};
use crate::{
    cli::{self, DIR},
    error::Error,
    out::escape,
    record::{self, Records},
};

/// Where was looked: in the directory that was named, else in the usual one, since no agent answered.
pub fn looked_at(socket: &Path, named: Option<&Path>) -> String {
    let tail = |path: &Path| escape::tail(path.as_os_str().as_bytes(), WORDS);
    match named {
        Some(dir) => format!("what is in {} was looked at", tail(dir)),
        None => format!(
            "no agent answered at {}: what is in {DIR} was looked at (`--socket PATH` and `--records DIR` name others)",
            tail(socket)
        ),
    }
}

/// The failure of reading records, with where was looked.
pub fn without_agent(error: Error, socket: &Path, named: Option<&Path>) -> Error {
    match (error, named) {
        (Error::NoRecord { what, why }, _) => Error::NoRecord {
            what,
            why: format!("{why}; {}", looked_at(socket, named)),
        },
        (Error::RecordDenied { action, path, why }, None) => Error::RecordDenied {
            action,
            path,
            why: format!(
                "{why}; no agent answered at {}, which would tell each user of their own jobs: ask the administrator to start it",
                escape::tail(socket.as_os_str().as_bytes(), WORDS)
            ),
        },
        (error, _) => error,
    }
}

/// That a job cannot be measured, with where to read of it, if it has a record on this host.
pub async fn or_recorded(error: Error, socket: &Path, named: &cli::Target) -> Error {
    let cli::Target::Job { id, .. } = named else {
        return error;
    };
    if !matches!(error, Error::JobEnded { .. } | Error::NoSuchJob { .. }) {
        return error;
    }
    let job = id.job.to_string();
    let is_recorded = match has_record(socket, &job).await {
        Some(is_recorded) => is_recorded,
        None => read(&job),
    };
    match error {
        Error::JobEnded { id, how, .. } => Error::JobEnded {
            id,
            how,
            has_record: is_recorded,
        },
        Error::NoSuchJob { id, why } if is_recorded => Error::NoSuchJob {
            why: format!("{why}; `sw-bpf show {job}` tells what is recorded of it"),
            id,
        },
        error => error,
    }
}

/// Whether this user may read a record of it.
fn read(job: &str) -> bool {
    let Ok(wanted) = job.parse() else { return false };
    Records::open(Path::new(DIR)).is_ok_and(|records| record::find(&records, &wanted, 0, None).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_was_looked_is_told_with_each_failure() {
        let socket = Path::new("/run/x/agent.sock");
        let none = || Error::NoRecord {
            what: "job 7".to_owned(),
            why: "it has not run".to_owned(),
        };
        let told = without_agent(none(), socket, None).to_string();
        for part in ["it has not run", "/run/x/agent.sock", DIR] {
            assert!(told.contains(part), "{told}");
        }
        let told = without_agent(none(), socket, Some(Path::new("/r"))).to_string();
        assert!(told.contains("/r") && !told.contains("agent"), "{told}");
        let denied = Error::RecordDenied {
            action: "list",
            path: DIR.into(),
            why: "only root may".to_owned(),
        };
        let told = without_agent(denied, socket, None).to_string();
        assert!(
            told.contains("only root may") && told.contains("ask the administrator"),
            "{told}"
        );
    }

    #[tokio::test]
    async fn what_is_not_of_a_job_that_has_gone_stays_as_it_is() {
        let named = cli::Target::Job {
            id: "7".parse().expect("an id"),
            node: None,
        };
        let error = or_recorded(Error::NoCgroups, Path::new("/none"), &named).await;
        assert!(matches!(error, Error::NoCgroups));
        let ended = Error::JobEnded {
            id: "4294967000".to_owned(),
            how: "COMPLETED".to_owned(),
            has_record: false,
        };
        let named = cli::Target::Job {
            id: "4294967000".parse().expect("an id"),
            node: None,
        };
        let told = or_recorded(ended, Path::new("/none"), &named).await.to_string();
        assert!(told.contains("`sacct -j 4294967000`"), "{told}");
    }
}
