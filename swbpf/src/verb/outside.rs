//! Leaves the target alone: sw-bpf started from inside of what it is to measure moves out, so that none of its own memory and
//! CPU time is among the numbers.

use std::env;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{
    job::cgroup::{Cgroup, Hierarchies, Inside, Outside},
    snapshot::OwnProcesses,
};

/// Set for the process that executes itself anew, to the directory of the target that it has left.
const HAS_LEFT: &str = "SWBPF_HAS_LEFT";

/// Where sw-bpf itself is, and what to undo at the end.
pub struct Whereabouts {
    /// Whether its own processes are among the numbers.
    pub own: OwnProcesses,
    /// Why it could not leave, where it could not.
    pub reason: Option<String>,
    /// Removed when dropped.
    _outside: Option<Outside>,
}

impl Whereabouts {
    fn told(own: OwnProcesses) -> Self {
        Self {
            own,
            reason: None,
            _outside: None,
        }
    }
}

/// The cgroup that this process was in before it left, if it has: by its own membership it could not be found again.
pub fn left_from() -> Option<PathBuf> {
    env::var_os(HAS_LEFT).map(PathBuf::from)
}

/// Leaves `target` where this process is in it. Then it executes itself anew, since memory that it has touched would stay
/// charged to the target; where that works, this does not return.
pub fn leave(hierarchies: &Hierarchies, target: &Cgroup) -> Whereabouts {
    let outside = left_from().and_then(|_| Outside::entered(hierarchies));
    match (hierarchies.caller_inside(target), outside) {
        (Inside::No, Some(outside)) => {
            return Whereabouts {
                _outside: Some(outside),
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
        match Outside::enter(hierarchies, target) {
            Err(error) => error.to_string(),
            Ok(outside) => {
                let error = execute_anew(target.path());
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
