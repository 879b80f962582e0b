//! Helpers of the integration tests.

mod need;

pub use need::{need_bpf, skipped};
