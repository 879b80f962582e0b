//! `cargo xtask fuzz srun`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| swbpf_fuzz::slurm::srun(data));
