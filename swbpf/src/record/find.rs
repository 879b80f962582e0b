//! Which record is that of a job, by the ids that users know.

use std::sync::Arc;

use super::{Brief, Index, Last, Match, Record, RecordName, Records, Walk};
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
    match records.record(RecordName { job, run }) {
        Ok(Some(record)) if record.is_for(user) => Some(told(wanted, &record)),
        Err(error) if user.is_none() => Some(Err(error)),
        // One that this user may not know of is as none, also by how long that takes to say.
        _ if matches!(wanted, Recorded::Job(_)) => None,
        _ => Some(Err(none(wanted, run))),
    }
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
            let is_of_run = RecordName::of_file(&brief.file).is_some_and(|name| name.run == self.run);
            match ids.filter(|_| is_of_run).map(|ids| ids.matches(job)) {
                Some(Match::Is) => self.found.push(brief),
                Some(Match::IsPart) => self.parts.push(brief),
                Some(Match::None) | None => {}
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
        run => format!("there is none of an earlier run {run}; `sw-bpf list` tells which there are"),
    };
    Error::NoRecord {
        what: wanted.to_string(),
        why,
    }
}
