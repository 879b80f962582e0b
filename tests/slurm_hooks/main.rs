//! The Prolog, Epilog and `TaskProlog` of `packaging/slurm`: in a real Slurm, and run by themselves.

mod alone;
mod failures;
mod hooks;
mod jobs;
mod rights;

use std::path::Path;

use support::slurm::cgroups;
use support::{need_bpf, need_slurm, skipped};

/// Whether a cluster can run here whose jobs the kernel programs can count.
fn need() -> bool {
    if !(need_slurm() && need_bpf()) {
        return false;
    }
    let is_v1 = cgroups::version() == 1 && Path::new("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists();
    if !is_v1 {
        skipped("tests of Slurm's cgroups need the memory hierarchy of version 1");
    }
    is_v1
}
