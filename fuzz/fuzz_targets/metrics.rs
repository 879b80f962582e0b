//! `cargo xtask fuzz metrics`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| swbpf_fuzz::records::metrics(data));
