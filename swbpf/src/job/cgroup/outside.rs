//! This process itself, where it is in the cgroup that is to be measured: moved out of it, into one of its own.

use std::fs;
use std::path::{Path, PathBuf};

use super::membership;
use super::own::write;
use super::{Cgroup, CgroupDir, CgroupError, Controller, Hierarchies};

/// The controllers by which a process counts for a target. In the others it stays: Slurm ends the processes of a job by them.
const COUNTING: [Controller; 2] = [Controller::Memory, Controller::Cpuacct];

/// Whether this process is in a target or below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inside {
    /// It is not.
    No,
    /// It is, and can leave.
    Yes,
    /// It is, where nothing can be left: in the root, or by a hierarchy that counts nothing.
    ForGood,
}

/// The cgroup outside of the target into which this process has moved.
#[derive(Debug)]
pub struct Outside {
    dirs: Vec<CgroupDir>,
}

impl Hierarchies {
    /// Whether this process is in `target` or below it.
    pub fn caller_inside(&self, target: &Cgroup) -> Inside {
        let inside = self.inside(target);
        let counts = |dir: &&CgroupDir| dir.path == target.path();
        let is_root = |dir: &CgroupDir| dir.path == dir.mount_point;
        match inside.iter().find(counts) {
            None => Inside::No,
            Some(dir) if is_root(dir) => Inside::ForGood,
            Some(_) if COUNTING.iter().any(|controller| main_is(target, *controller)) => Inside::Yes,
            Some(_) => Inside::ForGood,
        }
    }

    /// The cgroup of this process, where that is `target` or below it, in the hierarchy of the target's path.
    pub fn caller_below(&self, target: &Cgroup) -> Option<PathBuf> {
        let members = membership::of_process("self").unwrap_or_default();
        Controller::ALL.into_iter().find_map(|controller| {
            let hierarchy = self.hierarchy(controller)?;
            let own = hierarchy.dir_of(hierarchy.membership(&members)?)?;
            (main_is(target, controller) && own.path.starts_with(target.path())).then_some(own.path)
        })
    }

    /// The directories of the target that this process is in or below.
    fn inside(&self, target: &Cgroup) -> Vec<CgroupDir> {
        let members = membership::of_process("self").unwrap_or_default();
        let mut found: Vec<CgroupDir> = Vec::new();
        for controller in Controller::ALL {
            let own = self
                .hierarchy(controller)
                .and_then(|hierarchy| hierarchy.dir_of(hierarchy.membership(&members)?));
            if let (Some(own), Some(dir)) = (own, target.dir(controller))
                && own.path.starts_with(&dir.path)
                && !found.contains(dir)
            {
                found.push(dir.clone());
            }
        }
        found
    }
}

fn main_is(target: &Cgroup, controller: Controller) -> bool {
    target
        .dir(controller)
        .is_some_and(|dir| dir.path == target.path())
}

impl Outside {
    /// Makes it in the root of each hierarchy in which this process counts for `target`, and moves this process there. What it
    /// has touched until then stays charged to the target, until it executes itself anew.
    pub fn enter(hierarchies: &Hierarchies, target: &Cgroup) -> Result<Self, CgroupError> {
        let counting: Vec<&CgroupDir> = COUNTING.iter().filter_map(|c| target.dir(*c)).collect();
        let mut inside = hierarchies.inside(target);
        inside.retain(|dir| counting.contains(&dir));
        let mut outside = Self { dirs: Vec::new() };
        for dir in inside {
            remove_stale(&dir.mount_point);
            let path = dir.mount_point.join(name());
            fs::create_dir(&path).map_err(|e| CgroupError::from_io("make", &path, e))?;
            write(&path.join("cgroup.procs"), "0")?;
            outside.dirs.push(CgroupDir { path, ..dir });
        }
        Ok(outside)
    }

    /// The one that this process was moved to before it executed itself anew.
    pub fn entered(hierarchies: &Hierarchies) -> Option<Self> {
        let members = membership::of_process("self").unwrap_or_default();
        let mut dirs: Vec<CgroupDir> = Vec::new();
        for controller in COUNTING {
            let own = hierarchies
                .hierarchy(controller)
                .and_then(|hierarchy| hierarchy.dir_of(hierarchy.membership(&members)?));
            if let Some(own) = own.filter(|dir| dir.path == dir.mount_point.join(name()))
                && !dirs.contains(&own)
            {
                dirs.push(own);
            }
        }
        (!dirs.is_empty()).then_some(Self { dirs })
    }
}

impl Drop for Outside {
    /// Moves this process to the root, where it lives on for a moment, and removes the cgroup.
    fn drop(&mut self) {
        for dir in &self.dirs {
            // What cannot be removed is an empty directory left.
            let _ = write(&dir.mount_point.join("cgroup.procs"), "0");
            let _ = fs::remove_dir(&dir.path);
        }
    }
}

/// What such a cgroup is called, before the process id.
const NAME: &str = "sw-bpf-attach-";

fn name() -> PathBuf {
    PathBuf::from(format!("{NAME}{}", std::process::id()))
}

/// Removes what processes left behind that were killed, also one of this process's own id.
fn remove_stale(root: &Path) {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let pid = name
            .to_str()
            .and_then(|name| name.strip_prefix(NAME)?.parse::<u32>().ok());
        if let Some(pid) = pid
            && (pid == std::process::id() || !Path::new(&format!("/proc/{pid}")).exists())
        {
            // One that a process is in stays.
            let _ = fs::remove_dir(entry.path());
        }
    }
}
