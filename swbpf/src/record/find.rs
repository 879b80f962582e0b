//! Which record is that of a job, by the ids that users know.

use std::{collections::BTreeSet, sync::Arc};

use super::{Brief, Index, Last, Match, Record, RecordName, Records, Walk, dir::earlier_runs};
use crate::{
    error::Error,
    job::id::{JobId, JobRef, Recorded},
    snapshot::Entry,
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
    if let Some(found) = named(records, wanted, run, user) {
        return found;
    }
    let mut index = Index::new(0);
    let mut search = Search::begin(records.clone(), wanted, run, user, &mut index)?;
    search.go_on(&mut index, || false);
    search.end()
}

/// The same where a record has the name of what is wanted, or none can have another; `None` where all have to be searched.
pub fn named(
    records: &Records,
    wanted: &Recorded,
    run: u32,
    user: Option<u32>,
) -> Option<Result<Found, Error>> {
    let job = match wanted {
        Recorded::Job(id) if matches!(id.job, JobRef::Raw(_) | JobRef::Sluid(_)) => id.job.to_string(),
        Recorded::Job(_) => return None,
        Recorded::Cgroup(name) => name.clone(),
    };
    match records.record(RecordName {
        job: job.clone(),
        run,
    }) {
        Ok(Some(record)) if record.is_for(user) => Some(told(wanted, &record)),
        Err(error) if user.is_none() => Some(Err(error)),
        _ if run != 0 && is_visible(records, &job, 0, user) => {
            let runs = earlier_runs().filter(|run| is_visible(records, &job, *run, user));
            Some(Err(no_run(wanted, run, &runs.collect())))
        }
        // One that this user may not know of is as none, also by how long that takes to say.
        _ if matches!(wanted, Recorded::Job(_)) => None,
        _ => Some(Err(none(wanted, run))),
    }
}

/// Whether there is a record of this run of a job that this user may be told of.
fn is_visible(records: &Records, job: &str, run: u32, user: Option<u32>) -> bool {
    let job = job.to_owned();
    let record = records.record(RecordName { job, run });
    record.is_ok_and(|record| record.is_some_and(|record| record.is_for(user)))
}

/// What a record tells, to a user who may know.
fn told(wanted: &Recorded, record: &Record) -> Result<Found, Error> {
    let file = record.name.file();
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

/// A search of all records, which is made a part at a time.
#[derive(Debug)]
pub struct Search {
    walk: Walk,
    wanted: Recorded,
    run: u32,
    user: Option<u32>,
    found: Vec<Arc<Brief>>,
    /// The other runs of what is wanted, 0 the latest.
    runs: BTreeSet<u32>,
    /// Those of a part of what is wanted.
    parts: Vec<Arc<Brief>>,
}

impl Search {
    /// Begins one, as [`find`] does.
    pub fn begin(
        records: Records,
        wanted: &Recorded,
        run: u32,
        user: Option<u32>,
        index: &mut Index,
    ) -> Result<Self, Error> {
        Ok(Self {
            walk: Walk::begin(records, None, index)?,
            wanted: wanted.clone(),
            run,
            user,
            found: Vec::new(),
            runs: BTreeSet::new(),
            parts: Vec::new(),
        })
    }

    /// Goes on until it is done, which is then true, or it is time for others.
    pub fn go_on(&mut self, index: &mut Index, is_time: impl Fn() -> bool) -> bool {
        let Recorded::Job(JobId { job, .. }) = &self.wanted else {
            return true;
        };
        while !is_time() {
            let Some(brief) = self.walk.next(index, None) else {
                return true;
            };
            let ids = brief.ids.filter(|_| brief.is_for(self.user));
            let Some(RecordName { run, .. }) = RecordName::of_file(&brief.file) else {
                continue;
            };
            match ids.map(|ids| ids.matches(job)) {
                Some(Match::Is) if run == self.run => self.found.push(brief),
                Some(Match::Is) => drop(self.runs.insert(run)),
                Some(Match::IsPart) if run == self.run => self.parts.push(brief),
                Some(Match::IsPart | Match::None) | None => {}
            }
        }
        false
    }

    /// What was found.
    pub fn end(self) -> Result<Found, Error> {
        let found = if self.found.is_empty() {
            self.parts
        } else {
            self.found
        };
        let [one] = &found[..] else {
            return Err(match found.len() {
                0 if self.run != 0 && !self.runs.is_empty() => no_run(&self.wanted, self.run, &self.runs),
                0 => none(&self.wanted, self.run),
                _ => several(&self.wanted, found),
            });
        };
        let records = self.walk.records();
        let record = RecordName::of_file(&one.file).map(|name| records.record(name));
        match record {
            Some(Ok(Some(record))) if record.is_for(self.user) => told(&self.wanted, &record),
            Some(Err(error)) if self.user.is_none() => Err(error),
            // It has gone meanwhile, or is another's by now.
            _ => Err(none(&self.wanted, self.run)),
        }
    }
}

fn several(wanted: &Recorded, mut found: Vec<Arc<Brief>>) -> Error {
    let what = format!("{wanted} has {} records here", found.len());
    found.sort_unstable_by(|a, b| a.order(b));
    let shown = |brief: &Arc<Brief>| {
        let entry: Option<Entry> = serde_json::from_str(brief.entry.get()).ok();
        let id = entry.and_then(|entry| entry.job_id?.parse().ok());
        id.map_or(brief.file.to_string(), |id: JobId| id.to_string())
    };
    let mut candidates: Vec<String> = found.iter().take(MOST_CANDIDATES).map(shown).collect();
    candidates.sort_unstable();
    Error::JobSeveral { what, candidates }
}

fn none(wanted: &Recorded, run: u32) -> Error {
    let why = match run {
        0 => "it has not run on this host, or its record was removed by age; `sw-bpf list` tells which there are".to_owned(),
        run => format!(
            "there is none of an earlier run {run}, or it was removed by age; `sw-bpf list` tells which there are"
        ),
    };
    Error::NoRecord {
        what: wanted.to_string(),
        why,
    }
}

/// That there is no such run, and which there are, 0 the latest.
fn no_run(wanted: &Recorded, run: u32, runs: &BTreeSet<u32>) -> Error {
    let earlier: Vec<String> = { runs.iter() }
        .filter(|run| **run != 0)
        .map(|run| format!("--run {run}"))
        .collect();
    let earlier = match &earlier[..] {
        [] => "only the latest is recorded, which is told without --run".to_owned(),
        earlier => format!("there are the latest, without --run, and {}", earlier.join(", ")),
    };
    let why = format!("there is no run {run} of it here: {earlier}");
    Error::NoSuchRun(wanted.to_string(), why)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn which_runs_there_are_is_told() {
        let temp = tempfile::tempdir().expect("a directory");
        let begin = |name: &str| fs::write(temp.path().join(name), "").expect("written");
        let records = Records::open(temp.path()).expect("there");
        let told = |what: &str, user| {
            let wanted = what.parse().expect("an id");
            find(&records, &wanted, 7, user).expect_err("none").to_string()
        };
        begin("8.jsonl");
        assert!(told("8", None).ends_with("only the latest is recorded, which is told without --run"));
        for name in ["8.1.jsonl", "8.3.jsonl", "cgroup-a.jsonl"] {
            begin(name);
        }
        assert!(told("8", None).ends_with("and --run 1, --run 3"));
        assert!(told("cgroup-a", None).contains("there is no run 7 of it here"));
        // Whoever may not know of them is told nothing of them.
        let other = told("8", Some(4711));
        assert!(other.contains("none of an earlier run 7"), "{other}");
        assert!(told("9", None).contains("none of an earlier run 7"));
    }
}
