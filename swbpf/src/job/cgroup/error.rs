//! What can go wrong with cgroups, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use super::Version;
use crate::error::{Error, MOUNT_PROC, NO_PROC};

/// What can go wrong with cgroups. Each message names the path and the next step.
///
/// Paths stand in quotes with control characters escaped: whoever made the cgroup chose its name.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// No hierarchy is mounted.
    #[error("no cgroup hierarchy is mounted; mount one: `mount -t cgroup2 none /sys/fs/cgroup`")]
    NotMounted,
    /// The files of processes cannot be seen at all.
    #[error("{NO_PROC}: {MOUNT_PROC}")]
    NoProc,
    /// There is no such cgroup, or no more.
    #[error(
        "no cgroup {path:?}: it has ended or never was; running ones are listed by `systemd-cgls` or `ls /sys/fs/cgroup`"
    )]
    Gone {
        /// The path as it was given.
        path: PathBuf,
    },
    /// The path exists and is not the directory of a cgroup.
    #[error("{path:?} is not the directory of a cgroup; give one below {example:?}")]
    NotACgroup {
        /// The path as it was given.
        path: PathBuf,
        /// Where cgroups are.
        example: PathBuf,
    },
    /// There is no such process, or it has ended.
    #[error("no process {pid}: it has ended or never was; look for it with `ps -p {pid}`")]
    NoProcess {
        /// The process id as it was given.
        pid: u32,
    },
    /// The process is in a cgroup that is not below any mount that is seen from here.
    #[error(
        "process {pid} is in cgroup {path:?}, which cannot be seen here: {}",
        super::WAY_TO_UNSEEN
    )]
    NotVisible {
        /// The process.
        pid: u32,
        /// Its cgroup by `/proc/PID/cgroup`.
        path: PathBuf,
    },
    /// This user may not do this.
    #[error("cannot {action} {path:?}: permission denied; run as root, or as the owner of that cgroup")]
    Permission {
        /// What was to be done.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
    },
    /// The kernel refused for another reason.
    #[error("cannot {action} {path:?}: {source}; `sw-bpf attach --cgroup` needs only to read")]
    Io {
        /// What was to be done.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// No cgroup can be made where it is to be.
    #[error("cannot make a cgroup for the command: {path:?}: {source}: {}", way_to_a_cgroup(source, *version))]
    MayNotMake {
        /// Where it was tried.
        path: PathBuf,
        /// Of which version.
        version: Version,
        /// The kernel's answer.
        source: io::Error,
    },
    /// No hierarchy counts memory.
    #[error(
        "no cgroup hierarchy counts memory here; boot without cgroup_disable=memory, or mount the controller"
    )]
    NoMemoryController,
    /// All names for a new cgroup are taken.
    #[error(
        "cgroup {path:?} exists already, and so do all before it; remove those that no process is in with `rmdir`"
    )]
    Taken {
        /// The last name tried.
        path: PathBuf,
    },
    /// On version 2 no ancestor lets its children count memory.
    #[error(
        "cannot have the memory of a child of {path:?} counted: {source}; run as root, or move its processes into a \
         child and write +memory to its cgroup.subtree_control"
    )]
    NoMemoryForChildren {
        /// The caller's own cgroup.
        path: PathBuf,
        /// Why the kernel refused there.
        source: io::Error,
    },
    /// On version 2 the own cgroup would have to lie outside of a limit that holds for the caller.
    #[error(
        "a cgroup for the command would escape {file} of {path:?}, whose own processes bar it from having children \
         that count memory; start sw-bpf from a cgroup without limits of its own"
    )]
    WouldEscapeLimit {
        /// The cgroup that has the limit.
        path: PathBuf,
        /// The file that holds it.
        file: &'static str,
    },
    /// Processes are left in a cgroup that was to be removed.
    #[error(
        "left behind: {paths:?}: processes {pids:?} still run there; end them, then `rmdir` each of the directories"
    )]
    InUse {
        /// The directories: one in each hierarchy.
        paths: Vec<PathBuf>,
        /// At most ten of the processes.
        pids: Vec<u32>,
    },
    /// More cgroups below the directory than are followed.
    #[error("more than {max} cgroups below {path:?}; name one further down")]
    TooMany {
        /// The directory.
        path: PathBuf,
        /// How many are followed.
        max: usize,
    },
}

impl From<CgroupError> for Error {
    fn from(error: CgroupError) -> Self {
        match error {
            CgroupError::Gone { path } => Self::CgroupGone { path },
            CgroupError::NotACgroup { path, .. } => Self::NotACgroup { path },
            CgroupError::NoProcess { pid } => Self::NoSuchProcess { pid },
            CgroupError::Permission { action, path } => Self::Permission { action, path },
            CgroupError::MayNotMake {
                path,
                version,
                source,
            } => Self::NoOwnCgroup {
                path,
                way: way_to_a_cgroup(&source, version),
                why: source.to_string(),
            },
            CgroupError::NotMounted => Self::NoCgroups,
            CgroupError::NoMemoryController => Self::NoController { controller: "memory" },
            other => Self::from(anyhow::Error::from(other)),
        }
    }
}

/// What lets a cgroup be made where it was refused with this answer.
fn way_to_a_cgroup(refusal: &io::Error, version: Version) -> &'static str {
    match (refusal.kind(), version) {
        (io::ErrorKind::ReadOnlyFilesystem, _) => {
            "run sw-bpf outside of the container, or with its cgroup file systems mounted read-write; `sw-bpf attach` and \
             `--once` need only to read"
        }
        (_, Version::V2) => {
            "run as root, or in a cgroup that is yours: `systemd-run --user --scope -p Delegate=yes sw-bpf run -- COMMAND`; \
             `sw-bpf attach` and `--once` need only to read"
        }
        (_, Version::V1) => {
            "run as root, or have root put your shell into a cgroup that is yours: `D=/sys/fs/cgroup/memory/YOU; mkdir $D; \
             chown -R YOU $D; echo PID >$D/cgroup.procs`; `sw-bpf attach` and `--once` need only to read"
        }
    }
}

impl CgroupError {
    /// That no cgroup can be made at `path`.
    pub(super) fn may_not_make(path: PathBuf, version: Version, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::MayNotMake {
                path,
                version,
                source,
            },
            _ => Self::from_io("make", &path, source),
        }
    }

    /// The error of a read of `path`, one of the caller's own files below `/proc`.
    pub(super) fn of_proc(path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::NotFound => Self::NoProc,
            _ => Self::from_io("read", path, source),
        }
    }

    /// The error of a call on `path`, sorted by its cause.
    pub(super) fn from_io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::Permission { action, path },
            _ if super::kernfile::is_gone(&source) => Self::Gone { path },
            _ => Self::Io { action, path, source },
        }
    }
}
