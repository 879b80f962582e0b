//! What goes wrong with a record is not the job's trouble, nor the node's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use support::measure::{MIB, program, wait_until};
use support::slurm::{Config, Gather, Slurm, cgroups, run};

use super::hooks::{Hooks, limit};
use super::need;

/// A cluster that drains a node whose Prolog or Epilog takes longer than what they promise: `LIMIT`, which is that of 2 s here,
/// and 4 s.
fn impatient(hooks: &Hooks) -> Slurm {
    hooks.cluster(Config {
        slurm_conf: format!("PrologEpilogTimeout={}", limit(2).max(4) + 1),
        ..Config::default()
    })
}

/// Runs a job that is not recorded, and asserts that it does not notice.
fn assert_runs_unrecorded(hooks: &Hooks, slurm: &Slurm, reason: &str) {
    let (job, state) = slurm.run_job(
        "#!/bin/sh\necho \"record ${SWBPF_RECORD-none}\"\n",
        &["--mem=100M"],
    );
    assert_eq!(state, "COMPLETED");
    assert_eq!(slurm.output(job), "record none\n");
    hooks.assert_cleared(slurm, job);
    let told = hooks.told();
    let start = format!("job {job}: ");
    assert!(
        told.iter()
            .any(|line| line.starts_with(&start) && line.contains(reason)),
        "{told:#?}"
    );
}

/// sw-bpf is absent, is no program, dies, hangs, or does not even end when it is told to.
#[test]
fn whatever_sw_bpf_does_the_job_runs() {
    if !need() {
        return;
    }
    let hooks = Hooks::install();
    let slurm = impatient(&hooks);
    hooks.set(Path::new("/nonexistent/sw-bpf"), 2, "");
    assert_runs_unrecorded(&hooks, &slurm, "/nonexistent/sw-bpf is not there");
    let text = hooks.write("bin/text", 0o755, "\0\0no program\n");
    hooks.set(&text, 2, "");
    assert_runs_unrecorded(&hooks, &slurm, "sw-bpf ended");
    let late = format!("not ready after {} s", limit(2));
    for (body, reason) in [
        (
            "echo 'sw-bpf: no \u{1b}[31m' >&2; exit 78",
            "sw-bpf ended: sw-bpf: no  [31m",
        ),
        ("kill -SEGV $$", "sw-bpf ended"),
        ("exec sleep 600", late.as_str()),
        ("trap '' TERM; while :; do sleep 0.05; done", "killed"),
        // No more than a disk in memory has room for.
        ("yes \"$5\" | head -c 64M >&2; exec sleep 600", &late),
    ] {
        hooks.fake(2, body);
        assert_runs_unrecorded(&hooks, &slurm, reason);
    }
    assert_eq!(hooks.record_names(), [""; 0]);
    // With one that works, the next job is recorded.
    hooks.set(&program("sw-bpf"), 2, "");
    let (job, _) = slurm.run_job("#!/bin/sh\nworkload anon --size 20M\n", &["--mem=100M"]);
    hooks.assert_cleared(&slurm, job);
    let summary = hooks.last_line(&format!("{job}.jsonl"));
    assert!(summary["memory"]["needed_peak_bytes"].is_u64(), "{summary}");
}

/// sw-bpf takes longer than the Prolog may wait: it records what it still sees, and says that this is not all.
#[test]
fn a_late_recorder_says_that_it_is_late() {
    if !need() {
        return;
    }
    let hooks = Hooks::install();
    let sw_bpf = program("sw-bpf").display().to_string();
    hooks.fake(
        1,
        &format!("until [ -e {{dir}}/go ]; do sleep 0.02; done; exec {sw_bpf} \"$@\""),
    );
    let slurm = impatient(&hooks);
    let script = "#!/bin/sh\nworkload anon --size 80M\necho here\nuntil-let-go\nworkload anon --size 30M\n";
    let job = slurm.sbatch(script, &["--mem=200M"]);
    slurm.wait_line(job, "here");
    hooks.write("go", 0o644, "");
    let record = hooks.records().join(format!("{job}.jsonl"));
    wait_until("it records", || {
        fs::metadata(&record).is_ok_and(|record| record.len() > 0)
    });
    slurm.let_go(job);
    assert_eq!(slurm.wait_end(job), "COMPLETED");
    hooks.assert_cleared(&slurm, job);
    assert_eq!(
        hooks.told(),
        [format!(
            "job {job}: sw-bpf is not ready after {} s (LIMIT): the job starts without it",
            limit(1)
        )]
    );
    let summary = hooks.last_line(&format!("{job}.jsonl"));
    assert_eq!(summary["coverage"]["from_start"], false);
    let peak = summary["memory"]["needed_peak_bytes"].as_u64().expect("a peak");
    assert!((30 * MIB..50 * MIB).contains(&peak), "{peak}");
}

/// A file system of its own in the place of the records; it goes with the value.
struct Mounted(PathBuf);

impl Mounted {
    fn at(path: &Path, options: &str) -> Self {
        fs::create_dir(path).expect("a directory");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(path);
        let _ = run(&mut mount, Duration::from_secs(10)).good();
        Self(path.to_owned())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn a_directory_of_records_that_cannot_be_written_to_is_told() {
    if !need() {
        return;
    }
    for options in ["ro", "size=4k,mode=711", "mode=777"] {
        let hooks = Hooks::install();
        hooks.set(&program("sw-bpf"), 2, "");
        let _mounted = Mounted::at(&hooks.records(), options);
        let slurm = impatient(&hooks);
        assert_runs_unrecorded(&hooks, &slurm, "cannot write");
        assert_eq!(hooks.record_names(), [""; 0], "{options}");
    }
}

/// The disk becomes full while a job runs: what was told until then stays, and the failure is told.
#[test]
fn a_disk_that_becomes_full_is_told_at_the_end() {
    if !need() {
        return;
    }
    let hooks = Hooks::install();
    let _mounted = Mounted::at(&hooks.records(), "size=128k,mode=711");
    let slurm = hooks.cluster(Config::default());
    let (job, state) = slurm.run_job(
        "#!/bin/sh\nworkload anon --size 20M --hold-ms 9000\n",
        &["--mem=100M"],
    );
    assert_eq!(state, "COMPLETED");
    hooks.assert_cleared(&slurm, job);
    let told = hooks.told();
    assert!(
        told.iter().any(|line| line.contains("No space left")),
        "{told:#?}"
    );
    let text = fs::read_to_string(hooks.records().join(format!("{job}.jsonl"))).expect("a record");
    let first = support::command::snapshot(text.lines().next().expect("a line"));
    assert_eq!(first["coverage"]["from_start"], true);
}

/// Where Slurm makes no memory cgroups, the one that the Prolog made stays empty: that is not a job without memory. On version 2
/// it always makes them.
#[test]
fn a_job_without_a_memory_cgroup_has_no_record() {
    if !need() {
        return;
    }
    let hooks = Hooks::install();
    let slurm = hooks.cluster(Config {
        constrain_ram: false,
        gather: Gather::Linux,
        ..Config::default()
    });
    let (job, state) = slurm.run_job("#!/bin/sh\nworkload anon --size 50M\n", &["--mem=100M"]);
    assert_eq!(state, "COMPLETED");
    hooks.assert_cleared(&slurm, job);
    if cgroups::version() == 2 {
        assert_eq!(hooks.told(), [""; 0]);
        let summary = hooks.last_line(&format!("{job}.jsonl"));
        assert_eq!(summary["memory"]["source"], "kernel");
        let peak = summary["memory"]["needed_peak_bytes"].as_u64();
        assert!(peak >= Some(50 * MIB), "{summary}");
        return;
    }
    assert_eq!(hooks.record_names(), [""; 0]);
    let told = hooks.told();
    assert!(
        told.len() == 1 && told[0].contains("ConstrainRAMSpace=yes"),
        "{told:#?}"
    );
}

/// Where the kernel cannot count, the files are read, and both the record and syslog say so.
#[test]
fn a_sampled_record_is_told() {
    if !need() {
        return;
    }
    let hooks = Hooks::install();
    let sw_bpf = program("sw-bpf").display().to_string();
    hooks.fake(30, &format!("exec {sw_bpf} --force-source sampled \"$@\""));
    let slurm = hooks.cluster(Config::default());
    let (job, state) = slurm.run_job(
        "#!/bin/sh\nworkload anon --size 50M --hold-ms 3000\n",
        &["--mem=100M"],
    );
    assert_eq!(state, "COMPLETED");
    hooks.assert_cleared(&slurm, job);
    assert_eq!(
        hooks.told(),
        [format!(
            "job {job}: sampled: the record says why, as probes.reason"
        )]
    );
    let summary = hooks.last_line(&format!("{job}.jsonl"));
    assert_eq!(
        (&summary["source"], &summary["coverage"]["from_start"]),
        (&"sampled".into(), &false.into())
    );
    assert!(
        summary["memory"]["needed_peak_bytes"].as_u64() >= Some(50 * MIB),
        "{summary}"
    );
}
