//! `cargo xtask fuzz job_id`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| swbpf_fuzz::ids::job_id(data));
