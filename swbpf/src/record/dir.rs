//! The directory of the records: whoever may write to it may be somebody else, and put anything there.

use std::{
    fs::{self, File},
    io, iter,
    os::{
        fd::OwnedFd,
        unix::fs::{DirBuilderExt, MetadataExt},
    },
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use anyhow::anyhow;
use rustix::{
    fs::{AtFlags, FlockOperation, Mode, OFlags, Stat, flock, fstat, open, openat, renameat, stat, statat},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use super::RecordName;
use crate::error::{Error, way_to_own_directory};

/// Records of earlier runs of one job that are kept: 1, 2, …
const MOST_EARLIER: u32 = 100;
/// Others may go through the directory, to a file that they know the name of, and not list it.
const DIR_MODE: u32 = 0o711;

/// Which run of its job a record is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Run {
    /// The latest.
    Latest,
    /// One after which another has begun.
    Earlier,
}

/// Number of a file, of which no other file has it as long as it is there.
pub type Inode = u64;

/// Which file something was, by whatever name: the number of one that was removed is soon that of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileId {
    /// Its number.
    pub inode: Inode,
    /// Where the file system tells it.
    made: Option<SystemTime>,
}

impl FileId {
    /// That of an open file.
    pub fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self {
            inode: metadata.ino(),
            made: metadata.created().ok(),
        })
    }
}

/// A directory of records that only this user can write to.
#[derive(Debug, Clone)]
pub struct Dir {
    path: PathBuf,
    pub(super) fd: Arc<OwnedFd>,
    /// Held while a name is given to another file, or taken from one.
    names: Arc<Mutex<()>>,
}

impl Dir {
    /// Opens it, and makes it where it is not there. One that others can write to is refused.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let output = |source: io::Error| Error::Output {
            path: path.to_owned(),
            source,
        };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(DIR_MODE)
            .create(path)
            .map_err(output)?;
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let fd = open(path, flags, Mode::empty()).map_err(|error| output(error.into()))?;
        let found = fstat(&fd).map_err(|error| output(error.into()))?;
        refuse_others(path, &found)?;
        Ok(Self {
            path: path.to_owned(),
            fd: Arc::new(fd),
            names: Arc::default(),
        })
    }

    /// Keeps others from writing records to it as long as this value is there.
    pub fn hold(&self) -> Result<(), Error> {
        match flock(&self.fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(()),
            Err(Errno::WOULDBLOCK) => Err(anyhow!(
                "another agent writes records to {}: end that first, or name another directory for --records",
                self.path.display()
            )
            .into()),
            Err(source) => Err(Error::Output {
                path: self.path.clone(),
                source: source.into(),
            }),
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is where it was, and not moved or removed.
    pub fn is_in_place(&self) -> bool {
        let there = stat(&self.path).and_then(|there| Ok((there, fstat(&self.fd)?)));
        there.is_ok_and(|(there, own)| (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino))
    }

    /// The path of a file in it.
    pub fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// A new file for a run of `job`, to be appended to, that only this user can read, and its name. What is left of an earlier
    /// run of that job keeps a name of its own; an earlier run itself gets one.
    pub fn create(&self, job: &str, run: Run) -> io::Result<(String, File)> {
        let latest = RecordName::latest(job).file();
        let _names = self.names();
        let name = match run {
            Run::Latest => {
                self.set_aside(job, &latest)?;
                latest
            }
            Run::Earlier => self.free_name(job),
        };
        let file = self.open_file(&name, OFlags::CREATE | OFlags::EXCL)?;
        Ok((name, file))
    }

    /// The file that was `id` when it had this name, whatever its name has become, to be appended to: that, and whether its last
    /// line has no end.
    pub fn resume(&self, name: &str, id: Option<FileId>) -> io::Result<(String, File, bool)> {
        // It comes from a file, and could lead elsewhere.
        let Some(RecordName { job, .. }) = RecordName::of_file(name) else {
            return Err(io::Error::other("it is no name of a record"));
        };
        let _names = self.names();
        let others = earlier(&job).filter(|name| self.has(name));
        let mut failure = Errno::NOENT.into();
        for candidate in iter::once(name.to_owned()).chain(others) {
            match self.open_plain(&candidate) {
                Ok((file, is_torn)) if id.is_none_or(|id| FileId::of(&file).is_ok_and(|is| is == id)) => {
                    return Ok((candidate, file, is_torn));
                }
                Err(error) if candidate == name => failure = error,
                Ok(_) | Err(_) => {}
            }
        }
        Err(failure)
    }

    fn open_plain(&self, name: &str) -> io::Result<(File, bool)> {
        let file = self.open_file(name, OFlags::empty())?;
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.nlink() != 1 {
            return Err(io::Error::other("it is no plain file"));
        }
        let Some(last) = metadata.len().checked_sub(1) else {
            return Ok((file, false));
        };
        let mut byte = [0];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut byte, last)?;
        Ok((file, byte != [b'\n']))
    }

    /// Keeps the names of all files until what is given is dropped.
    pub(super) fn names(&self) -> MutexGuard<'_, ()> {
        // It guards no data.
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.fd, name, flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    fn set_aside(&self, job: &str, name: &str) -> io::Result<()> {
        if !self.has(name) {
            return Ok(());
        }
        Ok(renameat(&self.fd, name, &self.fd, self.free_name(job))?)
    }

    /// The first name of an earlier run of `job` that no file has, else the last one.
    fn free_name(&self, job: &str) -> String {
        let mut names = earlier(job);
        let free = names.find(|name| !self.has(name));
        free.unwrap_or_else(|| name_of(job, MOST_EARLIER))
    }

    fn has(&self, name: &str) -> bool {
        statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }
}

/// Refuses a directory that others can write to.
pub fn refuse_others(path: &Path, found: &Stat) -> Result<(), Error> {
    let own = rustix::process::geteuid().as_raw();
    if (found.st_uid != own && found.st_uid != 0) || found.st_mode & 0o022 != 0 {
        return Err(anyhow!(
            "{} is not used for records: others can write to it: {}",
            path.display(),
            way_to_own_directory(path, found.st_mode, "711")
        )
        .into());
    }
    Ok(())
}

/// Names of the records of earlier runs of `job`.
fn earlier(job: &str) -> impl Iterator<Item = String> {
    earlier_runs().map(move |run| name_of(job, run))
}

/// Numbers of earlier runs.
pub(super) fn earlier_runs() -> impl Iterator<Item = u32> {
    1..=MOST_EARLIER
}

fn name_of(job: &str, run: u32) -> String {
    let job = job.to_owned();
    RecordName { job, run }.file()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn an_earlier_record_is_set_aside_and_a_torn_line_is_seen() {
        let temp = tempfile::tempdir().expect("a directory");
        let dir = Dir::open(&temp.path().join("jobs")).expect("made");
        for text in ["first\n", "second\n", "torn"] {
            let (_, mut file) = dir.create("7", Run::Latest).expect("a file");
            file.write_all(text.as_bytes()).expect("written");
        }
        let text = |name: &str| fs::read_to_string(dir.path_of(name)).expect("there");
        assert_eq!(
            (text("7.1.jsonl"), text("7.2.jsonl")),
            ("first\n".to_owned(), "second\n".to_owned())
        );
        assert!(dir.resume("7.jsonl", None).expect("there").2);
        assert!(!dir.resume("7.1.jsonl", None).expect("there").2);
    }

    #[test]
    fn a_record_is_the_same_file_whatever_its_name_becomes() {
        let temp = tempfile::tempdir().expect("a directory");
        let dir = Dir::open(&temp.path().join("jobs")).expect("made");
        let begin = |run| {
            let (name, file) = dir.create("7", run).expect("a file");
            (name, FileId::of(&file).expect("open"))
        };
        let (first, second) = (begin(Run::Latest), begin(Run::Latest));
        let resumed = |id| dir.resume("7.jsonl", Some(id)).map(|(name, ..)| name);
        assert_eq!(resumed(first.1).expect("there"), "7.1.jsonl");
        assert_eq!(resumed(second.1).expect("there"), "7.jsonl");
        // One that has no record yet, and is not the latest, leaves that its name.
        assert_eq!(begin(Run::Earlier).0, "7.2.jsonl");
        assert_eq!(resumed(second.1).expect("there"), "7.jsonl");
        fs::remove_file(dir.path_of("7.1.jsonl")).expect("there");
        let gone = resumed(first.1).expect_err("gone");
        assert_eq!(gone.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn what_others_put_there_is_not_followed() {
        let temp = tempfile::tempdir().expect("a directory");
        let dir = Dir::open(temp.path()).expect("there");
        fs::write(temp.path().join("target"), "kept").expect("written");
        std::os::unix::fs::symlink("target", temp.path().join("8.jsonl")).expect("linked");
        assert!(dir.resume("8.jsonl", None).is_err());
        let (_, mut file) = { dir.create("8", Run::Latest) }.expect("the link is set aside");
        file.write_all(b"new").expect("written");
        assert_eq!(
            fs::read_to_string(temp.path().join("target")).expect("there"),
            "kept"
        );
    }

    #[test]
    fn a_directory_that_has_gone_is_seen() {
        let temp = tempfile::tempdir().expect("a directory");
        let (path, aside) = (temp.path().join("jobs"), temp.path().join("aside"));
        let dir = Dir::open(&path).expect("made");
        assert!(dir.is_in_place());
        fs::rename(&path, &aside).expect("moved");
        assert!(!dir.is_in_place());
        let other = Dir::open(&path).expect("made");
        assert!(other.is_in_place() && !dir.is_in_place());
        fs::remove_dir(&path).expect("empty");
        fs::rename(&aside, &path).expect("moved back");
        assert!(dir.is_in_place() && !other.is_in_place());
    }

    #[test]
    fn a_directory_that_others_can_write_to_is_refused() {
        let temp = tempfile::tempdir().expect("a directory");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(temp.path(), mode).expect("changed");
        let refusal = Dir::open(temp.path()).expect_err("refused").to_string();
        assert!(refusal.contains("chmod 711"), "{refusal}");
    }
}
