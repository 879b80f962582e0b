//! The file that others collect: each of its versions is whole.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Write},
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use anyhow::anyhow;
use rustix::{
    fs::{
        AtFlags, FileType, Mode, OFlags, Stat, fchmod, fstat, open, openat, renameat, stat, statat, unlinkat,
    },
    io::Errno,
};

use crate::{
    error::{Error, way_to_own_directory},
    out::openmetrics::Format,
    verb::agent::note,
};

/// Where it is.
pub struct TextFile {
    dir: OwnedFd,
    path: PathBuf,
    name: OsString,
    /// The version under way; its name ends so that no collector takes it.
    new: OsString,
    /// The last version: what else has its name is not this agent's to remove.
    own: Option<Stat>,
    /// By the name: `node_exporter` takes `*.prom` alone.
    pub format: Format,
    is_failing: bool,
}

impl TextFile {
    /// Opens its directory. One that others can write to is refused, and so is a name that something else than a plain file has.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let name = path
            .file_name()
            .ok_or_else(|| output(path, Errno::ISDIR.into()))?;
        let dir = open_above(path)?;
        look_at(&dir, path, name)?;
        let mut new = OsString::from(".");
        new.push(name);
        new.push(".new");
        Ok(Self {
            dir,
            path: path.to_owned(),
            name: name.to_owned(),
            new,
            own: None,
            format: match path.extension() {
                Some(extension) if extension == OsStr::new("prom") => Format::Prometheus,
                _ => Format::OpenMetrics,
            },
            is_failing: false,
        })
    }

    /// Puts a text in place of the one before, in the directory that is there by now. A failure is told once, until it is over.
    pub fn write(&mut self, text: &str) -> Option<Error> {
        let written = self.find().and_then(|()| self.replace(text));
        let was_failing = std::mem::replace(&mut self.is_failing, written.is_err());
        written.err().filter(|_| !was_failing)
    }

    /// Looks for its directory where it was, which may have been moved or removed, or have another over it.
    fn find(&mut self) -> Result<(), Error> {
        if stat(above(&self.path)).is_ok_and(|there| is_same(&self.dir, &there)) {
            return Ok(());
        }
        // Nobody would write it anew where the directory is by now.
        self.remove();
        self.dir = open_above(&self.path)?;
        note(&format!(
            "{} was moved or removed, or has another directory over it: the metrics are written to what is there now",
            above(&self.path).display()
        ));
        Ok(())
    }

    fn replace(&mut self, text: &str) -> Result<(), Error> {
        look_at(&self.dir, &self.path, &self.name)?;
        let written = self.put(text);
        self.own = Some(written.map_err(|source| output(&self.path, source))?);
        Ok(())
    }

    fn put(&self, text: &str) -> io::Result<Stat> {
        // One that a killed agent left.
        let _ = unlinkat(&self.dir, &self.new, AtFlags::empty());
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
        let mut file = File::from(openat(&self.dir, &self.new, flags, mode)?);
        file.write_all(text.as_bytes())?;
        fchmod(&file, mode)?;
        renameat(&self.dir, &self.new, &self.dir, &self.name)?;
        Ok(fstat(&file)?)
    }

    /// Removes it: what is not measured any more has no numbers. What somebody else has put in its place stays.
    pub fn remove(&mut self) {
        let Some(own) = self.own.take() else { return };
        let there = statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        if there.is_ok_and(|there| is_same_file(&there, &own)) {
            // Whoever reads it sees by its time that it is old.
            let _ = unlinkat(&self.dir, &self.name, AtFlags::empty());
        }
    }
}

fn output(path: &Path, source: io::Error) -> Error {
    Error::Output {
        path: path.to_owned(),
        source,
    }
}

fn above(path: &Path) -> &Path {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    above.unwrap_or(Path::new("."))
}

/// The directory of a file, where no others can write to it.
fn open_above(path: &Path) -> Result<OwnedFd, Error> {
    let failed = |error: Errno| output(path, error.into());
    let above = above(path);
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let dir = open(above, flags, Mode::empty()).map_err(failed)?;
    let found = fstat(&dir).map_err(failed)?;
    let own = rustix::process::geteuid().as_raw();
    if (found.st_uid != own && found.st_uid != 0) || found.st_mode & 0o022 != 0 {
        return Err(anyhow!(
            "no metrics are written to {}: others can write to its directory: {}",
            path.display(),
            way_to_own_directory(above, found.st_mode, "755")
        )
        .into());
    }
    Ok(dir)
}

/// Refuses what a version would take the place of and is no plain file: a device, a socket, a link.
fn look_at(dir: &OwnedFd, path: &Path, name: &OsStr) -> Result<(), Error> {
    match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(there) if FileType::from_raw_mode(there.st_mode) != FileType::RegularFile => Err(anyhow!(
            "no metrics are written to {}, which is no plain file: name another for --openmetrics",
            path.display()
        )
        .into()),
        Ok(_) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(output(path, error.into())),
    }
}

fn is_same(dir: impl AsFd, there: &Stat) -> bool {
    fstat(dir).is_ok_and(|own| is_same_file(&own, there))
}

fn is_same_file(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    fn a_version_is_whole_and_for_all_to_read() {
        let temp = tempfile::tempdir().expect("a directory");
        let path = temp.path().join("sw-bpf.prom");
        let mut file = TextFile::open(&path).expect("open");
        assert_eq!(file.format, Format::Prometheus);
        for text in ["first\n", "second\n"] {
            assert!(file.write(text).is_none());
            assert_eq!(fs::read_to_string(&path).expect("there"), text);
        }
        assert_eq!(
            fs::metadata(&path).expect("there").permissions().mode() & 0o777,
            0o644
        );
        assert_eq!(fs::read_dir(temp.path()).expect("a directory").count(), 1);
        file.remove();
        assert!(!path.exists());
    }

    #[test]
    fn what_is_no_plain_file_is_neither_replaced_nor_removed() {
        let temp = tempfile::tempdir().expect("a directory");
        let path = |name: &str| temp.path().join(name);
        fs::write(path("target"), "kept").expect("written");
        std::os::unix::fs::symlink("target", path("link")).expect("linked");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path("fifo"),
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .expect("made");
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).expect("bound");
        fs::create_dir(path("dir")).expect("made");
        for name in ["link", "fifo", "socket", "dir"] {
            let kind = || fs::symlink_metadata(path(name)).expect("there").file_type();
            let before = kind();
            let refusal = TextFile::open(&path(name)).err().expect("refused").to_string();
            assert!(refusal.contains("no plain file: name another"), "{refusal}");
            // It may also come later.
            let mut file = TextFile::open(&path("m.txt")).expect("open");
            for with_own in [true, false] {
                if with_own {
                    assert!(file.write("text").is_none());
                    fs::remove_file(path("m.txt")).expect("there");
                }
                fs::rename(path(name), path("m.txt")).expect("in its place");
                assert!(with_own || file.write("text").is_some());
                file.remove();
                fs::rename(path("m.txt"), path(name)).expect("it stays");
            }
            assert_eq!(kind(), before, "{name}");
        }
        assert_eq!(fs::read_to_string(path("target")).expect("there"), "kept");
    }

    #[test]
    fn a_link_in_the_way_of_the_next_version_is_not_followed() {
        let temp = tempfile::tempdir().expect("a directory");
        let (path, other) = (temp.path().join("m.txt"), temp.path().join("other"));
        fs::write(&other, "kept").expect("written");
        std::os::unix::fs::symlink(&other, temp.path().join(".m.txt.new")).expect("linked");
        let mut file = TextFile::open(&path).expect("open");
        assert_eq!(file.format, Format::OpenMetrics);
        assert!(file.write("new").is_none());
        assert_eq!(fs::read_to_string(&other).expect("there"), "kept");
        assert_eq!(fs::read_to_string(&path).expect("there"), "new");
    }

    #[test]
    fn a_plain_file_of_somebody_else_is_not_removed() {
        let temp = tempfile::tempdir().expect("a directory");
        let (path, theirs) = (temp.path().join("m.txt"), temp.path().join("theirs"));
        let mut file = TextFile::open(&path).expect("open");
        assert!(file.write("own").is_none());
        fs::write(&theirs, "theirs").expect("written");
        fs::rename(&theirs, &path).expect("in its place");
        file.remove();
        assert_eq!(fs::read_to_string(&path).expect("it stays"), "theirs");
    }

    #[test]
    fn it_is_written_to_the_directory_that_is_there() {
        let temp = tempfile::tempdir().expect("a directory");
        let (dir, aside) = (temp.path().join("dir"), temp.path().join("aside"));
        let (path, left) = (dir.join("m.txt"), aside.join("m.txt"));
        let mode = || fs::Permissions::from_mode(0o755);
        fs::create_dir(&dir).expect("made");
        fs::set_permissions(&dir, mode()).expect("changed");
        let mut file = TextFile::open(&path).expect("open");
        assert!(file.write("first").is_none() && path.exists());
        fs::rename(&dir, &aside).expect("moved");
        assert!(file.write("second").is_some());
        assert!(file.write("second").is_none(), "it is told once");
        assert!(!left.exists(), "what is not written any more has no numbers");
        fs::create_dir(&dir).expect("made");
        fs::set_permissions(&dir, mode()).expect("changed");
        assert!(file.write("third").is_none());
        assert_eq!(fs::read_to_string(&path).expect("there"), "third");
        fs::remove_dir_all(&dir).expect("removed");
        assert!(file.write("fourth").is_some());
        fs::rename(&aside, &dir).expect("moved back");
        assert!(file.write("fifth").is_none());
        assert_eq!(fs::read_to_string(&path).expect("there"), "fifth");
        file.remove();
        assert!(!path.exists());
    }

    #[test]
    fn what_cannot_be_written_is_told_once_until_it_is_over() {
        let temp = tempfile::tempdir().expect("a directory");
        let path = temp.path().join("m.txt");
        let mut file = TextFile::open(&path).expect("open");
        fs::create_dir(&path).expect("in the way");
        assert!(file.write("text").is_some());
        assert!(file.write("text").is_none());
        fs::remove_dir(&path).expect("empty");
        assert!(file.write("text").is_none());
        fs::remove_file(&path).expect("a file");
        fs::create_dir(&path).expect("in the way");
        assert!(file.write("text").is_some());
    }

    #[test]
    fn a_directory_that_others_can_write_to_is_refused() {
        let temp = tempfile::tempdir().expect("a directory");
        // What is meant to be everybody's is not to be shut.
        for (mode, way) in [(0o777, "chmod 755"), (0o1777, "name a directory of its own")] {
            fs::set_permissions(temp.path(), fs::Permissions::from_mode(mode)).expect("changed");
            let refusal = TextFile::open(&temp.path().join("m.prom"));
            let refusal = refusal.err().expect("refused").to_string();
            assert!(refusal.contains(way), "{refusal}");
        }
        assert!(TextFile::open(Path::new("/")).is_err());
    }
}
