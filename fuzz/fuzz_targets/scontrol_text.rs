//! `cargo xtask fuzz scontrol_text`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| swbpf_fuzz::slurm::scontrol_text(data));
