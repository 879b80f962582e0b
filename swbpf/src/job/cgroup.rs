//! Cgroups: where they are mounted, which one a target is, and one of its own for a command.
//!
//! On version 1 each controller may have a hierarchy of its own, so one target is a directory in each; on version 2
//! there is one hierarchy; a hybrid machine has both. All code that knows these layouts is in this room:
//!
//! - [`Hierarchies`] finds what is mounted, and a [`Cgroup`] by path or by process;
//! - [`Cgroup`] is one target in all hierarchies;
//! - [`OwnCgroup`] makes one for a command and removes it;
//! - [`slurm`] knows the directories of jobs.

mod error;
#[cfg(test)]
pub(crate) mod fake;
mod hierarchies;
mod membership;
mod mounts;
mod outside;
mod own;
mod place;
pub mod saved_path;
pub mod slurm;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::kernfile;
/// What reads the tables of the kernel, for the fuzz targets.
#[doc(hidden)]
pub mod parse {
    pub use super::{membership::parse as membership, mounts::parse as mounts};
}

pub use error::CgroupError;
pub use hierarchies::Hierarchies;
pub use outside::{Inside, Outside};
pub use own::{JoinFiles, OwnCgroup};
pub use tree::{Descendant, subdirectories};

/// What works for a process whose cgroup cannot be seen.
pub const WAY_TO_UNSEEN: &str = "run sw-bpf outside of this container or cgroup namespace; `sw-bpf attach --cgroup PATH` and \
     `sw-bpf --once --cgroup PATH` measure what can be seen";

/// Version of a hierarchy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Version {
    /// One hierarchy for each controller or group of them.
    V1 = 1,
    /// One hierarchy for all.
    V2 = 2,
}

impl Version {
    /// 1 or 2.
    pub fn number(self) -> u8 {
        self as u8
    }
}

/// What a hierarchy accounts or limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Controller {
    /// Memory: the hierarchy that decides which cgroup a page belongs to.
    Memory,
    /// CPU time; on version 2 every cgroup counts it.
    Cpuacct,
    /// CPU quota.
    Cpu,
    /// Which processors may be used.
    Cpuset,
    /// Stopping; on version 2 every cgroup can.
    Freezer,
    /// Pages of hugetlbfs.
    Hugetlb,
    /// Number of tasks.
    Pids,
}

impl Controller {
    /// All of them; the first that a target has names it.
    pub const ALL: [Self; 7] = [
        Self::Memory,
        Self::Freezer,
        Self::Cpuacct,
        Self::Cpu,
        Self::Cpuset,
        Self::Hugetlb,
        Self::Pids,
    ];

    /// Its name in mount options and in `cgroup.controllers`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cpuacct => "cpuacct",
            Self::Cpu => "cpu",
            Self::Cpuset => "cpuset",
            Self::Freezer => "freezer",
            Self::Hugetlb => "hugetlb",
            Self::Pids => "pids",
        }
    }

    fn by_name(name: &[u8]) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|controller| controller.name().as_bytes() == name)
    }
}

/// The directory of a cgroup in one hierarchy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupDir {
    /// Version of the hierarchy.
    pub version: Version,
    /// The directory.
    #[serde(with = "saved_path")]
    pub path: PathBuf,
    /// Where the hierarchy is mounted: `path` or above it.
    #[serde(with = "saved_path")]
    pub mount_point: PathBuf,
}

impl CgroupDir {
    /// The directory and those above it, up to the mount point.
    pub fn ancestors(&self) -> impl Iterator<Item = &Path> {
        self.path
            .ancestors()
            .take_while(|dir| dir.starts_with(&self.mount_point))
    }
}

/// Where a target is in one hierarchy.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Place {
    dir: CgroupDir,
    /// Whether the directory holds the target alone; else it is an ancestor, whose limits hold for the target too.
    exact: bool,
}

/// One target: a cgroup, with its directory in each hierarchy.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Cgroup {
    main: CgroupDir,
    id: u64,
    places: BTreeMap<Controller, Place>,
}

impl Cgroup {
    /// The cgroup whose directory is `main`, with its places in the hierarchies of the controllers.
    fn new(main: CgroupDir, places: BTreeMap<Controller, Place>) -> Result<Self, CgroupError> {
        let id = directory_id(&main.path).map_err(|e| CgroupError::from_io("look at", &main.path, e))?;
        Ok(Self { main, id, places })
    }

    /// One that was removed before it was looked at: `path` is where it was, in the hierarchy that counts memory.
    pub fn removed(path: PathBuf, id: u64, version: Version, mount_point: PathBuf) -> Self {
        let main = CgroupDir {
            version,
            path,
            mount_point,
        };
        let place = Place {
            dir: main.clone(),
            exact: true,
        };
        Self {
            main,
            id,
            places: BTreeMap::from([(Controller::Memory, place)]),
        }
    }

    /// Its directory in the hierarchy that counts memory; where it has none there, the one by which it was named.
    pub fn path(&self) -> &Path {
        &self.main.path
    }

    /// Inode number of [`path`](Self::path), which is the kernel's cgroup id.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Version of the hierarchy of [`path`](Self::path).
    pub fn version(&self) -> Version {
        self.main.version
    }

    /// Its directory in the hierarchy of `controller`; `None` where it has none of its own there.
    pub fn dir(&self, controller: Controller) -> Option<&CgroupDir> {
        self.places
            .get(&controller)
            .filter(|place| place.exact)
            .map(|place| &place.dir)
    }

    /// The same, or else the nearest one above it: good for limits, which hold for all below, never for accounting.
    pub fn nearest_dir(&self, controller: Controller) -> Option<&CgroupDir> {
        self.places.get(&controller).map(|place| &place.dir)
    }

    /// Whether it is still there, and not another that was made in its place under the same name.
    pub fn exists(&self) -> bool {
        directory_id(&self.main.path).is_ok_and(|id| id == self.id)
    }

    /// The processes in it and below it, in ascending order; none where it is gone.
    ///
    /// Processes that are hidden from this PID namespace are left out.
    pub fn procs(&self) -> Result<Vec<u32>, CgroupError> {
        if self.exists() {
            tree::procs(&self.main.path)
        } else {
            Ok(Vec::new())
        }
    }

    /// The cgroup at `path` below it; in the other hierarchies the one of the same path there, else none.
    ///
    /// `None` where there is none, or `path` has other parts than names.
    pub fn below(&self, path: &Path) -> Option<Self> {
        let is_plain = |part| matches!(part, Component::Normal(_));
        if !path.components().all(is_plain) {
            return None;
        }
        let at = |dir: &CgroupDir| CgroupDir {
            path: dir.path.join(path),
            ..dir.clone()
        };
        let main = at(&self.main);
        let places = self.places.iter().filter(|(_, place)| place.exact);
        let places = places
            .map(|(controller, place)| (*controller, at(&place.dir)))
            .filter(|(_, dir)| dir.path.is_dir())
            .map(|(controller, dir)| (controller, Place { dir, exact: true }));
        Self::new(main, places.collect()).ok()
    }

    /// The cgroups below it, each after its parent.
    pub fn descendants(&self) -> Result<Vec<Descendant>, CgroupError> {
        tree::descendants(&self.main.path)
    }

    /// Whether a process is in it or below it; not where it is gone. What has been populated and is no more has ended.
    pub fn is_populated(&self) -> Result<bool, CgroupError> {
        if self.exists() {
            tree::is_populated(&self.main)
        } else {
            Ok(false)
        }
    }
}

/// Inode number of a directory.
fn directory_id(path: &Path) -> std::io::Result<u64> {
    fs::metadata(path).map(|metadata| metadata.ino())
}
