//! What this user may, and what follows from it.

use super::{assert_told, cannot, told};
use crate::doctor::diagnosis::{Topic, Verdict};
use crate::doctor::facts::*;
use crate::error::NO_PROC;
use crate::kernel::ladder::Rung;

#[test]
fn missing_capabilities_are_named() {
    let check = told(Topic::Capabilities, |facts| {
        facts.bpf.lacking = vec!["CAP_BPF", "CAP_PERFMON"];
    });
    assert_told(
        &check,
        Verdict::Degraded,
        "without CAP_BPF and CAP_PERFMON",
        Some("setcap"),
    );
    assert!(check.found.contains("unprivileged_bpf_disabled=2"));
    let check = told(Topic::Capabilities, |facts| {
        facts.bpf.lacking = vec!["CAP_BPF", "CAP_PERFMON"];
        facts.bpf.is_withheld = true;
    });
    assert_told(&check, Verdict::Degraded, "without", Some("--cap-add BPF"));
    assert!(!check.changes.iter().any(|change| change.contains("run as root")));
}

#[test]
fn capabilities_of_a_container_alone_do_not_count() {
    let check = told(Topic::Capabilities, |facts| facts.bpf.is_of_host = false);
    assert_told(
        &check,
        Verdict::Degraded,
        "user namespace",
        Some("outside of the container"),
    );
}

/// Who has no capabilities is told once what to do about it.
#[test]
fn what_follows_from_the_capabilities_says_so() {
    let without = |facts: &mut Facts| {
        facts.bpf.lockdown = Err(cannot());
        facts.bpf.lacking = vec!["CAP_BPF"];
        facts.programs.trial = Trial::NotTried("without CAP_BPF".into());
    };
    for (topic, found) in [
        (Topic::Lockdown, "may not be read"),
        (Topic::Programs, "btf_tracepoint; not tried: without CAP_BPF"),
    ] {
        let check = told(topic, without);
        assert_told(&check, Verdict::Unknown, found, Some("as for the capabilities"));
        assert!(check.means.contains("follows from the capabilities"), "{check:?}");
    }
    let check = told(Topic::Events, without);
    assert_told(&check, Verdict::Unknown, "2 of 2 hooks", None);
    assert!(check.means.contains("follows from the capabilities"), "{check:?}");
}

#[test]
fn a_rung_that_was_asked_for_in_vain_is_left_out() {
    let asked = |spoil: fn(&mut Programs)| {
        told(Topic::Programs, |facts| {
            facts.programs.asked = Some(Rung::Kprobe);
            spoil(&mut facts.programs);
        })
    };
    let reason = "kprobe was asked for";
    for check in [
        asked(|programs| programs.plan = Err("kprobe was asked for".into())),
        asked(|programs| programs.trial = Trial::Failed("kprobe was asked for".into())),
    ] {
        assert_told(
            &check,
            Verdict::Degraded,
            reason,
            Some("leave --force-source out"),
        );
        assert_eq!(check.found, reason);
    }
}

#[test]
fn who_may_make_no_cgroup_cannot_run() {
    let check = told(Topic::Run, |facts| {
        facts.run = Err(Refusal {
            reason: "cannot make /sys/fs/cgroup/x: Read-only file system".into(),
            way: Some("run outside"),
        });
    });
    assert_told(&check, Verdict::Degraded, "Read-only", Some("run outside"));
    assert!(check.means.contains("sw-bpf run"));
}

#[test]
fn what_hinders_the_programs_is_no_matter_for_a_report() {
    let hindered = |asked| {
        told(Topic::Programs, |facts| {
            facts.programs.asked = asked;
            facts.programs.trial = Trial::Hindered("too many open files: raise that".into());
        })
    };
    let check = hindered(None);
    assert_told(&check, Verdict::Degraded, "a trial was hindered: too many", None);
    assert!(check.means.contains("sampled"), "{check:?}");
    let check = hindered(Some(Rung::Fentry));
    assert_told(&check, Verdict::Degraded, "a trial was hindered: too many", None);
    assert!(check.means.contains("nothing is measured"), "{check:?}");
    let check = told(Topic::Events, |facts| {
        facts.programs.trial = Trial::Hindered("too many open files".into());
    });
    assert_told(&check, Verdict::Degraded, "no kernel programs", None);
}

#[test]
fn an_own_cgroup_that_cannot_be_seen_is_told() {
    let check = told(Topic::Cgroups, |facts| {
        if let Ok(cgroups) = &mut facts.cgroups {
            cgroups.sees_own = false;
        }
    });
    assert_told(
        &check,
        Verdict::Degraded,
        "that of this process cannot be seen",
        Some("--cgroup PATH"),
    );
}

#[test]
fn without_proc_it_is_to_be_mounted_and_nothing_else() {
    let without = |facts: &mut Facts| {
        facts.bpf.unprivileged = Err(NO_PROC.into());
        facts.programs.trial = Trial::Hindered(NO_PROC.into());
        facts.cgroups = Err(NO_PROC.into());
    };
    for (topic, verdict) in [(Topic::Bpf, Verdict::Unknown), (Topic::Cgroups, Verdict::Broken)] {
        let check = told(topic, without);
        assert_told(&check, verdict, "/proc is not mounted", Some("mount -t proc"));
        assert_eq!(check.changes.len(), 1, "{check:?}");
    }
}
