//! Helpers of the integration tests.

pub mod measure;
mod need;

pub use need::{need_bpf, skipped};
