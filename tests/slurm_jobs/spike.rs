//! The reason for sw-bpf: a peak that Slurm's accounting does not see.

use support::command::{record, sw_bpf};
use support::measure::{MIB, Process};
use support::slurm::{Config, Slurm};
use support::{need_bpf, need_slurm};
use tempfile::TempDir;

const SPIKE: u64 = 300 * MIB;

/// Above the spike are, all within the job: its page tables (0.6 MiB) and the footprint of the workload (1.5 MiB), the
/// shell and its helpers (1 MiB), and the daemons of two steps (0.6 MiB each).
const BESIDE: u64 = 5 * MIB;

#[test]
fn a_spike_of_30_ms_is_seen_that_the_accounting_misses() {
    if !need_slurm() || !need_bpf() {
        return;
    }
    let slurm = Slurm::start(&Config {
        accounting: true,
        ..Config::default()
    });
    let script = "#!/bin/sh\necho here\nuntil-let-go\nworkload anon --size 300M --hold-ms 30\n";
    let job = slurm.sbatch(script, &["--mem=600M"]);
    slurm.wait_line(job, "here");
    let dir = TempDir::new().expect("a directory");
    let path = dir.path().join("record.jsonl");
    let mut command = sw_bpf(&["attach", "--cgroup"]);
    command.arg(slurm.job_cgroup(job)).arg("--json").arg(&path);
    let mut attach = Process::start(&mut command);
    attach.line();
    slurm.let_go(job);
    assert_eq!(slurm.wait_end(job), "COMPLETED");
    // It ends with the job.
    let (status, told) = attach.finish();
    assert!(status.success(), "{told}");
    let summary = record(&path).pop().expect("a summary");
    assert_eq!(summary["memory"]["source"], "kernel");
    let seen = summary["memory"]["needed_peak_bytes"].as_u64().expect("a peak");
    let bound = summary["memory"]["error_bound_bytes"].as_u64().expect("a bound");
    let stored = slurm.sacct_step(job, "batch", &["MaxRSS"]);
    println!("needed peak {seen} +- {bound}; MaxRSS {}", stored.get("MaxRSS"));
    assert!(
        seen + bound >= SPIKE && seen <= SPIKE + BESIDE + bound,
        "{seen} +- {bound}"
    );
    assert!(stored.max_rss_bytes() < Some(30 * MIB), "{stored:?}");
}
