//! The command line `sw-bpf`.
fn main() {}
