//! `cargo xtask fuzz gathered`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| swbpf_fuzz::records::gathered(data));
