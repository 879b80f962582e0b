//! `cargo xtask fuzz left`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| swbpf_fuzz::agent::left(data));
