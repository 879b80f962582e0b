//! The cgroup that is made for a command, and what becomes of it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;
use support::command::{output, record, told};
use support::measure::{MIB, Run, program, wait_until};
use support::need_bpf;
use swbpf::job::cgroup::{Controller, Hierarchies};
use tempfile::TempDir;

use super::{recorded, recording, run_script};

fn cgroup_of(summary: &Value) -> PathBuf {
    summary["target"]["cgroup"].as_str().expect("a path").into()
}

/// The directories of a cgroup that was made below this process's own, of all hierarchies that may have one.
fn directories(cgroup: &Path) -> BTreeSet<PathBuf> {
    let name = cgroup.file_name().expect("a name");
    let all = Hierarchies::detect().expect("a hierarchy");
    let own = all.cgroup_of_pid(std::process::id()).expect("a cgroup");
    let above = Controller::ALL
        .into_iter()
        .filter_map(|controller| own.nearest_dir(controller));
    let mut found: BTreeSet<_> = above.map(|dir| dir.path.join(name)).collect();
    found.insert(cgroup.to_owned());
    found
}

fn is_gone_everywhere(cgroup: &Path) {
    for dir in directories(cgroup) {
        assert!(!dir.exists(), "{}", dir.display());
    }
}

#[test]
fn the_cgroup_is_removed() {
    if !need_bpf() {
        return;
    }
    let (_, lines) = recorded(&[], &[OsStr::new("true")]);
    is_gone_everywhere(&cgroup_of(&lines[0]));
}

#[test]
fn cgroups_that_the_command_made_are_removed_too() {
    if !need_bpf() {
        return;
    }
    // The memory hierarchy's line, or that of version 2.
    let script = "path=$(grep -E '^[0-9]+:(|.*,)memory(,.*|):|^0::' /proc/self/cgroup | sort -r | head -n 1 | cut -d: -f3-); \
                  for root in /sys/fs/cgroup/memory /sys/fs/cgroup; do \
                      [ -d \"$root$path\" ] && mkdir -p \"$root$path/a/b\" \"$root$path/c\" && exit 0; \
                  done; exit 1";
    let (output, lines) = recorded(&[], &["sh", "-c", script].map(OsStr::new));
    assert!(output.status.success(), "{}", told(&output));
    assert!(!cgroup_of(&lines[0]).exists());
}

#[test]
fn who_is_left_behind_is_told_and_left_alone() {
    if !need_bpf() {
        return;
    }
    let dir = TempDir::new().expect("a directory");
    let path = dir.path().join("record");
    let script = "sleep 60 >/dev/null 2>&1 & echo $!";
    let left = output(&mut recording(&path, &[], &["sh", "-c", script].map(OsStr::new)));
    let pid: i32 = String::from_utf8_lossy(&left.stdout)
        .trim()
        .parse()
        .expect("a process id");
    let pid = Pid::from_raw(pid).expect("a process id");
    let summary = record(&path).pop().expect("a summary");
    let is_alive = test_kill_process(pid).is_ok();
    kill_process(pid, Signal::KILL).expect("a live process");
    let told = told(&left);
    assert_eq!(left.status.code(), Some(0), "{told}");
    assert!(is_alive, "{told}");
    assert_eq!(summary["processes"]["alive"], 1);
    let line = told.lines().last().expect("a line");
    let names_it = line.contains(&pid.as_raw_nonzero().to_string());
    assert!(line.starts_with("sw-bpf: ") && names_it, "{told}");
    remove(&cgroup_of(&summary));
}

/// Removes a cgroup whose last process is about to end, and on version 2 the one below it that the command was in.
fn remove(cgroup: &Path) {
    for dir in directories(cgroup) {
        for dir in [dir.join("command"), dir] {
            wait_until("the cgroup is empty", || {
                let removed = fs::remove_dir(&dir);
                removed.is_ok() || !dir.exists()
            });
        }
    }
}

/// Nothing ends the command in its place; who started it is to end it, as after any supervisor that is killed. Then an
/// empty cgroup is left, which costs nothing and which anyone may remove.
#[test]
fn the_command_outlives_a_killed_sw_bpf() {
    if !need_bpf() {
        return;
    }
    let mut run = Run::start(&[], &["hold", "--size", "1M"]);
    run.process.ready();
    let cgroup = run.cgroup();
    let killed = Pid::from_raw(run.process.id().cast_signed()).expect("a process id");
    kill_process(killed, Signal::KILL).expect("a live process");
    let pids = cgroup.procs().expect("processes");
    assert_eq!(pids.len(), 1, "{pids:?}");
    // The standard input of the command is still the test's.
    run.process.let_go();
    wait_until("the command ends by itself", || {
        !cgroup.is_populated().expect("populated")
    });
    assert!(cgroup.exists());
    remove(cgroup.path());
}

#[test]
fn two_at_once_are_told_apart() {
    if !need_bpf() {
        return;
    }
    let hold = |size| {
        let mut run = Run::start(&[], &["hold", "--size", size]);
        run.process.ready();
        run
    };
    let (small, large) = (hold("20M"), hold("70M"));
    assert_ne!(small.cgroup().id(), large.cgroup().id());
    let peak = |run: Run| run.finish().summary.memory.needed_peak_bytes.expect("a peak");
    let (small, large) = (peak(small), peak(large));
    assert!((20 * MIB..23 * MIB).contains(&small), "{small}");
    assert!((70 * MIB..73 * MIB).contains(&large), "{large}");
}

#[test]
fn one_within_another_counts_in_both() {
    if !need_bpf() {
        return;
    }
    let dir = TempDir::new().expect("a directory");
    let inner_path = dir.path().join("inner");
    let script = "exec \"$0\" run --json \"$1\" -- \"$0\" run -- \"$2\" anon --size 50M";
    let (sw_bpf, workload) = (program("sw-bpf"), program("workload"));
    let arguments = [sw_bpf.as_os_str(), inner_path.as_os_str(), workload.as_os_str()];
    let shell = ["sh", "-c", script].map(OsStr::new);
    let (output, lines) = recorded(&[], &[&shell[..], &arguments].concat());
    assert!(output.status.success(), "{}", told(&output));
    let (outer, inner) = (
        &lines[lines.len() - 1],
        record(&inner_path).pop().expect("a summary"),
    );
    let peak = |summary: &Value| summary["memory"]["needed_peak_bytes"].as_u64().expect("a peak");
    assert!(
        peak(&inner) >= 50 * MIB && peak(outer) >= peak(&inner),
        "{} {}",
        peak(outer),
        peak(&inner)
    );
    assert!(cgroup_of(&inner).starts_with(cgroup_of(outer)));
    assert_eq!(
        told(&output).matches("Peak memory").count(),
        3,
        "{}",
        told(&output)
    );
    is_gone_everywhere(&cgroup_of(outer));
}

#[test]
fn a_command_that_leaves_the_cgroup_is_waited_for() {
    if !need_bpf() {
        return;
    }
    let script = "for procs in /sys/fs/cgroup/*/cgroup.procs /sys/fs/cgroup/cgroup.procs; do \
                  [ -w $procs ] && echo $$ >$procs; done; sleep 0.3; exit 8";
    let mut run = run_script(script, &[]);
    let output = output(run.stdin(Stdio::null()));
    assert_eq!(output.status.code(), Some(8), "{}", told(&output));
}
