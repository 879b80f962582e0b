//! What is to be measured.

use std::path::{Path, PathBuf};

use crate::{
    cli,
    error::Error,
    job::cgroup::{
        Cgroup, Controller, Hierarchies,
        slurm::{JobPlace, Role, role},
    },
    snapshot::{OwnProcesses, Target, TargetKind},
};

/// A target that was found.
pub struct Chosen {
    /// Its cgroup.
    pub cgroup: Cgroup,
    /// How it is told.
    pub told: Target,
    /// The Slurm job that it is, or is a part of.
    pub job: Option<OfJob>,
    /// Whether nothing has been in it yet.
    pub from_birth: bool,
}

/// A Slurm job, and where in it the target is.
pub struct OfJob {
    /// The job.
    pub place: JobPlace,
    /// Path of the target below the directory of the job.
    pub below: PathBuf,
}

impl Chosen {
    /// What the target is to its job.
    pub fn role(&self) -> Option<Role> {
        let job = self.job.as_ref()?;
        Some(role(job.place.cgroup.version(), &job.below))
    }
}

/// The cgroup that was named.
pub fn choose(hierarchies: &Hierarchies, named: &cli::Target) -> Result<Chosen, Error> {
    let (cgroup, kind, pid) = match named {
        cli::Target::Cgroup(path) => (hierarchies.cgroup_at(path)?, TargetKind::Cgroup, None),
        cli::Target::Pid(pid) => (hierarchies.cgroup_of_pid(*pid)?, TargetKind::Pid, Some(*pid)),
        cli::Target::Own => {
            let pid = std::process::id();
            (hierarchies.cgroup_of_pid(pid)?, TargetKind::Pid, Some(pid))
        }
    };
    Ok(Chosen {
        told: told(&cgroup, kind, pid, None),
        job: job_of(hierarchies, &cgroup),
        from_birth: false,
        cgroup,
    })
}

/// The job that a cgroup belongs to.
fn job_of(hierarchies: &Hierarchies, cgroup: &Cgroup) -> Option<OfJob> {
    let (place, below) = hierarchies.slurm_job_at(cgroup.path()).ok()??;
    Some(OfJob { place, below })
}

/// A target as it is told.
pub fn told(cgroup: &Cgroup, kind: TargetKind, pid: Option<u32>, command: Option<Vec<String>>) -> Target {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    Target {
        kind,
        cgroup: text(cgroup.path()),
        cgroup_id: cgroup.id(),
        cgroup_version: cgroup.dir(Controller::Memory).map(|dir| dir.version.number()),
        pid,
        own_processes: OwnProcesses::Elsewhere,
        command,
    }
}
