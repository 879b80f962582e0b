//! The Prolog, Epilog and `TaskProlog` of `packaging/slurm`: in a real Slurm, and run by themselves.

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
