//! Which records there are, and what each tells in short.

use std::{collections::BTreeSet, sync::Arc};

use anyhow::{Context, anyhow};
use jiff::Timestamp;

use super::{Brief, Index, Records, Walk, users::Whose};
use crate::{
    error::Error,
    snapshot::{Entry, JobState},
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
#[derive(Debug, Clone, Default)]
pub struct View {
    /// The user who is to be told; `None` is whoever runs this process.
    pub user: Option<u32>,
    /// Names of the files that are being written, where whoever asks knows them all.
    pub running: Option<BTreeSet<String>>,
}

/// A list that is made a part at a time.
#[derive(Debug)]
pub struct List {
    walk: Walk,
    filter: Filter,
    user: Option<u32>,
    found: Vec<Arc<Brief>>,
    /// How much more its entries may take together, as they are written.
    bytes_left: usize,
}

impl List {
    /// Begins one whose entries may take so many bytes together.
    pub fn begin(
        records: Records,
        filter: Filter,
        view: View,
        max_bytes: usize,
        index: &mut Index,
    ) -> Result<Self, Error> {
        Ok(Self {
            walk: Walk::begin(records, view.running, index)?,
            filter,
            user: view.user,
            found: Vec::new(),
            bytes_left: max_bytes,
        })
    }

    /// Goes on until it is done, which is then true, or it is time for others.
    pub fn go_on(&mut self, index: &mut Index, is_time: impl Fn() -> bool) -> Result<bool, Error> {
        while !is_time() {
            let Some(brief) = self.walk.next(index, self.filter.since) else {
                return Ok(true);
            };
            if brief.is_for(self.user) && self.filter.takes(&brief) {
                let left = self.bytes_left.checked_sub(brief.entry.get().len() + 1);
                self.bytes_left =
                    left.ok_or_else(|| anyhow!("the answer is too long: ask for less, as by --since"))?;
                self.found.push(brief);
            }
        }
        Ok(false)
    }

    /// What was asked for, by their begin. One that tells nothing is there with the reason.
    pub fn end(mut self) -> Vec<Arc<Brief>> {
        self.found.sort_unstable_by(|a, b| a.order(b));
        self.found
    }
}

/// The whole of a list at once.
pub fn list(records: &Records, filter: &Filter, view: View) -> Result<Vec<Entry>, Error> {
    let mut index = Index::new(0);
    let mut list = List::begin(records.clone(), filter.clone(), view, usize::MAX, &mut index)?;
    list.go_on(&mut index, || false)?;
    let found = list.end();
    let entries = found.iter().map(|brief| serde_json::from_str(brief.entry.get()));
    let entries: Result<_, _> = entries.collect();
    Ok(entries.context("read what was listed")?)
}

impl Filter {
    fn takes(&self, brief: &Brief) -> bool {
        let is_old = |since| brief.state != JobState::Running && brief.to.is_some_and(|to| to < since);
        let is_other = |user: &Whose| !user.is(brief.uid, brief.user.as_deref());
        !self.since.is_some_and(is_old)
            && !self.user.as_ref().is_some_and(is_other)
            && self.state.is_none_or(|state| state == brief.state)
    }
}
