//! What one record tells in short: as it is listed, and what it is found by.

use std::cmp::Ordering;

use jiff::Timestamp;
use serde_json::value::{RawValue, to_raw_value};

use super::{Ids, Record, RecordName, users::Names};
use crate::snapshot::{Entry, JobState, Kind};

/// One record in short.
#[derive(Debug)]
pub struct Brief {
    /// Name of its file.
    pub file: Box<str>,
    /// The users beside root who may be told.
    readers: Box<[u32]>,
    /// Whether it was being written, where that was known.
    is_running: Option<bool>,
    /// The ids of its job, where Slurm has told them.
    pub ids: Option<Ids>,
    /// Number of its user, where that is known.
    pub uid: Option<u32>,
    /// Name of its user, where that is known.
    pub user: Option<Box<str>>,
    /// Whether the job runs.
    pub state: JobState,
    from: Option<Timestamp>,
    /// Last moment covered.
    pub to: Option<Timestamp>,
    /// The [`Entry`] of a list.
    pub entry: Box<RawValue>,
}

impl Brief {
    /// What its last line tells. `is_running`: whether it is being written, where that is known.
    pub fn of(record: &Record, is_running: Option<bool>, users: &mut Names) -> Option<Self> {
        let RecordName { run, .. } = record.name;
        let file = record.name.file();
        let mut ids = None;
        let mut entry = match record.last() {
            Ok(last) => {
                ids = last.snapshot.job.as_ref().map(Ids::of);
                let mut entry = Entry::of(file, run, &last.snapshot);
                let (state, why) = state(last.snapshot.kind, is_running);
                entry.set_state(state, why);
                if let Some(note) = last.note {
                    entry.unknown.insert("record".to_owned(), note);
                }
                entry
            }
            Err(why) => {
                let mut entry = Entry::unread(file, run, &why.to_string());
                if is_running == Some(true) {
                    entry.set_state(JobState::Running, "");
                }
                entry
            }
        };
        match record.readers[..] {
            [uid] => entry.set_user(Ok(uid), users.of(uid)),
            [] => entry.set_user(Err("root alone may read the record"), None),
            _ => entry.set_user(Err("several users may read the record"), None),
        }
        Self::new(&entry, record.readers.clone(), is_running, ids)
    }

    /// A record that cannot be opened, which root alone is told of.
    pub fn unread(file: String, run: u32, why: &str) -> Option<Self> {
        Self::new(&Entry::unread(file, run, why), Vec::new(), None, None)
    }

    fn new(entry: &Entry, readers: Vec<u32>, is_running: Option<bool>, ids: Option<Ids>) -> Option<Self> {
        let moment = |told: &Option<String>| told.as_ref()?.parse().ok();
        Some(Self {
            file: entry.record.as_str().into(),
            readers: readers.into(),
            is_running,
            ids,
            uid: entry.uid,
            user: entry.user.as_deref().map(Box::from),
            state: entry.state,
            from: moment(&entry.from),
            to: moment(&entry.to),
            // A structure of plain values cannot fail to be written.
            entry: to_raw_value(entry).ok()?,
        })
    }

    /// Whether it tells the same where it is being written, or is not, or that is not asked.
    pub fn stands(&self, is_running: Option<bool>) -> bool {
        self.state == JobState::Ended || is_running.is_none() || self.is_running == is_running
    }

    /// Whether this user may be told of it; `None` is whoever has opened it.
    pub fn is_for(&self, user: Option<u32>) -> bool {
        user.is_none_or(|uid| uid == 0 || self.readers.contains(&uid))
    }

    /// By their begin; before them those of which that is not known.
    pub fn order(&self, other: &Self) -> Ordering {
        (self.from, &self.file).cmp(&(other.from, &other.file))
    }

    /// About how much memory it takes.
    pub fn bytes(&self) -> usize {
        let user = self.user.as_ref().map_or(0, |user| user.len());
        size_of::<Self>() + self.file.len() + size_of_val(&*self.readers) + user + self.entry.get().len()
    }
}

/// Whether a job runs, by its last line and whether that is being written.
pub fn state(last: Kind, is_running: Option<bool>) -> (JobState, &'static str) {
    match (last, is_running) {
        (Kind::Summary | Kind::Once, _) => (JobState::Ended, ""),
        (Kind::Progress, Some(true)) => (JobState::Running, ""),
        (Kind::Progress, Some(false)) => (
            JobState::Unknown,
            "its record has no summary, and is not being written: the agent did not see its end",
        ),
        (Kind::Progress, None) => (
            JobState::Unknown,
            "its record has no summary: it runs, or the agent did not see its end",
        ),
    }
}
