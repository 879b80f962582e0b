//! The kernel, its cgroups, and what this user may.

use std::fs;
use std::path::Path;
use std::process::Command;

use support::command::{answer, output, sw_bpf};
use support::doctor::Diagnosis;
use support::measure::program;
use support::need_bpf;

use super::{diagnosed, doctor};

/// The topics that say whether numbers are counted at all.
const COUNTED: [&str; 6] = ["btf", "bpf", "capabilities", "lockdown", "programs", "cgroups"];

#[test]
fn where_numbers_are_counted_nothing_is_wrong_with_the_kernel() {
    if !need_bpf() {
        return;
    }
    let diagnosis = Diagnosis::of(&mut doctor(&["--json"]));
    for topic in COUNTED {
        // By kprobes not all is told on every kernel.
        let verdict = diagnosis.check(topic).verdict;
        assert!(
            verdict == "ok" || (topic, verdict) == ("programs", "degraded"),
            "{diagnosis:?}"
        );
    }
    diagnosis.assert("bpf", "ok", "with JIT", "");
    // Jobs of a cluster that others test on this host are no reason to fail.
    let has_jobs = diagnosis.check("jobs").found != "no job of Slurm has a cgroup here now";
    let slurm = if has_jobs { "degraded" } else { "ok" };
    diagnosis.assert("slurm", slurm, "scontrol is not in PATH", "");
    diagnosis.assert("agent", "ok", "/run/sw-bpf/agent.sock", "");
    let clock = fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    assert!(
        diagnosis
            .check("clock")
            .found
            .starts_with(clock.expect("a clock").trim())
    );
}

#[test]
fn the_rung_is_the_one_that_is_measured_by() {
    if !need_bpf() {
        return;
    }
    let answer = answer(&output(&mut sw_bpf(&["--once", "--json", "--window", "50ms"])));
    let diagnosis = Diagnosis::of(&mut doctor(&["--json"]));
    let rung = answer["probes"]["rung"].as_str().expect("a rung");
    let found = diagnosis.check("programs").found;
    assert!(
        found.starts_with(rung) && found.contains("attached"),
        "{rung}: {found}"
    );
    let programs = answer["probes"]["programs"].as_array().expect("programs");
    for program in programs {
        let hook = program["hook"].as_str().expect("a hook");
        let events = diagnosis.check("events");
        let is_told = match program["attached"].as_bool() {
            Some(true) => events.list.contains(&hook),
            _ => events.found.contains(program["name"].as_str().expect("a name")),
        };
        assert!(is_told, "{program}: {events:?}");
    }
}

#[test]
fn a_kernel_without_btf_samples() {
    if !need_bpf() {
        return;
    }
    let diagnosis = diagnosed("mount -t tmpfs none /sys/kernel/btf; doctor");
    diagnosis.assert(
        "btf",
        "degraded",
        "there is no /sys/kernel/btf/vmlinux",
        "CONFIG_DEBUG_INFO_BTF",
    );
    diagnosis.assert("programs", "degraded", "no BTF", "");
    diagnosis.assert("events", "degraded", "no kernel programs", "");
    assert_eq!((diagnosis.code, diagnosis.verdict()), (Some(1), "degraded"));
}

#[test]
fn garbage_in_place_of_btf_is_told() {
    if !need_bpf() {
        return;
    }
    let diagnosis = diagnosed(
        "mount -t tmpfs none /sys/kernel/btf; head -c 100000 /dev/urandom >/sys/kernel/btf/vmlinux; doctor",
    );
    diagnosis.assert("btf", "degraded", "of 100000 bytes: malformed BTF", "unmount");
    diagnosis.assert("programs", "degraded", "(100000 bytes)", "");
    let diagnosis = diagnosed("mount --bind /dev/null /sys/kernel/btf/vmlinux; doctor");
    diagnosis.assert(
        "btf",
        "degraded",
        "of 0 bytes: malformed BTF: it is empty",
        "unmount",
    );
}

#[test]
fn where_no_cgroup_can_be_made_run_is_told_to_fail() {
    if !need_bpf() {
        return;
    }
    Diagnosis::of(&mut doctor(&["--json"])).assert("run", "ok", "a cgroup was made", "");
    let diagnosis = diagnosed(
        "for dir in /sys/fs/cgroup /sys/fs/cgroup/*; do mountpoint -q $dir && mount -o remount,bind,ro $dir; done; doctor",
    );
    diagnosis.assert("run", "degraded", "Read-only file system", "read-write");
    diagnosis.assert("cgroups", "ok", "memory of version", "");
}

#[test]
fn one_rung_can_be_tried_alone() {
    if !need_bpf() {
        return;
    }
    let diagnosis = Diagnosis::of(&mut doctor(&["--json", "--force-source", "sampled"]));
    diagnosis.assert("programs", "degraded", "sampling was asked for", "");
    for (source, rung) in [
        ("tracepoint", "btf_tracepoint"),
        ("fentry", "fentry"),
        ("kprobe", "kprobe"),
    ] {
        let diagnosis = Diagnosis::of(&mut doctor(&["--json", "--force-source", source]));
        let check = diagnosis.check("programs");
        let is_used = check.found.starts_with(rung) && check.found.contains("attached");
        let is_refused = check
            .found
            .starts_with(&format!("{rung} was asked for and cannot be used here"));
        assert!(is_used || is_refused, "{check:?}");
        assert_eq!(
            is_refused,
            check.changes.contains("leave --force-source out"),
            "{check:?}"
        );
    }
}

#[test]
fn a_kernel_that_is_locked_down_is_told() {
    if !need_bpf() {
        return;
    }
    let locked = |modes: &str| {
        diagnosed(&format!(
            "mount -t tmpfs none /sys/kernel/security; echo '{modes}' >/sys/kernel/security/lockdown; doctor"
        ))
    };
    let diagnosis = locked("none integrity [confidentiality]");
    diagnosis.assert("lockdown", "degraded", "confidentiality", "lockdown=integrity");
    diagnosis.assert("programs", "degraded", "locked down", "");
    assert_eq!(diagnosis.code, Some(1));
    locked("none [integrity] confidentiality").assert("lockdown", "ok", "integrity", "");
    // What it says is not understood, but the programs load.
    locked("\u{1b}[31m").assert("lockdown", "ok", "not understood", "");
}

#[test]
fn missing_capabilities_are_told() {
    if !need_bpf() {
        return;
    }
    let with = |bounding: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set", bounding, "env", "PATH=/nonexistent"]);
        Diagnosis::of(command.arg(program("sw-bpf")).args(["doctor", "--json"]))
    };
    let diagnosis = with("-bpf,-perfmon,-sys_admin");
    diagnosis.assert(
        "capabilities",
        "degraded",
        "without CAP_BPF and CAP_PERFMON",
        "--cap-add BPF",
    );
    diagnosis.assert(
        "programs",
        "unknown",
        "not tried: without CAP_BPF",
        "as for the capabilities",
    );
    assert_eq!(diagnosis.code, Some(1));
    let diagnosis = with("-perfmon,-sys_admin");
    diagnosis.assert("capabilities", "degraded", "without CAP_PERFMON", "--cap-add BPF");
    let diagnosis = with("-all,+bpf,+perfmon");
    diagnosis.assert("capabilities", "ok", "CAP_BPF and CAP_PERFMON", "");
    assert!(
        diagnosis.check("programs").found.contains("attached"),
        "{diagnosis:?}"
    );
}

#[test]
fn capabilities_of_a_user_namespace_do_not_count() {
    if !need_bpf() {
        return;
    }
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "env", "PATH=/nonexistent"])
        .arg(program("sw-bpf"));
    let diagnosis = Diagnosis::of(command.args(["doctor", "--json"]));
    diagnosis.assert(
        "capabilities",
        "degraded",
        "user namespace",
        "outside of the container",
    );
    diagnosis.assert(
        "programs",
        "unknown",
        "not tried: in a user namespace",
        "as for the capabilities",
    );
}

#[test]
fn without_cgroups_nothing_works() {
    if !need_bpf() {
        return;
    }
    let diagnosis = diagnosed("mount -t tmpfs none /sys/fs/cgroup; doctor");
    diagnosis.assert("cgroups", "broken", "no cgroup hierarchy", "mount -t cgroup2");
    diagnosis.assert("jobs", "unknown", "no cgroup hierarchy", "");
    assert_eq!((diagnosis.code, diagnosis.verdict()), (Some(2), "broken"));
}

#[test]
fn a_hierarchy_that_counts_memory_is_missed() {
    if !need_bpf() {
        return;
    }
    if !Path::new("/sys/fs/cgroup/memory/memory.stat").exists() {
        return support::skipped("the memory hierarchy of version 1 can be hidden, that of version 2 cannot");
    }
    let diagnosis = diagnosed("umount -l /sys/fs/cgroup/memory; doctor");
    diagnosis.assert(
        "cgroups",
        "degraded",
        "none counts memory",
        "cgroup_disable=memory",
    );
    assert!(
        diagnosis.check("programs").found.contains("attached"),
        "{diagnosis:?}"
    );
}

#[test]
fn what_is_done_without_is_told() {
    if !need_bpf() {
        return;
    }
    let diagnosis = diagnosed(
        "umount -a -t bpf; mount -t tmpfs none /mnt; cp \"$0\" /mnt/sw-bpf; mount -t tmpfs none /run; mkdir /run/sw-bpf; \
         touch /run/sw-bpf/agent.sock; PATH=/nonexistent exec /mnt/sw-bpf doctor --json",
    );
    diagnosis.assert("bpffs", "ok", "not mounted", "");
    diagnosis.assert("agent", "ok", "is no socket", "");
    let diagnosis = diagnosed("mount -t bpf none /mnt; doctor");
    diagnosis.assert("bpffs", "ok", "/mnt", "");
}
