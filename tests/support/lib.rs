//! Helpers of the integration tests.

pub mod command;
pub mod doctor;
pub mod document;
pub mod machine;
pub mod measure;
mod need;
pub mod pace;
pub mod slurm;

pub use need::{need_bpf, need_fake_time, need_slurm, skipped};
