//! Where Slurm puts the cgroups of its jobs. Nothing else in sw-bpf knows these names.
//!
//! | Version | Directory of a job |
//! |---|---|
//! | 1 | `/slurm/uid_U/job_J`, or `/slurm_NODE/…`, in each hierarchy that Slurm uses |
//! | 2 | `/SLICE…/slurmstepd.scope/job_J`, or `…/NODE_slurmstepd.scope/…`; from Slurm 26.05 on the SLUID for `job_J` |
//!
//! Below it, on version 1 `step_X/task_N`, and on version 2 `step_X/slurm` and `step_X/user/task_N`. Whoever runs a job
//! can make cgroups below its tasks, and whoever has a delegated cgroup can make them anywhere below that. So a name
//! counts at its own depth only, and only where the directories belong to whoever owns the root of the hierarchy.

mod path;
mod places;
mod procs;
mod role;
#[cfg(test)]
mod tests;

use std::fmt;

use super::Cgroup;
use crate::job::id::{Sluid, checked_job, number};
pub use path::JobPath;
pub use places::Nest;
pub use procs::ToldIds;
pub use role::{Role, role};

/// What the directory of a job is named by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobDirName {
    /// `job_123`: the raw id.
    Id(u32),
    /// `s` and 13 characters, from Slurm 26.05 on.
    Sluid(Sluid),
}

impl JobDirName {
    /// The job whose directory has exactly this name.
    pub fn from_dir(name: &str) -> Option<Self> {
        match name.strip_prefix("job_") {
            Some(rest) => match number(rest).and_then(checked_job) {
                Some(id) => Some(Self::Id(id)),
                None => Sluid::from_canonical(rest).map(Self::Sluid),
            },
            None => Sluid::from_canonical(name).map(Self::Sluid),
        }
    }
}

impl fmt::Display for JobDirName {
    /// As it is typed: `123`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Sluid(sluid) => sluid.fmt(f),
        }
    }
}

/// A job that has a cgroup on this host.
#[derive(Debug, Clone)]
pub struct JobPlace {
    /// Its cgroup, in all hierarchies that have it.
    pub cgroup: Cgroup,
    /// Slurm's name of the node, where several of them share the host and the path says so.
    pub node: Option<String>,
    /// Whose job it is; `None` where neither the path nor a process of it tells.
    pub uid: Option<u32>,
    /// What its directory is named by.
    pub name: JobDirName,
}

/// What the name of a directory above jobs says of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NodePart<'a>(Option<&'a str>);

impl<'a> NodePart<'a> {
    /// `slurm_NODE` and `slurm`.
    fn of_v1(name: &'a str) -> Option<Self> {
        match name.strip_prefix("slurm")? {
            "" => Some(Self(None)),
            rest => Self::named(rest.strip_prefix('_')?),
        }
    }

    /// `NODE_slurmstepd.scope` and `slurmstepd.scope`.
    fn of_v2(name: &'a str) -> Option<Self> {
        match name.strip_suffix("slurmstepd.scope")? {
            "" => Some(Self(None)),
            rest => Self::named(rest.strip_suffix('_')?),
        }
    }

    fn named(node: &'a str) -> Option<Self> {
        (!node.is_empty()).then_some(Self(Some(node)))
    }

    fn to_owned(self) -> Option<String> {
        self.0.map(str::to_owned)
    }
}

/// `1000` for `uid_1000`.
fn uid_of(name: &str) -> Option<u32> {
    number(name.strip_prefix("uid_")?)
}

/// Whether a directory is one of systemd's slices, below which scopes are.
fn is_slice(name: &str) -> bool {
    name.strip_suffix(".slice").is_some_and(|slice| !slice.is_empty())
}
