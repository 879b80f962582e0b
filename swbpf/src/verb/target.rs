//! What is to be measured.

use std::path::Path;

use crate::{
    cli,
    error::Error,
    fold::Place,
    job::cgroup::{Cgroup, Controller, Hierarchies},
    snapshot::{Target, TargetKind},
};

/// A target that was found.
pub struct Chosen {
    /// Its cgroup.
    pub cgroup: Cgroup,
    /// How it is told.
    pub told: Target,
    /// What it is to a Slurm job.
    pub place: Place,
    /// Whether nothing has been in it yet.
    pub from_birth: bool,
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
        place: place(cgroup.path()),
        from_birth: false,
        cgroup,
    })
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
        command,
    }
}

/// What the directory of a target is to a Slurm job.
fn place(path: &Path) -> Place {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    if name
        .strip_prefix("job_")
        .is_some_and(|id| id.parse::<u32>().is_ok())
    {
        Place::Job
    } else if let Some(step) = name.strip_prefix("step_") {
        Place::Step(step.to_owned())
    } else {
        Place::Other
    }
}
