//! What is on a CPU already when the measurement begins, and still when it ends.

use std::fs;
use std::thread::{self, sleep};
use std::time::Duration;

use support::command::{answer, output, sw_bpf};
use support::measure::{Process, own_cgroup};
use support::need_bpf;
use swbpf::job::cgroup::{Cgroup, Controller, OwnCgroup};
use swbpf::snapshot::Snapshot;

use super::kernel::{Truth, watched, with_stolen};
use super::{agreed, near};

/// A spinner inside a cgroup, which is on a CPU whenever others leave it one.
fn spinner(own: &OwnCgroup) -> Process {
    let mut spinner = Process::workload_in(own, &["spin-until-stdin"]);
    spinner.ready();
    spinner
}

/// Does something once the measurement is under way, and gives its answer.
fn once(own: &OwnCgroup, window: &str, meanwhile: &(impl Fn() + Sync)) -> (Snapshot, Truth) {
    let mut command = sw_bpf(&["--once", "--json", "--window", window, "--cgroup"]);
    command.arg(own.cgroup().path());
    let ((output, spent), stolen_s) = with_stolen(|| {
        watched(own.cgroup(), || {
            thread::scope(|scope| {
                scope.spawn(meanwhile);
                output(&mut command)
            })
        })
    });
    let snapshot: Snapshot = serde_json::from_value(answer(&output)).expect("a snapshot");
    let end = unix(&snapshot.coverage.to);
    let truth = Truth {
        usage_s: spent(end - snapshot.window_seconds, end),
        stolen_s,
        wake_ups: 10,
    };
    (snapshot, truth)
}

/// Seconds since 1970.
fn unix(moment: &str) -> f64 {
    let moment: jiff::Timestamp = moment.parse().expect("RFC 3339");
    moment.as_nanosecond() as f64 / 1e9
}

fn agreed_once(own: &OwnCgroup, window: &str) -> Snapshot {
    agreed_while(own, window, || {})
}

fn agreed_while(own: &OwnCgroup, window: &str, meanwhile: impl Fn() + Sync) -> Snapshot {
    agreed(|| once(own, window, &meanwhile))
}

#[test]
fn who_is_on_the_cpu_at_both_ends_of_a_window_is_counted_whole() {
    if !need_bpf() {
        return;
    }
    let own = own_cgroup();
    let mut spinner = spinner(&own);
    let told = agreed_once(&own, "2s");
    near(Some(told.window_seconds), 2.0..=2.5);
    near(told.cpu.busy_cores, 0.0..=1.001);
    assert_eq!(told.cpu.concurrency.expect("a histogram").max, 1);
    assert!(spinner.finish().0.success());
}

#[test]
fn short_windows_are_as_right_as_long_ones() {
    if !need_bpf() {
        return;
    }
    let own = own_cgroup();
    let mut spinner = spinner(&own);
    let told = agreed_once(&own, "200ms");
    near(Some(told.window_seconds), 0.2..=0.6);
    near(told.cpu.busy_cores, 0.0..=1.001);
    assert!(spinner.finish().0.success());
}

/// Moves a process in the hierarchies that count its memory and CPU time.
fn move_to(cgroup: &Cgroup, pid: u32) {
    for controller in [Controller::Memory, Controller::Cpuacct] {
        let dir = cgroup.nearest_dir(controller).expect("a directory");
        fs::write(dir.path.join("cgroup.procs"), pid.to_string()).expect("moved");
    }
}

#[test]
fn who_is_moved_in_and_out_is_counted_in_between() {
    if !need_bpf() {
        return;
    }
    let (first, own) = (own_cgroup(), own_cgroup());
    let mut spinner = spinner(&first);
    let pid = spinner.id();
    let told = agreed_while(&own, "1200ms", || {
        sleep(Duration::from_millis(400));
        move_to(own.cgroup(), pid);
        sleep(Duration::from_millis(500));
        move_to(first.cgroup(), pid);
    });
    near(told.cpu.busy_seconds, 0.0..=0.7);
    assert!(spinner.finish().0.success());
}
