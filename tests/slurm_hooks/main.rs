//! The Epilog and `TaskProlog` of `packaging/slurm`: beside an agent in a real Slurm, and run by themselves.

#[allow(dead_code, reason = "others use the rest of it")]
#[path = "../slurm_agent/agent.rs"]
mod agent;
mod alone;
mod failures;
mod hooks;
mod jobs;
mod rights;

use support::{need_bpf, need_slurm};

/// Whether a cluster can run here whose jobs the kernel programs can count.
fn need() -> bool {
    need_slurm() && need_bpf()
}
