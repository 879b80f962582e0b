//! The one directory in which a cluster lives, and what an earlier one may have left in it.

use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::cgroups;
use crate::pace::scaled;

/// Below a directory that only root may write to: nobody else can have put anything there.
const DIR: &str = "/var/lib/sw-bpf-slurm-tests";

/// How long another process may have it.
const PATIENCE: Duration = Duration::from_mins(10);

/// How long killed processes may take to be gone.
const END: Duration = Duration::from_secs(5);

/// Most bytes of an environment that are looked at.
const MOST_ENVIRONMENT: u64 = 1 << 20;

/// The directory, held by this process alone.
#[derive(Debug)]
pub struct Place {
    lock: Option<File>,
}

impl Place {
    /// Waits for the directory, and ends and removes what an earlier holder was not able to.
    ///
    /// # Panics
    ///
    /// Where it does not come free, or cannot be cleared.
    pub fn take() -> Self {
        let deadline = Instant::now() + scaled(PATIENCE);
        let lock = loop {
            match try_take() {
                Ok(Some(lock)) => break lock,
                Ok(None) => sleep(Duration::from_millis(50)),
                Err(error) => panic!("{DIR}: {error}"),
            }
            assert!(Instant::now() < deadline, "another process holds {DIR}");
        };
        let left = clear();
        assert!(left.is_empty(), "an earlier run left behind: {left:?}");
        for entry in fs::read_dir(DIR).expect("the directory").flatten() {
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let removed = if is_dir {
                fs::remove_dir_all(entry.path())
            } else {
                fs::remove_file(entry.path())
            };
            removed.expect("what an earlier run left can be removed");
        }
        Self { lock: Some(lock) }
    }

    /// The directory.
    #[expect(clippy::unused_self, reason = "only who holds it is to use it")]
    pub fn dir(&self) -> &'static Path {
        Path::new(DIR)
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    /// Makes a directory in it, with this mode and owner.
    ///
    /// # Panics
    ///
    /// Where it cannot.
    pub fn make_dir(&self, name: &str, mode: u32, (uid, gid): (u32, u32)) {
        let path = self.path(name);
        let created = DirBuilder::new().mode(mode).create(&path);
        created
            .and_then(|()| fs::set_permissions(&path, Permissions::from_mode(mode)))
            .and_then(|()| chown(&path, Some(uid), Some(gid)))
            .expect("a directory");
    }

    /// Writes a file in it, with this mode, owned by root.
    ///
    /// # Panics
    ///
    /// Where it cannot.
    pub fn write(&self, name: &str, mode: u32, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes)
            .and_then(|()| fs::set_permissions(&path, Permissions::from_mode(mode)))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }

    /// Lets it go as a process does that is killed.
    pub fn abandon(&mut self) {
        self.lock = None;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.lock.is_none() {
            return;
        }
        let left = clear();
        let removed = fs::remove_dir_all(DIR);
        // A panic here would hide that of the test, or end the process.
        if !left.is_empty() {
            eprintln!("left behind: {left:?}");
        }
        if let Err(error) = removed {
            eprintln!("left behind: {DIR}: {error}");
        }
    }
}

/// The lock, where nobody else has it.
fn try_take() -> io::Result<Option<File>> {
    match DirBuilder::new().mode(0o755).create(DIR) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let lock = match File::open(DIR) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        lock => lock?,
    };
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // The one who had it may have removed it meanwhile.
    let is_same =
        fs::metadata(DIR).is_ok_and(|there| lock.metadata().is_ok_and(|held| held.ino() == there.ino()));
    Ok(is_same.then_some(lock))
}

/// Ends every process of a cluster in this directory and removes its cgroups; gives what stays.
fn clear() -> Vec<String> {
    // The daemons first: they would start and remove what is looked for afterwards.
    let daemons = end_processes();
    let cgroups = cgroups::clear();
    let processes = end_processes();
    let left = cgroups.iter().map(|path| path.display().to_string());
    left.chain(daemons).chain(processes).collect()
}

/// Kills the processes that were started with the configuration in this directory; gives those that stay.
fn end_processes() -> Vec<String> {
    let deadline = Instant::now() + scaled(END);
    loop {
        let left = processes();
        if left.is_empty() || Instant::now() > deadline {
            return left.iter().map(|pid| format!("process {pid}")).collect();
        }
        for pid in left {
            let _ = kill_process(pid, Signal::KILL);
        }
        sleep(Duration::from_millis(10));
    }
}

/// Processes whose environment says that they belong to a cluster in this directory.
#[must_use]
pub fn processes() -> Vec<Pid> {
    let mark = format!("SLURM_CONF={DIR}/");
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers
        .filter(|number| has_variable(*number, mark.as_bytes()))
        .filter_map(Pid::from_raw)
        .collect()
}

/// A process that has ended and not been waited for has no environment.
fn has_variable(pid: i32, start: &[u8]) -> bool {
    let read = |file: File| {
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(file, MOST_ENVIRONMENT), &mut bytes).map(|_| bytes)
    };
    let environment = File::open(format!("/proc/{pid}/environ"))
        .and_then(read)
        .unwrap_or_default();
    environment
        .split(|byte| *byte == 0)
        .any(|variable| variable.starts_with(start))
}

/// Whether anything is there: the directory, a process or a cgroup.
#[must_use]
pub fn remains() -> Vec<String> {
    let dir = Path::new(DIR).exists().then(|| DIR.to_owned());
    let processes = processes().into_iter().map(|pid| format!("process {pid}"));
    let cgroups = cgroups::of_nodes()
        .into_iter()
        .map(|path| path.display().to_string());
    dir.into_iter().chain(processes).chain(cgroups).collect()
}
