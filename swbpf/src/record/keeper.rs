//! The record of a measurement that goes on even if it cannot be written.

use std::path::Path;

use super::Writer;
use crate::{error::Error, snapshot::Snapshot};

/// A record, where one was asked for, and the first failure to write it.
#[derive(Debug)]
pub struct Keeper {
    record: Option<Writer>,
    failure: Option<Error>,
}

impl Keeper {
    /// Begins a record at `path`.
    pub fn begin(path: Option<&Path>) -> Result<Self, Error> {
        Ok(Self {
            record: path.map(Writer::create).transpose()?,
            failure: None,
        })
    }

    /// Adds a line; after a failure no more.
    pub fn keep(&mut self, snapshot: impl FnOnce() -> Snapshot) {
        if let Some(record) = self.record.as_mut().filter(|_| self.failure.is_none()) {
            self.failure = record.append(&snapshot()).err();
        }
    }

    /// The first failure.
    pub fn end(self) -> Option<Error> {
        self.failure
    }
}
