//! `cargo xtask fuzz squeue`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| swbpf_fuzz::slurm::squeue(data));
