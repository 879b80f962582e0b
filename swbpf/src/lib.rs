//! sw-bpf: exact memory peak and busy cores of any command or cgroup, counted in the kernel.
//!
//! The line from kernel event to eye: [`probe`] listens, [`fold`] gives meaning, [`snapshot`] is the waist, [`out`]
//! tells. Imports run forward only.

pub mod cli;
pub mod doctor;
pub mod error;
pub mod fold;
pub mod job;
pub mod kernel;
pub mod out;
pub mod probe;
pub mod record;
pub mod sampled;
pub mod snapshot;
pub mod verb;
pub mod wire;
