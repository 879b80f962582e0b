//! Who asks for a job.

use crate::job::cgroup::{Hierarchies, slurm::JobDirName};

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Caller {
    /// The effective user id; 0 may look at every job.
    pub uid: u32,
    /// The job that the caller is in.
    pub job: Option<JobDirName>,
    /// Slurm's name of the node that the caller is on, by `SLURMD_NODENAME` of its job.
    pub node: Option<String>,
    /// Name of the host up to its first dot, which is mostly Slurm's name of the node.
    pub host: Option<String>,
}

impl Caller {
    /// The calling process.
    pub fn current(hierarchies: &Hierarchies) -> Self {
        // Without an answer the caller is in no job, which makes it no more than a stranger to it.
        let job = hierarchies.slurm_job_of_pid(std::process::id()).ok().flatten();
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self {
            uid: rustix::process::geteuid().as_raw(),
            job: job.map(|(place, _)| place.name),
            node: std::env::var("SLURMD_NODENAME").ok(),
            host: host.split('.').next().map(str::to_owned),
        }
    }
}
