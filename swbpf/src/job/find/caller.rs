//! Who asks for a job.

use std::path::Path;

use crate::job::cgroup::{Hierarchies, slurm::JobDirName};

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Caller {
    /// The effective user id; 0 may look at every job.
    pub uid: u32,
    /// The job that the caller is in, or was before it left.
    pub job: Option<JobDirName>,
    /// Slurm's name of the node that the caller is on, by `SLURMD_NODENAME` of its job.
    pub node: Option<String>,
    /// Name of the host up to its first dot, which is mostly Slurm's name of the node.
    pub host: Option<String>,
}

impl Caller {
    /// The calling process. Where it has left its job, `left` is the directory that it was in or below: on version 2 nothing else
    /// of it stays there.
    pub fn current(hierarchies: &Hierarchies, left: Option<&Path>) -> Self {
        let job = match left {
            Some(left) => hierarchies.slurm_job_at(left),
            None => hierarchies.own_slurm_job(),
        };
        // Without an answer the caller is in no job, which makes it no more than a stranger to it.
        let job = job.ok().flatten();
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self {
            uid: rustix::process::geteuid().as_raw(),
            job: job.map(|(place, _)| place.name),
            node: std::env::var("SLURMD_NODENAME").ok(),
            host: host.split('.').next().map(str::to_owned),
        }
    }
}
