//! Leaves the target alone: sw-bpf started from inside of what it is to measure moves out, so that none of its own memory and
//! CPU time is among the numbers.

use std::env;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::stand_in::StandIn;
use crate::{
    job::cgroup::{Cgroup, Hierarchies, Inside, Outside, Version},
    out::{self, text},
    snapshot::OwnProcesses,
};

/// Set for the process that executes itself anew, to the directory that it was in: the target's, or one below it.
const HAS_LEFT: &str = "SWBPF_HAS_LEFT";

/// What is outside of the target, and inside of it, of a process that has left it. Dropped, it is undone.
pub struct Left {
    /// What stays behind, where it has left a step of Slurm's on version 2.
    stand_in: Option<StandIn>,
    _outside: Outside,
}

impl Left {
    /// That of this process, if it has left its target: to be asked at once, since until then Slurm cannot end it.
    pub fn look(hierarchies: &Hierarchies) -> Option<Self> {
        let dir = left_from()?;
        let outside = Outside::entered(hierarchies)?;
        let job = hierarchies.slurm_job_at(&dir).ok().flatten();
        let is_by_cgroup_alone = job.is_some_and(|(job, _)| job.cgroup.version() == Version::V2);
        Some(Self {
            stand_in: is_by_cgroup_alone.then(|| stand_in(&dir)).flatten(),
            _outside: outside,
        })
    }
}

fn stand_in(step: &Path) -> Option<StandIn> {
    let placed = StandIn::place(step);
    if let Err(error) = &placed {
        out::tell_aside(&text::no_stand_in(&error.to_string()));
    }
    placed.ok()
}

/// Where sw-bpf itself is.
pub struct Whereabouts {
    /// Whether its own processes are among the numbers.
    pub own: OwnProcesses,
    /// Why it could not leave, where it could not.
    pub reason: Option<String>,
    left: Option<Left>,
}

impl Whereabouts {
    fn told(own: OwnProcesses) -> Self {
        Self {
            own,
            reason: None,
            left: None,
        }
    }

    /// Process of sw-bpf that is inside of the target all the same, and does nothing there.
    pub fn stand_in(&self) -> Option<u32> {
        Some(self.left.as_ref()?.stand_in.as_ref()?.pid())
    }

    /// Waits until someone ends sw-bpf by what it has left behind; for ever where that is nothing.
    pub async fn ended(&self) {
        match self.left.as_ref().and_then(|left| left.stand_in.as_ref()) {
            Some(stand_in) => stand_in.ended().await,
            None => std::future::pending().await,
        }
    }
}

/// The cgroup that this process was in before it left, if it has: by its own membership it could not be found again.
pub fn left_from() -> Option<PathBuf> {
    env::var_os(HAS_LEFT).map(PathBuf::from)
}

/// Leaves `target` where this process is in it. Then it executes itself anew, since memory that it has touched would stay
/// charged to the target; where that works, this does not return. `left` is what it has left already.
pub fn leave(hierarchies: &Hierarchies, target: &Cgroup, left: Option<Left>) -> Whereabouts {
    match (hierarchies.caller_inside(target), left) {
        (Inside::No, Some(left)) => {
            return Whereabouts {
                left: Some(left),
                ..Whereabouts::told(OwnProcesses::Left)
            };
        }
        (Inside::No, None) => return Whereabouts::told(OwnProcesses::Elsewhere),
        (Inside::ForGood, _) => return Whereabouts::told(OwnProcesses::Counted),
        (Inside::Yes, _) => {}
    }
    let reason = if left_from().is_some() {
        "it has tried to already".to_owned()
    } else {
        let from = hierarchies.caller_below(target);
        let from = from.unwrap_or_else(|| target.path().to_path_buf());
        match Outside::enter(hierarchies, target) {
            Err(error) => error.to_string(),
            Ok(outside) => {
                let error = execute_anew(&from);
                drop(outside);
                format!("cannot execute itself anew: {error}")
            }
        }
    };
    Whereabouts {
        reason: Some(reason),
        ..Whereabouts::told(OwnProcesses::Counted)
    }
}

fn execute_anew(left: &Path) -> std::io::Error {
    let mut arguments = env::args_os();
    let name = arguments.next().unwrap_or_default();
    Command::new("/proc/self/exe")
        .arg0(name)
        .args(arguments)
        .env(HAS_LEFT, left)
        .exec()
}
