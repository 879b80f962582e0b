//! The directory of the pins, which is an agent's alone: nothing is removed that may be somebody else's.

use std::{
    collections::BTreeMap,
    ffi::CString,
    fs,
    io::{self, ErrorKind},
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use rustix::{
    fs::{FlockOperation, Mode, OFlags, flock, open, statfs},
    io::Errno,
};

use super::syscall;
use crate::error::Error;

/// `BPF_FS_MAGIC` of `linux/magic.h`.
const BPF_FS: u64 = 0xcafe_4a11;
/// Where a host has such a file system.
const USUAL: &str = "/sys/fs/bpf";
/// How the names of pins begin.
const PINS: [&str; 3] = ["map_", "prog_", "link_"];

/// The pins of a loading. What they name is open: a pin that is removed stops nothing, and can be made again.
#[derive(Debug)]
struct Used {
    dir: PathBuf,
    pins: BTreeMap<String, OwnedFd>,
    /// Those that were not there at the last look.
    missed: Vec<String>,
}

/// What has become of the pins.
#[derive(Debug, PartialEq, Eq)]
pub enum Seen {
    /// Nothing that matters yet.
    Whole,
    /// These had been removed, and are there again.
    MadeAgain(Vec<String>),
    /// All were removed, and with them what counts.
    Gone,
}

/// It is held as long as this value is there.
#[derive(Debug)]
pub struct Home {
    path: PathBuf,
    /// The pins of the loading that is used, once there is one.
    used: Option<Used>,
    _held: OwnedFd,
}

impl Home {
    /// Takes the directory, which is made where it is not there. One that another agent holds, that is on no BPF file system, or
    /// that has anything in it but pins, is refused.
    pub fn take(path: &Path) -> Result<Self, Error> {
        // Before it is made: elsewhere, nothing is to be left.
        let nearest = path.ancestors().find(|above| above.exists());
        if !is_bpf(nearest.unwrap_or(Path::new("."))) {
            let remedy = if is_bpf(Path::new(USUAL)) {
                format!("name a directory below {USUAL} for --pin-dir")
            } else {
                format!("`mount -t bpf bpf {USUAL}`, and name a directory below it for --pin-dir")
            };
            return Err(anyhow!("{} is on no BPF file system: {remedy}", path.display()).into());
        }
        fs::create_dir_all(path).with_context(|| format!("make {}", path.display()))?;
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let held = open(path, flags, Mode::empty()).with_context(|| format!("open {}", path.display()))?;
        match flock(&held, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(anyhow!(
                    "another agent holds {}: end that first, or name a directory of its own for --pin-dir",
                    path.display()
                )
                .into());
            }
            Err(error) => return Err(anyhow!(error).context(format!("lock {}", path.display())).into()),
        }
        let home = Self {
            path: path.to_owned(),
            used: None,
            _held: held,
        };
        home.loadings()?;
        Ok(home)
    }

    /// Removes the pins of all loadings but this one.
    pub fn remove_all_but(&self, kept: Option<&str>) -> Result<(), Error> {
        for dir in self.loadings()? {
            if kept.is_some_and(|kept| dir.ends_with(kept)) {
                continue;
            }
            for pin in names(&dir)? {
                let path = dir.join(&pin);
                if !PINS.iter().any(|begin| pin.starts_with(begin)) {
                    return Err(self.foreign(&path));
                }
                fs::remove_file(&path).with_context(|| format!("remove {}", path.display()))?;
            }
            fs::remove_dir(&dir).with_context(|| format!("remove {}", dir.display()))?;
        }
        Ok(())
    }

    /// This loading is used from now on.
    pub fn uses(&mut self, loading: &str) -> Result<(), Error> {
        let dir = self.path.join(loading);
        let mut pins = BTreeMap::new();
        for name in names(&dir)? {
            let path = dir.join(&name);
            let opened = c_path(&path).and_then(|path| syscall::open_pin(&path));
            pins.insert(name, opened.with_context(|| format!("open {}", path.display()))?);
        }
        self.used = Some(Used {
            dir,
            pins,
            missed: Vec::new(),
        });
        Ok(())
    }

    /// Looks whether the pins of the loading that is used are there, and makes those again that are missing: without them the next
    /// agent would begin anew. What else is in the directory is no matter.
    pub fn look(&mut self) -> Result<Seen, Error> {
        self.used.as_mut().map_or(Ok(Seen::Whole), Used::look)
    }

    /// That the pins are gone, and with them what counts.
    pub fn pins_are_gone(&self) -> Error {
        anyhow!(
            "the pins in {} were removed, and with them what counts: start the agent again",
            self.path.display()
        )
        .into()
    }

    /// The directories of all loadings.
    fn loadings(&self) -> Result<Vec<PathBuf>, Error> {
        let mut loadings = Vec::new();
        for name in names(&self.path)? {
            let path = self.path.join(&name);
            if !is_loading(&name) {
                return Err(self.foreign(&path));
            }
            loadings.push(path);
        }
        Ok(loadings)
    }

    fn foreign(&self, path: &Path) -> Error {
        anyhow!(
            "{} is not the agent's, and nothing there is touched: name a directory of its own for --pin-dir, as {}",
            path.display(),
            self.path.join("sw-bpf").display()
        )
        .into()
    }
}

/// Whether this is how an agent names the directory of a loading: its process id and the moment.
pub(super) fn is_loading(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let parts = name.split_once('-');
    parts.is_some_and(|(pid, moment)| is_number(pid) && is_number(moment))
}

impl Used {
    fn look(&mut self) -> Result<Seen, Error> {
        let there = match names_in(&self.dir) {
            Ok(there) => there,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Seen::Gone),
            Err(error) => {
                return Err(anyhow!(error)
                    .context(format!("read {}", self.dir.display()))
                    .into());
            }
        };
        let missing: Vec<String> = self
            .pins
            .keys()
            .filter(|pin| !there.contains(pin))
            .cloned()
            .collect();
        if missing.len() == self.pins.len() {
            return Ok(Seen::Gone);
        }
        // Whoever removes the directory is not to find it full again: they may be in the middle of it.
        let before = std::mem::replace(&mut self.missed, missing);
        if self.missed.is_empty() || self.missed != before {
            return Ok(Seen::Whole);
        }
        for name in &self.missed {
            if let Some(object) = self.pins.get(name) {
                let path = self.dir.join(name);
                let pinned = c_path(&path).and_then(|path| syscall::pin(object.as_fd(), &path));
                pinned.with_context(|| format!("pin {}", path.display()))?;
            }
        }
        Ok(Seen::MadeAgain(std::mem::take(&mut self.missed)))
    }
}

fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

fn names(dir: &Path) -> Result<Vec<String>, Error> {
    Ok(names_in(dir).with_context(|| format!("read {}", dir.display()))?)
}

fn names_in(dir: &Path) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(dir)?;
    entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect()
}

fn is_bpf(path: &Path) -> bool {
    statfs(path).is_ok_and(|found| found.f_type as u64 & 0xffff_ffff == BPF_FS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_elsewhere_is_refused_and_not_made() {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let path = temp.path().join("a/b");
        let told = Home::take(&path).expect_err("on no BPF file system").to_string();
        assert!(told.contains("for --pin-dir"), "{told}");
        assert!(!temp.path().join("a").exists());
    }
}
