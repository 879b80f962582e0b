//! All records of a directory, one after another, each read only where it has changed.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;

use super::{
    Brief, Index, RecordName, Records,
    index::{Names as Files, Stamp},
    users::Names,
};
use crate::error::Error;

/// Goes through the records that were there at its begin.
#[derive(Debug)]
pub struct Walk {
    records: Records,
    files: Files,
    /// How many bytes of them are behind it.
    at: usize,
    /// Names of the files that are being written, where they are all known.
    running: Option<BTreeSet<String>>,
    users: Names,
}

impl Walk {
    /// Begins with the first.
    pub fn begin(
        records: Records,
        running: Option<BTreeSet<String>>,
        index: &mut Index,
    ) -> Result<Self, Error> {
        let files = index.names(&records)?;
        Ok(Self {
            records,
            files,
            at: 0,
            running,
            users: Names::default(),
        })
    }

    /// The directory.
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// The next that was written to `since` then, or is being written; `None` where there is none any more.
    pub fn next(&mut self, index: &mut Index, since: Option<Timestamp>) -> Option<Arc<Brief>> {
        let files = Arc::clone(&self.files);
        loop {
            let (file, _) = files.get(self.at..)?.split_once('\n')?;
            self.at += file.len() + 1;
            if let Some(brief) = self.brief(file, index, since) {
                return Some(brief);
            }
        }
    }

    /// What a record tells; `None` where it has gone meanwhile, or is too old.
    fn brief(&mut self, file: &str, index: &mut Index, since: Option<Timestamp>) -> Option<Arc<Brief>> {
        let is_running = self.running.as_ref().map(|running| running.contains(file));
        let stat = self.records.stat(file)?;
        let is_old = |since: Timestamp| {
            let nanosecond = i32::try_from(stat.st_mtime_nsec).unwrap_or(0);
            Timestamp::new(stat.st_mtime, nanosecond).is_ok_and(|at| at < since)
        };
        // Most records are old: they need not be opened.
        if is_running != Some(true) && since.is_some_and(is_old) {
            return None;
        }
        match index.get(file, Stamp::of(&stat)) {
            Some(brief) if brief.stands(is_running) => Some(Arc::clone(brief)),
            _ => self.read(file, is_running, index),
        }
    }

    fn read(&mut self, file: &str, is_running: Option<bool>, index: &mut Index) -> Option<Arc<Brief>> {
        let name = RecordName::of_file(file)?;
        let run = name.run;
        match self.records.record(name) {
            Ok(None) => None,
            Ok(Some(record)) => {
                let stamp = Stamp::of(&record.stat);
                let brief = Arc::new(Brief::of(&record, is_running, &mut self.users)?);
                index.keep(&brief, stamp, Timestamp::now().as_second());
                Some(brief)
            }
            Err(why) => Brief::unread(file.to_owned(), run, &why.to_string()).map(Arc::new),
        }
    }
}
