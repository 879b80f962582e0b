//! What the processes of a job tell of it: whose it is, and its other ids.
//!
//! A job can hold as many cgroups and processes as its user likes, so only some are looked at: the first, which Slurm
//! started.

use std::fs;
use std::path::{Path, PathBuf};

use super::{JobDirName, JobPlace, Role, role};
use crate::job::cgroup::{Cgroup, tree};
use crate::job::id::{Sluid, checked_job, number};
use crate::job::kernfile;

/// Cgroups of a job that are looked at: a process is in one of the first, or the job is about to start or to end.
const MAX_CGROUPS: usize = 256;

/// Processes of one cgroup that are looked at.
const MAX_PROCS: usize = 64;

/// Ids of a job in the environment of its processes, which its user could have changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToldIds {
    /// The raw id.
    pub raw: Option<u32>,
    /// The array and the task.
    pub array: Option<(u32, u32)>,
    /// The first component, and which one this is.
    pub component: Option<(u32, u32)>,
    /// The unique id.
    pub sluid: Option<Sluid>,
}

impl JobPlace {
    /// Its ids, as the environment of one of its processes has them; none where no process can be read. `proc` is
    /// `/proc`.
    pub(in crate::job) fn told_ids(&self, proc: &Path) -> ToldIds {
        let found = walk(&self.cgroup, |_, pids| {
            pids.iter()
                .find_map(|pid| ToldIds::of(&proc.join(pid.to_string()).join("environ"), self.name))
        });
        found.unwrap_or_default()
    }
}

impl ToldIds {
    /// Those of an environment, if it is that of the job `name`.
    pub fn of(environ: &Path, name: JobDirName) -> Option<Self> {
        let environ = kernfile::read_text(environ).ok()?;
        let get = |key: &str| {
            environ
                .split('\0')
                .find_map(|entry| entry.strip_prefix(key)?.strip_prefix('='))
        };
        let id = |key| get(key).and_then(number).and_then(checked_job);
        let told = Self {
            raw: id("SLURM_JOB_ID"),
            array: id("SLURM_ARRAY_JOB_ID").zip(get("SLURM_ARRAY_TASK_ID").and_then(number)),
            component: id("SLURM_HET_JOB_ID").zip(get("SLURM_HET_JOB_OFFSET").and_then(number)),
            sluid: get("SLURM_JOB_SLUID").and_then(|sluid| sluid.parse().ok()),
        };
        match name {
            JobDirName::Sluid(own) => (told.sluid == Some(own)).then_some(told),
            // A step that spans components has the first one's id in all of them.
            JobDirName::Id(own) => {
                let told = told.or_component(own, &environ);
                (told.raw == Some(own)).then_some(told)
            }
        }
    }

    /// The same, and the component that has the raw id `own` by `SLURM_JOB_ID_HET_GROUP_N`.
    fn or_component(mut self, own: u32, environ: &str) -> Self {
        let components: Vec<(u32, u32)> = environ
            .split('\0')
            .filter_map(|entry| {
                let (offset, id) = entry.strip_prefix("SLURM_JOB_ID_HET_GROUP_")?.split_once('=')?;
                Some((number(offset)?, number(id).and_then(checked_job)?))
            })
            .collect();
        let leader = components.iter().find(|(offset, _)| *offset == 0);
        let own_part = components.iter().find(|(_, id)| *id == own);
        if let (None, Some((_, leader)), Some((offset, _))) = (self.component, leader, own_part) {
            self.component = Some((*leader, *offset));
            self.raw = Some(own);
        }
        self
    }
}

/// The step in which Slurm itself holds a process, so that it is there before all others.
const EXTERN: &str = "step_extern";

/// Real uid of a process in `cgroup`, the cgroup of a job, that is not Slurm's own. `proc` is `/proc`.
pub(super) fn uid(cgroup: &Cgroup, proc: &Path) -> Option<u32> {
    walk(cgroup, |below, pids| {
        let may_be_slurms = below.starts_with(EXTERN);
        // The process that was started first: a container of the job may run as others.
        let started = pids.iter().filter_map(|pid| {
            let dir = proc.join(pid.to_string());
            let uid = real_uid(&dir).filter(|uid| *uid != 0 || !may_be_slurms)?;
            Some((started_at(&dir)?, uid))
        });
        started.min().map(|(_, uid)| uid)
    })
}

/// The first answer of `look`, which is given one cgroup of a job after the other, by its path below that of the job, and its
/// processes, Slurm's own on version 2 left out.
fn walk<T>(cgroup: &Cgroup, mut look: impl FnMut(&Path, &[u32]) -> Option<T>) -> Option<T> {
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
        let pids = tree::procs_of(&dir).unwrap_or_default();
        let found = look(below, &pids[..pids.len().min(MAX_PROCS)]);
        if found.is_some() {
            return found;
        }
        dirs.extend(children(&dir));
    }
    None
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
