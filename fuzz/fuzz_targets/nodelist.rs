//! `cargo xtask fuzz nodelist`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| swbpf_fuzz::ids::nodelist(data));
