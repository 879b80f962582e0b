//! Whose job it is, by the processes in it: version 2 does not write that into the path.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Role, role};
use crate::job::cgroup::{Cgroup, tree};
use crate::job::kernfile;

/// Cgroups of a job that are looked at: a process is in one of the first, or the job is about to start or to end.
const MAX_CGROUPS: usize = 256;

/// Processes of one cgroup that are looked at.
const MAX_PROCS: usize = 64;

/// Real uid of a process in `cgroup`, the cgroup of a job, that is not Slurm's own. `proc` is `/proc`.
pub(super) fn of_job(cgroup: &Cgroup, proc: &Path) -> Option<u32> {
    let job = cgroup.path();
    let mut dirs = vec![job.to_path_buf()];
    let mut next = 0;
    while next < dirs.len().min(MAX_CGROUPS) {
        let dir = dirs[next].clone();
        next += 1;
        let below = dir.strip_prefix(job).ok()?;
        if matches!(role(cgroup.version(), below), Role::Slurmstepd { .. }) {
            continue;
        }
        let uid = oldest_uid(proc, &tree::procs_of(&dir).unwrap_or_default());
        if uid.is_some() {
            return uid;
        }
        dirs.extend(children(&dir));
    }
    None
}

/// Uid of the process that was started first: a container of the job may run as others.
fn oldest_uid(proc: &Path, pids: &[u32]) -> Option<u32> {
    let started = pids.iter().take(MAX_PROCS).filter_map(|pid| {
        let dir = proc.join(pid.to_string());
        Some((started_at(&dir)?, real_uid(&dir)?))
    });
    started.min().map(|(_, uid)| uid)
}

/// When a process was started, in ticks since boot.
fn started_at(dir: &Path) -> Option<u64> {
    let stat = kernfile::read_text(&dir.join("stat")).ok()?;
    kernfile::stat_fields(&stat)?.nth(19)?.parse().ok()
}

/// The real uid, which a program with the set-uid bit does not change.
fn real_uid(dir: &Path) -> Option<u32> {
    let status = kernfile::read_text(&dir.join("status")).ok()?;
    // The name stands in the first line, with its newlines escaped.
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    uids.split_ascii_whitespace().next()?.parse().ok()
}

/// As many directories in `dir` as may be looked at.
fn children(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    entries
        .map_while(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .take(MAX_CGROUPS)
        .collect()
}
