//! `cargo xtask fuzz btf`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| swbpf_fuzz::btf::btf(data));
