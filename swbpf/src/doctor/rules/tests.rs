//! Each cause, on made facts: its verdict, and what it says to change.

mod host;
mod jobs;
mod rights;

use std::path::PathBuf;

use super::checks;
use crate::doctor::diagnosis::{Check, Topic, Verdict};
use crate::doctor::facts::*;
use crate::job::cgroup::Version;
use crate::job::slurm::Unknown;
use crate::kernel::ladder::Rung;

fn heard(rung: Rung) -> Heard {
    Heard {
        rung,
        hooks: vec!["tp_btf/sched_switch".to_owned(), "tp_btf/cgroup_mkdir".to_owned()],
        why_not_better: None,
        absent: Vec::new(),
    }
}

/// A host on which every number is exact.
pub fn good() -> Facts {
    Facts {
        machine: Machine {
            hostname: "node1".to_owned(),
            release: "6.18.0".to_owned(),
            is_real_time: false,
            build: "#1 SMP PREEMPT_DYNAMIC 2026".to_owned(),
            architecture: "x86_64".to_owned(),
            cpus: 8,
            batch_bound_bytes: Some(0),
            page_bytes: 4096,
            tick_ns: 4_000_000,
            clock: Ok("tsc".to_owned()),
            preemption: Ok("voluntary".to_owned()),
        },
        bpf: Bpf {
            btf: Ok(5 << 20),
            jit: Ok(1),
            unprivileged: Ok(2),
            lockdown: Ok("none".to_owned()),
            lacking: Vec::new(),
            is_withheld: false,
            is_of_host: true,
            file_systems: Ok(vec![PathBuf::from("/sys/fs/bpf")]),
        },
        programs: Programs {
            asked: None,
            plan: Ok(heard(Rung::Tracepoint)),
            trial: Trial::Good {
                heard: heard(Rung::Tracepoint),
                is_compiled: Some(true),
            },
        },
        cgroups: Ok(Cgroups {
            has_v1: false,
            has_v2: true,
            memory: Some(MemoryHierarchy {
                version: Version::V2,
                point: PathBuf::from("/sys/fs/cgroup"),
            }),
            sees_own: true,
            jobs: Ok(Jobs {
                all: 0,
                without_memory: 0,
            }),
        }),
        run: Ok(()),
        slurm: Err(Unknown::Absent { program: "scontrol" }),
        gpus: Gpus {
            device_files: Ok(0),
            library: Library::Absent,
        },
        agent: Agent {
            socket: PathBuf::from("/run/sw-bpf/agent.sock"),
            met: Ok(Met::Agent),
        },
    }
}

/// What one check says after `spoil` of a good host.
fn told(topic: Topic, spoil: impl FnOnce(&mut Facts)) -> Check {
    let mut facts = good();
    spoil(&mut facts);
    let mut found = checks(&facts).into_iter().filter(|check| check.topic == topic);
    found.next().expect("a check of each topic")
}

/// That the check has this verdict, tells `found`, and says `change`, or nothing, to change.
#[track_caller]
fn assert_told(check: &Check, verdict: Verdict, found: &str, change: Option<&str>) {
    assert_eq!(check.verdict, verdict, "{check:?}");
    assert!(check.found.contains(found), "{check:?}");
    assert!(!check.means.is_empty(), "{check:?}");
    match change {
        Some(change) => assert!(
            check.changes.iter().any(|told| told.contains(change)),
            "{check:?}"
        ),
        None => assert!(check.changes.is_empty(), "{check:?}"),
    }
}

fn cannot() -> String {
    "/x may not be read by this user".to_owned()
}

#[test]
fn a_good_host_is_ok_in_everything_and_has_nothing_to_change() {
    let checks = checks(&good());
    assert_eq!(checks.len(), 18);
    for check in &checks {
        assert_told(check, Verdict::Ok, "", None);
    }
    let topics: std::collections::BTreeSet<_> = checks.iter().map(|check| check.topic.title()).collect();
    assert_eq!(topics.len(), 18, "no topic twice");
}

#[test]
fn kernels_of_other_machines_are_not_tested() {
    let check = told(Topic::Kernel, |facts| {
        facts.machine.architecture = "aarch64".into();
    });
    assert_told(&check, Verdict::Unknown, "aarch64", None);
}

#[test]
fn without_btf_numbers_are_sampled() {
    let check = told(Topic::Btf, |facts| {
        facts.bpf.btf = Err("there is no such file".into());
    });
    assert_told(
        &check,
        Verdict::Degraded,
        "no such file",
        Some("CONFIG_DEBUG_INFO_BTF"),
    );
    assert!(check.means.contains("sampled"));
}

#[test]
fn whether_programs_are_compiled_is_known_of_a_trial_else_of_the_file() {
    let bpf = |is_compiled: Option<bool>, jit: Known<u64>| {
        told(Topic::Bpf, |facts| {
            facts.bpf.jit = jit;
            facts.programs.trial = Trial::Good {
                heard: heard(Rung::Tracepoint),
                is_compiled,
            };
        })
    };
    // The file is another network namespace's, or of no interest to what is seen.
    assert_told(&bpf(Some(true), Err(cannot())), Verdict::Ok, "with JIT", None);
    assert_told(&bpf(Some(true), Ok(0)), Verdict::Ok, "with JIT", None);
    assert_told(
        &bpf(Some(false), Ok(1)),
        Verdict::Degraded,
        "without JIT",
        Some("bpf_jit_enable=1"),
    );
    assert_told(
        &bpf(None, Ok(0)),
        Verdict::Degraded,
        "without JIT",
        Some("bpf_jit_enable=1"),
    );
    assert_told(&bpf(None, Ok(2)), Verdict::Ok, "with JIT", None);
    // Some architectures have fentry without JIT: that is the programs' to tell.
    for check in [bpf(Some(false), Ok(0)), bpf(None, Err(cannot()))] {
        assert!(!check.means.contains("fentry"), "{check:?}");
        assert!(check.means.contains("several times as much"), "{check:?}");
    }
    assert_told(
        &bpf(None, Err(cannot())),
        Verdict::Unknown,
        "may not be read",
        Some("as root"),
    );
}

#[test]
fn a_kernel_without_the_system_call_is_told_where_no_program_was_loaded() {
    let check = told(Topic::Bpf, |facts| {
        facts.bpf.unprivileged = Err("there is no /proc/sys/kernel/x here".into());
        facts.programs.trial = Trial::Failed("function not implemented".into());
    });
    assert_told(
        &check,
        Verdict::Unknown,
        "there is no",
        Some("CONFIG_BPF_SYSCALL"),
    );
    let loaded = told(Topic::Bpf, |facts| facts.bpf.unprivileged = Err(cannot()));
    assert_told(&loaded, Verdict::Ok, "with JIT", None);
}

#[test]
fn lockdown_forbids_where_it_is_confidentiality_alone() {
    let mode = |mode: Known<String>, trial: Option<Trial>| {
        told(Topic::Lockdown, |facts| {
            facts.bpf.lockdown = mode;
            if let Some(trial) = trial {
                facts.programs.trial = trial;
            }
        })
    };
    let check = mode(Ok("confidentiality".into()), None);
    assert_told(
        &check,
        Verdict::Degraded,
        "confidentiality",
        Some("lockdown=integrity"),
    );
    assert_told(
        &mode(Ok("integrity".into()), None),
        Verdict::Ok,
        "integrity",
        None,
    );
    // What has loaded is not forbidden, whether or not the file can be read.
    assert_told(&mode(Err(cannot()), None), Verdict::Ok, "may not be read", None);
    let check = mode(Err(cannot()), Some(Trial::Failed("x".into())));
    assert_told(&check, Verdict::Unknown, "may not be read", Some("securityfs"));
}

#[test]
fn the_rung_is_that_of_the_trial_with_the_reason_of_it() {
    let on = |rung, why: Option<&str>| {
        told(Topic::Programs, |facts| {
            facts.programs.trial = Trial::Good {
                heard: Heard {
                    why_not_better: why.map(str::to_owned),
                    ..heard(rung)
                },
                is_compiled: Some(true),
            };
        })
    };
    assert_told(
        &on(Rung::Tracepoint, None),
        Verdict::Ok,
        "btf_tracepoint; loaded",
        None,
    );
    let why = Some("btf_tracepoint: this kernel has none");
    assert_told(
        &on(Rung::Fentry, why),
        Verdict::Ok,
        "fentry, since btf_tracepoint: this",
        None,
    );
    assert_told(&on(Rung::Kprobe, why), Verdict::Degraded, "kprobe, since", None);
}

#[test]
fn programs_that_do_not_load_are_told_with_the_reason() {
    let trial = |trial| {
        move |facts: &mut Facts| {
            facts.programs.trial = trial;
        }
    };
    let failed = Trial::Failed("the self-check failed".into());
    let check = told(Topic::Programs, trial(failed.clone()));
    assert_told(
        &check,
        Verdict::Degraded,
        "the self-check failed",
        Some("report it"),
    );
    assert_told(
        &told(Topic::Events, trial(failed)),
        Verdict::Degraded,
        "no kernel programs",
        None,
    );
    let not_tried = Trial::NotTried("without CAP_BPF".into());
    let check = told(Topic::Programs, trial(not_tried.clone()));
    assert_told(
        &check,
        Verdict::Unknown,
        "btf_tracepoint; not tried: without CAP_BPF",
        Some("as for the capabilities"),
    );
    let check = told(Topic::Events, trial(not_tried));
    assert_told(&check, Verdict::Unknown, "2 of 2 hooks", None);
    assert_eq!(check.list, ["tp_btf/sched_switch", "tp_btf/cgroup_mkdir"]);
    let no_plan = |facts: &mut Facts| {
        facts.programs = Programs {
            asked: None,
            plan: Err("Linux 4.18 has no hook".into()),
            trial: Trial::NotTried("Linux 4.18 has no hook".into()),
        };
    };
    assert_told(&told(Topic::Programs, no_plan), Verdict::Degraded, "4.18", None);
    assert_told(
        &told(Topic::Events, no_plan),
        Verdict::Degraded,
        "no kernel programs",
        None,
    );
}

#[test]
fn what_is_not_heard_is_named_with_what_is_not_seen() {
    let absent = (
        "mark_victim".to_owned(),
        "no such hook: a kill is not seen".to_owned(),
    );
    let check = told(Topic::Events, |facts| {
        facts.programs.trial = Trial::Good {
            heard: Heard {
                absent: vec![absent],
                ..heard(Rung::Tracepoint)
            },
            is_compiled: Some(true),
        };
    });
    assert_told(
        &check,
        Verdict::Degraded,
        "2 of 3 hooks, without mark_victim",
        None,
    );
    assert!(check.means.contains("a kill is not seen"));
}
