//! One snapshot is one JSON object on one line; a record is a file of them.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;

use crate::error::Error;
use crate::snapshot::Snapshot;

/// `answer`, a snapshot or those of all nodes, on one line, its end among it.
pub fn line(answer: &impl Serialize) -> Result<String, Error> {
    let mut line = serde_json::to_string(answer).context("cannot write the answer as JSON")?;
    line.push('\n');
    Ok(line)
}

/// The file of a measurement: readings on the way, and the summary as the last line.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    file: File,
}

impl Record {
    /// Begins a record at `path`; one that is there is replaced.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let path = path.to_owned();
        match File::create(&path) {
            Ok(file) => Ok(Self { path, file }),
            Err(source) => Err(Error::Output { path, source }),
        }
    }

    /// Adds one line. It is with the kernel on return, so that a kill loses none that was told.
    pub fn append(&mut self, snapshot: &Snapshot) -> Result<(), Error> {
        let line = line(snapshot)?;
        let written = self.file.write_all(line.as_bytes());
        written.map_err(|source| Error::Output {
            path: self.path.clone(),
            source,
        })
    }
}
