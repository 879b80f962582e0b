//! Which record is that of a job, by the ids that users know.

use std::path::PathBuf;

use super::{Last, Record, RecordName, Records};
use crate::{
    error::Error,
    job::id::{JobId, JobRef, Recorded},
    snapshot::Job,
};

/// Jobs that are named where several are meant.
const MOST_CANDIDATES: usize = 100;

/// A record that was found, and what it tells.
#[derive(Debug)]
pub struct Found {
    /// Its name.
    pub name: RecordName,
    /// The last whole line.
    pub last: Last,
}

/// The record of a run of what is wanted, 0 the latest one, that `user` may be told of; `None` is whoever runs this process.
///
/// Records are named by the raw id. By another all are searched, which fails as [`Error::RecordDenied`] for who may not list them.
pub fn find(records: &Records, wanted: &Recorded, run: u32, user: Option<u32>) -> Result<Found, Error> {
    let named = match wanted {
        Recorded::Job(id) if matches!(id.job, JobRef::Raw(_) | JobRef::Sluid(_)) => Some(id.job.to_string()),
        Recorded::Job(_) => None,
        Recorded::Cgroup(name) => Some(name.clone()),
    };
    if let Some(job) = named
        && let Some(record) = records.record(RecordName { job, run })?
    {
        return told(records, wanted, &record, user);
    }
    match wanted {
        Recorded::Job(id) => search(records, wanted, &id.job, run, user),
        Recorded::Cgroup(_) => Err(none(wanted, run)),
    }
}

/// What a record tells, to a user who may know.
fn told(records: &Records, wanted: &Recorded, record: &Record, user: Option<u32>) -> Result<Found, Error> {
    let file = record.name.file();
    if !record.is_for(user) {
        return Err(denied(records.path().join(file)));
    }
    match record.last() {
        Ok(last) => Ok(Found {
            name: record.name.clone(),
            last,
        }),
        Err(why) => Err(Error::NoRecord {
            what: wanted.to_string(),
            why: format!("{file}: {why}"),
        }),
    }
}

/// Looks at what all records tell.
fn search(
    records: &Records,
    wanted: &Recorded,
    job: &JobRef,
    run: u32,
    user: Option<u32>,
) -> Result<Found, Error> {
    let (mut found, mut parts) = (Vec::new(), Vec::new());
    for name in records.names()?.into_iter().filter(|name| name.run == run) {
        let Ok(Some(record)) = records.record(name) else {
            continue;
        };
        let last = if record.is_for(user) {
            record.last()
        } else {
            continue;
        };
        let Ok(last) = last else { continue };
        let place = match last
            .snapshot
            .job
            .as_ref()
            .map_or(Match::None, |told| matches(job, told))
        {
            Match::Is => &mut found,
            Match::IsPart => &mut parts,
            Match::None => continue,
        };
        let name = record.name;
        place.push(Found { name, last });
    }
    if found.is_empty() {
        found = parts;
    }
    match (found.pop(), found.is_empty()) {
        (Some(one), true) => Ok(one),
        (Some(one), false) => {
            found.push(one);
            Err(several(wanted, &found))
        }
        (None, _) => Err(none(wanted, run)),
    }
}

/// Whether a job is what is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// It is the job.
    Is,
    /// It is of the array or the heterogeneous job that is named.
    IsPart,
    /// It is another.
    None,
}

/// Whether `job` is what `wanted` names.
pub fn matches(wanted: &JobRef, job: &Job) -> Match {
    let component = job.het_job_id.zip(job.het_job_offset);
    let task = job.array_job_id.zip(job.array_task_id);
    let (is, is_part) = match wanted {
        JobRef::Raw(id) => (
            job.job_id == *id,
            [job.array_job_id, job.het_job_id].contains(&Some(*id)),
        ),
        JobRef::ArrayTask { array, task: wanted } => (task == Some((*array, *wanted)), false),
        JobRef::ArrayTasks { array, tasks } => (
            false,
            task.is_some_and(|(of, task)| of == *array && tasks.contains(task)),
        ),
        JobRef::Component { leader, offset } => (component == Some((*leader, *offset)), false),
        JobRef::Sluid(sluid) => (job.sluid == Some(sluid.to_string()), false),
    };
    match (is, is_part) {
        (true, _) => Match::Is,
        (false, true) => Match::IsPart,
        (false, false) => Match::None,
    }
}

fn several(wanted: &Recorded, found: &[Found]) -> Error {
    let shown = |found: &Found| {
        let id = found.last.snapshot.job_id.as_deref().unwrap_or(&found.name.job);
        id.parse()
            .map_or(found.name.job.clone(), |id: JobId| id.to_string())
    };
    let mut candidates: Vec<String> = found.iter().map(shown).collect();
    candidates.sort_unstable();
    candidates.truncate(MOST_CANDIDATES);
    Error::JobSeveral {
        what: format!("{wanted} has {} records here", found.len()),
        candidates,
    }
}

/// That others may not read a record.
fn denied(path: PathBuf) -> Error {
    Error::RecordDenied {
        action: "read",
        path,
        why: "only the job's user and root may".to_owned(),
    }
}

fn none(wanted: &Recorded, run: u32) -> Error {
    let why = match run {
        0 => "it has not run on this host, or its record was removed by age; `sw-bpf list` tells which there are".to_owned(),
        run => format!("there is none of an earlier run {run}; `sw-bpf list` tells which there are"),
    };
    Error::NoRecord {
        what: wanted.to_string(),
        why,
    }
}
