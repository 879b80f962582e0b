//! Helpers of the integration tests.

pub mod command;
pub mod measure;
mod need;

pub use need::{need_bpf, skipped};
