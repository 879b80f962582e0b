//! The file that others collect: each of its versions is whole.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Write},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use anyhow::anyhow;
use rustix::fs::{AtFlags, Mode, OFlags, fchmod, fstat, open, openat, renameat, unlinkat};

use crate::{
    error::{Error, way_to_own_directory},
    out::openmetrics::Format,
};

/// Where it is.
pub struct TextFile {
    dir: OwnedFd,
    path: PathBuf,
    name: OsString,
    /// The version under way; its name ends so that no collector takes it.
    new: OsString,
    /// By the name: `node_exporter` takes `*.prom` alone.
    pub format: Format,
    is_failing: bool,
}

impl TextFile {
    /// Opens its directory. One that others can write to is refused.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let output = |error: rustix::io::Errno| Error::Output {
            path: path.to_owned(),
            source: error.into(),
        };
        let name = path.file_name().ok_or_else(|| output(rustix::io::Errno::ISDIR))?;
        let above = path.parent().filter(|above| !above.as_os_str().is_empty());
        let above = above.unwrap_or(Path::new("."));
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let dir = open(above, flags, Mode::empty()).map_err(output)?;
        let found = fstat(&dir).map_err(output)?;
        let own = rustix::process::geteuid().as_raw();
        if (found.st_uid != own && found.st_uid != 0) || found.st_mode & 0o022 != 0 {
            return Err(anyhow!(
                "no metrics are written to {}: others can write to its directory: {}",
                path.display(),
                way_to_own_directory(above, found.st_mode, "755")
            )
            .into());
        }
        let mut new = OsString::from(".");
        new.push(name);
        new.push(".new");
        Ok(Self {
            dir,
            path: path.to_owned(),
            name: name.to_owned(),
            new,
            format: match path.extension() {
                Some(extension) if extension == OsStr::new("prom") => Format::Prometheus,
                _ => Format::OpenMetrics,
            },
            is_failing: false,
        })
    }

    /// Puts a text in place of the one before. A failure is told once, until it is over.
    pub fn write(&mut self, text: &str) -> Option<Error> {
        let written = self.replace(text);
        let was_failing = std::mem::replace(&mut self.is_failing, written.is_err());
        let source = written.err().filter(|_| !was_failing)?;
        Some(Error::Output {
            path: self.path.clone(),
            source,
        })
    }

    fn replace(&self, text: &str) -> io::Result<()> {
        // One that a killed agent left.
        let _ = unlinkat(&self.dir, &self.new, AtFlags::empty());
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
        let mut file = File::from(openat(&self.dir, &self.new, flags, mode)?);
        file.write_all(text.as_bytes())?;
        fchmod(&file, mode)?;
        Ok(renameat(&self.dir, &self.new, &self.dir, &self.name)?)
    }

    /// Removes it: what is not measured any more has no numbers.
    pub fn remove(&self) {
        // Whoever reads it sees by its time that it is old.
        let _ = unlinkat(&self.dir, &self.name, AtFlags::empty());
    }
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
    fn a_link_is_replaced_and_not_followed() {
        let temp = tempfile::tempdir().expect("a directory");
        let (path, other) = (temp.path().join("m.txt"), temp.path().join("other"));
        fs::write(&other, "kept").expect("written");
        std::os::unix::fs::symlink(&other, &path).expect("linked");
        std::os::unix::fs::symlink(&other, temp.path().join(".m.txt.new")).expect("linked");
        let mut file = TextFile::open(&path).expect("open");
        assert_eq!(file.format, Format::OpenMetrics);
        assert!(file.write("new").is_none());
        assert_eq!(fs::read_to_string(&other).expect("there"), "kept");
        assert_eq!(fs::read_to_string(&path).expect("there"), "new");
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
