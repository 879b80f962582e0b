//! One record as it is written.

use std::{
    fs::File,
    io::{self, Write},
};

use super::Dir;
use crate::{error::Error, out::json, snapshot::Snapshot};

/// A file that grows by whole lines. What cannot be written is tried anew with the next line, which has all that the one
/// before it had.
#[derive(Debug)]
pub struct Writer {
    name: String,
    file: File,
    /// Whether what is there does not end with a whole line.
    is_torn: bool,
}

impl Writer {
    /// Begins a record of `job`, which `reader` may read.
    pub fn begin(dir: &Dir, job: &str, reader: Option<u32>) -> Result<Self, Error> {
        let (name, file) = dir.create(job, reader).map_err(|source| Error::Output {
            path: dir.path_of(&format!("{job}.jsonl")),
            source,
        })?;
        Ok(Self {
            name,
            file,
            is_torn: false,
        })
    }

    /// Goes on with the record of this name.
    pub fn resume(dir: &Dir, name: &str) -> Result<Self, Error> {
        let (file, is_torn) = dir.resume(name).map_err(|source| Error::Output {
            path: dir.path_of(name),
            source,
        })?;
        Ok(Self {
            name: name.to_owned(),
            file,
            is_torn,
        })
    }

    /// The name of its file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds one line. It is with the kernel on return, so that a kill loses none that was told.
    pub fn append(&mut self, dir: &Dir, snapshot: &Snapshot) -> Result<(), Error> {
        let mut line = json::line(snapshot)?;
        if self.is_torn {
            // A reader leaves out the line that this ends.
            line.insert(0, '\n');
        }
        self.write(line.as_bytes()).map_err(|source| Error::Output {
            path: dir.path_of(&self.name),
            source,
        })
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.file.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    bytes = &bytes[written..];
                    self.is_torn = !bytes.is_empty();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
