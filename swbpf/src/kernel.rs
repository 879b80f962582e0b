//! Can we: what this kernel offers, and where it keeps it.

pub mod btf;
pub mod ladder;
pub mod layout;
pub mod support;
