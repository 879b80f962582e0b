//! A directory of records as it is read: what is in it may be anything, and of anyone.

use std::{
    fs::File,
    io::{self, ErrorKind},
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::anyhow;
use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, open, openat, statat},
    io::Errno,
};

use super::{
    RecordName, acl,
    dir::refuse_others,
    last::{Last, Untold, last},
};
use crate::{error::Error, out::escape};

/// Entries of a directory that are looked at.
const MAX_ENTRIES: usize = 1_000_000;
/// Columns of a path in a failure.
const SHOWN: usize = 200;

/// A directory of records, which others write to.
#[derive(Debug, Clone)]
pub struct Records {
    path: PathBuf,
    fd: Arc<OwnedFd>,
}

/// A record that this process may read.
#[derive(Debug)]
pub struct Record {
    /// Its name.
    pub name: RecordName,
    /// The users beside root who may read it.
    pub readers: Vec<u32>,
    /// The file as it was when it was opened.
    pub stat: Stat,
    file: File,
}

impl Records {
    /// Opens a directory, which need not be one that this user may list.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match open(path, flags, Mode::empty()) {
            Ok(fd) => Ok(Self {
                path: path.to_owned(),
                fd: Arc::new(fd),
            }),
            Err(Errno::NOENT) => Err(Error::NoRecord {
                what: "any job".to_owned(),
                why: format!(
                    "{} is not there: `sw-bpf agent` makes it, and `--records DIR` names another",
                    escape::tail(path.as_os_str().as_bytes(), SHOWN)
                ),
            }),
            Err(error) => Err(unreadable(path, "open", error.into())),
        }
    }

    /// The same, where nobody else can write to it: what is in it can be told in the name of whoever wrote it.
    pub fn open_own(path: &Path) -> Result<Self, Error> {
        let records = Self::open(path)?;
        refuse_others(path, &records.stat_own()?)?;
        Ok(records)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Names of the files of the records in it, in no order, each ended by a newline. What has another name, or is no file, is left
    /// out.
    pub fn files(&self) -> Result<String, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let listed = openat(&self.fd, ".", flags, Mode::empty()).and_then(Dir::new);
        let listed = listed.map_err(|error| unreadable(&self.path, "list", error.into()))?;
        let mut files = String::new();
        for entry in listed.take(MAX_ENTRIES) {
            let entry = entry.map_err(|error| unreadable(&self.path, "list", error.into()))?;
            let is_file = matches!(entry.file_type(), FileType::RegularFile | FileType::Unknown);
            let file = entry.file_name().to_str().ok();
            let file = file.filter(|file| is_file && RecordName::of_file(file).is_some());
            if let Some(file) = file {
                files.push_str(file);
                files.push('\n');
            }
        }
        Ok(files)
    }

    /// The directory as it is now.
    pub fn stat_own(&self) -> Result<Stat, Error> {
        fstat(&*self.fd).map_err(|error| unreadable(&self.path, "look at", error.into()))
    }

    /// A file as it is now; `None` where it has gone.
    pub fn stat(&self, file: &str) -> Option<Stat> {
        statat(&self.fd, file, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// Opens a record; `None` where there is none of this name. What is no plain file is refused, and nothing is waited for.
    pub fn record(&self, name: RecordName) -> Result<Option<Record>, Error> {
        let path = self.path.join(name.file());
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file: File = match openat(&self.fd, name.file(), flags, Mode::empty()) {
            Ok(fd) => fd.into(),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::ACCESS) => {
                return Err(Error::RecordDenied {
                    action: "read",
                    path,
                    why: "only the job's user and root may".to_owned(),
                });
            }
            Err(error) => return Err(unreadable(&path, "read", error.into())),
        };
        let opened = (|| {
            let stat = fstat(&file)?;
            if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || stat.st_nlink > 1 {
                return Err(io::Error::other("it is no plain file"));
            }
            Ok((stat, acl::readers(&file)?))
        })();
        match opened {
            Ok((stat, readers)) => Ok(Some(Record {
                name,
                readers,
                stat,
                file,
            })),
            Err(error) => Err(unreadable(&path, "read", error)),
        }
    }
}

impl Record {
    /// Whether this user may be told of it; `None` is whoever has opened it.
    pub fn is_for(&self, user: Option<u32>) -> bool {
        user.is_none_or(|uid| uid == 0 || self.readers.contains(&uid))
    }

    /// What its last line tells.
    pub fn last(&self) -> Result<Last, Untold> {
        last(&self.file)
    }
}

fn unreadable(path: &Path, action: &'static str, error: io::Error) -> Error {
    let path = path.to_owned();
    if error.kind() == ErrorKind::PermissionDenied {
        let why = "only root may: name one of your jobs, as `sw-bpf show JOB`".to_owned();
        return Error::RecordDenied { action, path, why };
    }
    let shown = escape::tail(path.as_os_str().as_bytes(), SHOWN);
    anyhow!(error).context(format!("cannot {action} {shown}")).into()
}
