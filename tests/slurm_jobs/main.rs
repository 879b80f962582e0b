//! What sw-bpf relies on in Slurm, as a real one does it: which cgroups a job has and when, how jobs end and what is
//! stored of them, with the version of cgroups that this machine has. Each test starts a cluster of its own.

mod ends;
mod hooks;
mod ids;
mod layout;
mod leftovers;
mod nested;
mod oom;
mod spike;
mod steps;

use std::fs;
use std::path::Path;

/// The number in a file of a cgroup.
fn number(path: &Path) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.trim().parse().expect("a number")
}

/// The names among paths that are no path: of the directories right below.
fn right_below(paths: Vec<String>) -> Vec<String> {
    paths.into_iter().filter(|path| !path.contains('/')).collect()
}
