//! Which records there are, and what each tells in short.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{
    Record, RecordName, Records,
    users::{Names, Whose},
};
use crate::{
    error::Error,
    snapshot::{Entry, JobState, Kind},
};

/// Which records are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Those that cover this moment, or a later one.
    pub since: Option<Timestamp>,
    /// Those of this user.
    pub user: Option<Whose>,
    /// Those in this state.
    pub state: Option<JobState>,
}

/// On whose behalf records are looked at, and what is known beside them.
#[derive(Debug, Clone, Copy, Default)]
pub struct View<'a> {
    /// The user who is to be told; `None` is whoever runs this process.
    pub user: Option<u32>,
    /// Names of the files that are being written, where whoever asks knows them all.
    pub running: Option<&'a BTreeSet<String>>,
}

/// The records that were asked for, in no order. One that tells nothing is there with the reason.
pub fn list(records: &Records, filter: &Filter, view: View<'_>) -> Result<Vec<Entry>, Error> {
    let mut users = Names::default();
    let mut entries = Vec::new();
    for name in records.names()? {
        let is_running = view.running.is_some_and(|running| running.contains(&name.file()));
        let is_old = |at: Timestamp| filter.since.is_some_and(|since| at < since);
        // Most records are old: they need not be opened.
        if !is_running && records.written_at(&name).is_none_or(is_old) {
            continue;
        }
        let file = name.file();
        let run = name.run;
        let entry = match records.record(name) {
            // It has gone meanwhile, or is another's.
            Ok(None) => continue,
            Ok(Some(record)) if !record.is_for(view.user) => continue,
            Ok(Some(record)) => entry(&record, view, &mut users),
            Err(_) if view.user.is_some() => continue,
            Err(why) => Entry::unread(file, run, &why.to_string()),
        };
        if is_asked_for(&entry, filter) {
            entries.push(entry);
        }
    }
    Ok(entries)
}

fn entry(record: &Record, view: View<'_>, users: &mut Names) -> Entry {
    let RecordName { run, .. } = record.name;
    let file = record.name.file();
    let is_running = view.running.map(|running| running.contains(&file));
    let mut entry = match record.last() {
        Ok(last) => {
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
    entry
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

fn is_asked_for(entry: &Entry, filter: &Filter) -> bool {
    let to = entry.to.as_ref().and_then(|to| to.parse::<Timestamp>().ok());
    let is_old = |since| entry.state != JobState::Running && to.is_some_and(|to| to < since);
    let is_other = |user: &Whose| !user.is(entry.uid, entry.user.as_deref());
    !filter.since.is_some_and(is_old)
        && !filter.user.as_ref().is_some_and(is_other)
        && filter.state.is_none_or(|state| state == entry.state)
}
