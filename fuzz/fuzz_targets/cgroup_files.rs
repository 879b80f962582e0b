//! `cargo xtask fuzz cgroup_files`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| swbpf_fuzz::files::cgroup_files(data));
