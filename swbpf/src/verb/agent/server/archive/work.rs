//! Answers about records, made a part at a time.

use std::path::PathBuf;

use anyhow::Context;
use serde_json::value::RawValue;

use crate::{
    error::Error,
    job::id::Recorded,
    record::{Filter, Found, Index, List, Records, Search, View, named},
    verb::list::listing,
    wire::{self, Answer},
};

/// An answer under way.
pub trait Work: Send + 'static {
    /// Whether all records are gone through from now on.
    fn is_long(&self) -> bool;

    /// Goes on until the line of the answer is there, or it is time for others.
    fn go_on(&mut self, index: &mut Index, is_time: &dyn Fn() -> bool) -> Result<Option<Vec<u8>>, Error>;
}

/// Which records there are.
pub struct Listed<Asked> {
    dir: PathBuf,
    /// What is asked for, until it is begun.
    asked: Option<(Asked, View)>,
    list: Option<List>,
}

impl<Asked: FnOnce() -> Filter> Listed<Asked> {
    /// Those in this directory.
    pub fn new(dir: PathBuf, filter: Asked, view: View) -> Self {
        Self {
            dir,
            asked: Some((filter, view)),
            list: None,
        }
    }
}

impl<Asked: FnOnce() -> Filter + Send + 'static> Work for Listed<Asked> {
    fn is_long(&self) -> bool {
        true
    }

    fn go_on(&mut self, index: &mut Index, is_time: &dyn Fn() -> bool) -> Result<Option<Vec<u8>>, Error> {
        if let Some((filter, view)) = self.asked.take() {
            let records = Records::open_own(&self.dir)?;
            let max_bytes = wire::MAX_ANSWER as usize;
            self.list = Some(List::begin(records, filter(), view, max_bytes, index)?);
        }
        let Some(mut list) = self.list.take() else {
            return Ok(None);
        };
        if !list.go_on(index, is_time)? {
            self.list = Some(list);
            return Ok(None);
        }
        let found = list.end();
        let entries: Vec<&RawValue> = found.iter().map(|brief| &*brief.entry).collect();
        let answer = Answer::<(), _> {
            listing: Some(listing(entries)),
            ..Answer::default()
        };
        Ok(Some(wire::line(&answer).context("write a list")?))
    }
}

/// What the record of a job says.
pub struct Shown {
    dir: PathBuf,
    wanted: Recorded,
    run: u32,
    /// Who asks; `None` sees all.
    user: Option<u32>,
    /// Whether no record has its name.
    has_no_name: bool,
    search: Option<Search>,
}

impl Shown {
    /// Of a run of what is wanted, in this directory.
    pub fn new(dir: PathBuf, wanted: Recorded, run: u32, user: Option<u32>) -> Self {
        Self {
            dir,
            wanted,
            run,
            user,
            has_no_name: false,
            search: None,
        }
    }

    fn find(&mut self, index: &mut Index, is_time: &dyn Fn() -> bool) -> Result<Option<Found>, Error> {
        let mut search = if let Some(search) = self.search.take() {
            search
        } else {
            let records = Records::open_own(&self.dir)?;
            if !self.has_no_name {
                let found = named(&records, &self.wanted, self.run, self.user);
                self.has_no_name = found.is_none();
                return found.transpose();
            }
            Search::begin(records, &self.wanted, self.run, self.user, index)?
        };
        if search.go_on(index, is_time) {
            return search.end().map(Some);
        }
        self.search = Some(search);
        Ok(None)
    }
}

impl Work for Shown {
    fn is_long(&self) -> bool {
        self.has_no_name
    }

    fn go_on(&mut self, index: &mut Index, is_time: &dyn Fn() -> bool) -> Result<Option<Vec<u8>>, Error> {
        let Some(found) = self.find(index, is_time)? else {
            return Ok(None);
        };
        let answer = Answer::<()> {
            shown: Some(wire::Shown {
                record: found.name.file(),
                snapshot: found.last.snapshot,
                note: found.last.note,
            }),
            ..Answer::default()
        };
        Ok(Some(wire::line(&answer).context("write a record")?))
    }
}
