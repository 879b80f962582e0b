//! `cargo xtask fuzz http`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| swbpf_fuzz::agent::http(data));
