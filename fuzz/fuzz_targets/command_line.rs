//! `cargo xtask fuzz command_line`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| swbpf_fuzz::command::command_line(data));
