//! Where Slurm puts the cgroups of its jobs. Names of nodes are ours alone, so a directory that has one is ours too.

mod within;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::pace::scaled;

pub use within::{daemon, hook_shell, limit, limited, peak_file, shell, task, usage_bytes};

const ROOT: &str = "/sys/fs/cgroup";
const SLICE: &str = "/sys/fs/cgroup/system.slice";
const NODE: &str = "swbpf";

/// How long killed processes may take to be gone.
const PATIENCE: Duration = Duration::from_secs(10);

/// Name of a node, from 1.
#[must_use]
pub fn node(number: usize) -> String {
    format!("{NODE}{number}")
}

/// Which version Slurm is to use here: 2 where nothing else is mounted.
#[must_use]
pub fn version() -> u8 {
    let is_v2 = Path::new(ROOT).join("cgroup.controllers").exists();
    if is_v2 { 2 } else { 1 }
}

/// Whether the kernel counts the memory of cgroups here, in the version that Slurm is to use.
#[must_use]
pub fn counts_memory() -> bool {
    let root = Path::new(ROOT);
    if version() == 2 {
        let controllers = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
        controllers.split_whitespace().any(|name| name == "memory")
    } else {
        root.join("memory/memory.limit_in_bytes").exists()
    }
}

/// The path of a hierarchy's cgroup in a text such as `/proc/self/cgroup`; on version 2 the controller does not matter.
///
/// # Panics
///
/// Where there is none.
#[must_use]
pub fn path_in<'a>(text: &'a str, controller: &str) -> &'a str {
    let mark = if version() == 2 {
        "0::".to_owned()
    } else {
        format!(":{controller}:")
    };
    let found = text.lines().find_map(|line| Some(line.split_once(&mark)?.1));
    found.unwrap_or_else(|| panic!("no {controller}: {text}"))
}

/// Directory of a job; on version 2 the controller does not matter.
#[must_use]
pub fn job(controller: &str, node: &str, uid: u32, job: u32) -> PathBuf {
    let path = if version() == 2 {
        format!("{SLICE}/{node}_slurmstepd.scope/job_{job}")
    } else {
        format!("{ROOT}/{controller}/slurm_{node}/uid_{uid}/job_{job}")
    };
    PathBuf::from(path)
}

/// Directories of nodes in all hierarchies.
#[must_use]
pub fn of_nodes() -> Vec<PathBuf> {
    let v1 = children(Path::new(ROOT))
        .into_iter()
        .flat_map(|dir| children(&dir));
    let v2 = children(Path::new(SLICE)).into_iter();
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(is_of_node)
    };
    v1.chain(v2)
        .filter(is_ours)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

/// Whether a directory of this name is that of one of our nodes: `slurm_NODE`, or `NODE_slurmstepd.scope` on version 2.
fn is_of_node(name: &str) -> bool {
    let node = name
        .strip_prefix("slurm_")
        .or_else(|| name.strip_suffix("_slurmstepd.scope"));
    let number = node.and_then(|node| node.strip_prefix(NODE));
    number.is_some_and(|number| !number.is_empty() && number.chars().all(|char| char.is_ascii_digit()))
}

/// A directory of version 2 in which Slurm can make its own without systemd: it wants the slice to be there, and a
/// controller behind memory, because version 22.05 does not know the last one of the list.
///
/// # Panics
///
/// Where the controllers are not there.
pub fn prepare_v2() {
    let _ = fs::create_dir(SLICE);
    for dir in [ROOT, SLICE] {
        fs::write(
            Path::new(dir).join("cgroup.subtree_control"),
            "+cpuset +cpu +memory +pids",
        )
        .expect("controllers for jobs");
    }
}

/// Ends all processes in the cgroups of our nodes, and removes these; gives those that stay.
#[must_use]
pub fn clear() -> Vec<PathBuf> {
    let deadline = Instant::now() + scaled(PATIENCE);
    loop {
        let dirs: Vec<_> = of_nodes().iter().flat_map(|dir| tree(dir)).collect();
        for pid in dirs.iter().flat_map(|dir| processes(dir)) {
            let _ = kill_process(pid, Signal::KILL);
        }
        // Children come after their parents.
        for dir in dirs.iter().rev() {
            let _ = fs::remove_dir(dir);
        }
        let left = of_nodes();
        if left.is_empty() || Instant::now() > deadline {
            return left;
        }
        sleep(Duration::from_millis(10));
    }
}

/// Processes in one directory of a hierarchy.
#[must_use]
pub fn processes(dir: &Path) -> Vec<Pid> {
    let text = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
    let numbers = text.lines().filter_map(|line| line.parse().ok());
    // 0 stands for a process of another pid namespace.
    numbers.filter_map(Pid::from_raw).collect()
}

/// A directory and all below it, parents first.
#[must_use]
pub fn tree(dir: &Path) -> Vec<PathBuf> {
    let mut found = vec![dir.to_owned()];
    let mut next = 0;
    while let Some(dir) = found.get(next) {
        let below = children(dir);
        found.extend(below);
        next += 1;
    }
    found
}

/// The directories below one, by their paths from it, sorted.
#[must_use]
pub fn below(dir: &Path) -> Vec<String> {
    let inside = tree(dir).into_iter().skip(1);
    let mut names: Vec<_> = inside
        .filter_map(|path| Some(path.strip_prefix(dir).ok()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    names
}

fn children(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_parents_before_children_and_no_links() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(dir.path().join("b/c")).expect("directories");
        fs::create_dir(dir.path().join("a")).expect("a directory");
        std::os::unix::fs::symlink("/", dir.path().join("z")).expect("a link");
        assert_eq!(below(dir.path()), ["a", "b", "b/c"]);
        let tree = tree(dir.path());
        assert_eq!(tree.first().map(PathBuf::as_path), Some(dir.path()));
        assert!(tree.iter().all(|path| !path.starts_with(dir.path().join("z"))));
    }

    #[test]
    fn directories_of_other_nodes_are_not_ours() {
        for name in ["slurm_swbpf1", "slurm_swbpf12", "swbpf2_slurmstepd.scope"] {
            assert!(is_of_node(name), "{name}");
        }
        for name in [
            "slurm",
            "slurm_swbpf",
            "slurm_swbpf1x",
            "slurm_swbpf-1",
            "slurm_node1",
            "swbpf1",
            "slurmstepd.scope",
            "xswbpf1_slurmstepd.scope",
            "swbpf1_slurmstepd.scope.d",
        ] {
            assert!(!is_of_node(name), "{name}");
        }
    }
}
