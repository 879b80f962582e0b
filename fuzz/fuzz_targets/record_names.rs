//! `cargo xtask fuzz record_names`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| swbpf_fuzz::records::record_names(data));
