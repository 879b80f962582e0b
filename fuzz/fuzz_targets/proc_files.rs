//! `cargo xtask fuzz proc_files`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| swbpf_fuzz::files::proc_files(data));
