//! `sw-bpf run` on programs of known CPU time.

use std::ffi::OsStr;
use std::time::Duration;

use support::command::{output, record, sw_bpf, told};
use support::measure::program;
use support::{need_bpf, pace};
use swbpf::snapshot::Snapshot;

use super::kernel::{Truth, with_stolen};
use super::{agreed, near, takes};

/// Runs a program, and gives with the summary what the kernel's own accounting has of it.
fn measured(program: &[&OsStr], wake_ups: u32) -> (Snapshot, Truth) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("record");
    let mut command = sw_bpf(&["run", "--json"]);
    command.arg(&path).arg("--").args(program);
    let (output, stolen_s) = with_stolen(|| output(&mut command));
    assert!(output.status.success(), "{}", told(&output));
    let last = record(&path).pop().expect("a summary");
    let summary: Snapshot = serde_json::from_value(last).expect("a snapshot");
    let truth = Truth {
        usage_s: summary.cpu.usage_ns.expect("the kernel's accounting") as f64 / 1e9,
        stolen_s,
        wake_ups,
    };
    (summary, truth)
}

fn agreed_run(program: &[&OsStr], wake_ups: u32) -> Snapshot {
    agreed(|| measured(program, wake_ups))
}

fn agreed_workload(arguments: &[&str], wake_ups: u32) -> Snapshot {
    let workload = program("workload");
    let mut program = vec![workload.as_os_str()];
    program.extend(arguments.iter().map(OsStr::new));
    agreed_run(&program, wake_ups)
}

#[test]
fn a_spinner_takes_its_time() {
    if !need_bpf() {
        return;
    }
    let cpu = agreed_workload(&["spin", "--ms", "1000"], 10).cpu;
    near(cpu.busy_seconds, takes(1.0, 0.05));
    // Its main thread waits for it, and may yet be about to.
    assert!(cpu.concurrency.expect("a histogram").max <= 2);
}

#[test]
fn two_spinners_are_two_cores() {
    if !need_bpf() {
        return;
    }
    let script = "\"$0\" pinned --cpu 0 --ms 2300 & \"$0\" pinned --cpu 1 --ms 2300; wait";
    let workload = program("workload");
    let shell = ["sh", "-c", script].map(OsStr::new);
    let summary = agreed_run(&[&shell[..], &[workload.as_os_str()]].concat(), 10);
    let cpu = summary.cpu;
    near(cpu.busy_seconds, takes(4.6, 0.1));
    near(cpu.peak_effective_cores, 0.0..=2.01);
    let at_once = cpu.concurrency.expect("a histogram");
    assert_eq!(at_once.max, 2);
    // Unless others want the CPUs as well, both run all the time.
    if cpu.busy_cores > Some(1.9) {
        assert_eq!((at_once.p50, at_once.p95), (2, 2));
        near(cpu.peak_effective_cores, 1.9..=2.01);
    }
}

#[test]
fn more_spinners_than_cores_share_them() {
    if !need_bpf() {
        return;
    }
    let cpu = agreed_workload(&["spin", "--threads", "8", "--ms", "200"], 50).cpu;
    near(cpu.busy_seconds, takes(1.6, 0.1));
    let most = cpu.concurrency.expect("a histogram").max;
    assert!(
        cpu.cores_allocated
            .is_some_and(|cores| f64::from(most) <= cores.max(1.0)),
        "{most}"
    );
}

#[test]
fn a_sleeper_takes_none() {
    if !need_bpf() {
        return;
    }
    // So long that what it takes to start is little of it.
    let ms = pace::scaled(Duration::from_millis(1200)).as_millis().to_string();
    let cpu = agreed_workload(&["sleep", "--ms", &ms], 10).cpu;
    near(cpu.busy_seconds, takes(0.0, 0.02));
    near(cpu.peak_effective_cores, takes(0.0, 0.02));
    let at_once = cpu.concurrency.expect("a histogram");
    assert_eq!((at_once.p50, at_once.p95, at_once.max), (0, 0, 1));
}

#[test]
fn bursts_shorter_than_a_tick_are_all_counted() {
    if !need_bpf() {
        return;
    }
    let cpu = agreed_workload(&["bursts", "--count", "2000", "--us", "200"], 2000).cpu;
    near(cpu.busy_seconds, takes(0.4, 0.21));
}

#[test]
fn who_never_leaves_the_cpu_is_counted_there() {
    if !need_bpf() {
        return;
    }
    for cpu in ["0", "1"] {
        let told = agreed_workload(&["pinned", "--cpu", cpu, "--ms", "700"], 10).cpu;
        let per_cpu = told.per_cpu_busy_seconds.expect("time of each CPU");
        let (pinned, others): (Vec<_>, Vec<_>) =
            per_cpu.iter().partition(|(number, _)| number.to_string() == cpu);
        near(pinned.first().map(|(_, spent)| **spent), takes(0.7, 0.02));
        near(
            Some(others.iter().map(|(_, spent)| **spent).sum()),
            takes(0.0, 0.02),
        );
    }
}

#[test]
fn who_moves_between_cpus_is_counted_on_each() {
    if !need_bpf() {
        return;
    }
    let cpu = agreed_workload(&["migrate", "--ms", "1000"], 1000).cpu;
    near(cpu.busy_seconds, takes(1.0, 0.11));
    let cpus = cpu.cores_allocated.expect("CPUs");
    let per_cpu = cpu.per_cpu_busy_seconds.expect("time of each CPU");
    assert!(
        per_cpu.values().filter(|spent| **spent > 0.9 / cpus).count() as f64 >= cpus,
        "{per_cpu:?}"
    );
    assert_eq!(cpu.concurrency.expect("a histogram").max, 1);
}
