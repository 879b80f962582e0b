//! What sw-bpf relies on in Slurm, as a real one does it: which cgroups a job has and when, how jobs end and what is
//! stored of them. Each test starts a cluster of its own.

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

use support::slurm::cgroups;
use support::{need_slurm, skipped};

/// Whether a cluster can run here whose jobs have cgroups of version 1, which these tests are about.
fn need_slurm_v1() -> bool {
    if !need_slurm() {
        return false;
    }
    let is_v1 = cgroups::version() == 1 && Path::new("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists();
    if !is_v1 {
        skipped("tests of Slurm's cgroups need the memory hierarchy of version 1");
    }
    is_v1
}

/// The number in a file of a cgroup.
fn number(path: &Path) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.trim().parse().expect("a number")
}

/// The path of one hierarchy in a text such as `/proc/self/cgroup`.
fn path_in<'a>(text: &'a str, controller: &str) -> &'a str {
    let mark = format!(":{controller}:");
    let found = text.lines().find_map(|line| Some(line.split_once(&mark)?.1));
    found.unwrap_or_else(|| panic!("no {controller}: {text}"))
}
