//! One record as it is written.

use std::{
    fs::File,
    io::{self, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use serde::Serialize;

use super::{Dir, FileId, RecordName, Run, acl};
use crate::{error::Error, out::json};

/// A file that grows by whole lines. What cannot be written is tried anew with the next line, which has all that the one
/// before it had.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    file: File,
    /// Whether what is there does not end with a whole line.
    is_torn: bool,
}

impl Writer {
    /// Begins a record at a path that was asked for; a file that is there is replaced.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let path = path.to_owned();
        match File::create(&path) {
            Ok(file) => Ok(Self {
                path,
                file,
                is_torn: false,
            }),
            Err(source) => Err(Error::Output { path, source }),
        }
    }

    /// Begins a record of a run of `job`, which only this user may read.
    pub fn begin(dir: &Dir, job: &str, run: Run) -> Result<Self, Error> {
        match dir.create(job, run) {
            Ok((name, file)) => Ok(Self {
                path: dir.path_of(&name),
                file,
                is_torn: false,
            }),
            Err(source) => Err(Error::Output {
                path: dir.path_of(&RecordName::latest(job).file()),
                source,
            }),
        }
    }

    /// Goes on with the record in the file that was `id` when it had this name.
    pub fn resume(dir: &Dir, name: &str, id: Option<FileId>) -> Result<Self, Error> {
        match dir.resume(name, id) {
            Ok((name, file, is_torn)) => Ok(Self {
                path: dir.path_of(&name),
                file,
                is_torn,
            }),
            Err(source) => Err(Error::Output {
                path: dir.path_of(name),
                source,
            }),
        }
    }

    /// Which file it is.
    pub fn id(&self) -> Option<FileId> {
        FileId::of(&self.file).ok()
    }

    /// The name of its file.
    pub fn name(&self) -> &str {
        let name = self.path.file_name().and_then(|name| name.to_str());
        name.unwrap_or_default()
    }

    /// Whether its file was removed: what is written to it is seen by no one.
    pub fn is_removed(&self) -> bool {
        self.file.metadata().is_ok_and(|file| file.nlink() == 0)
    }

    /// Lets one more user read it. It stays this user's own, so that nobody else can change it.
    pub fn let_read(&self, uid: u32) -> Result<(), Error> {
        acl::let_read(&self.file, uid).map_err(|source| Error::Output {
            path: self.path.clone(),
            source,
        })
    }

    /// Adds one line. It is with the kernel on return, so that a kill loses none that was told.
    pub fn append(&mut self, line: &impl Serialize) -> Result<(), Error> {
        let mut line = json::line(line)?;
        if self.is_torn {
            // A reader leaves out the line that this ends.
            line.insert(0, '\n');
        }
        self.write(line.as_bytes()).map_err(|source| Error::Output {
            path: self.path.clone(),
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
