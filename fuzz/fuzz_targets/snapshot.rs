//! `cargo xtask fuzz snapshot`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| swbpf_fuzz::records::snapshot(data));
