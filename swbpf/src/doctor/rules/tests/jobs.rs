//! Cgroups and Slurm.

use super::*;
use crate::job::slurm::Settings;

/// Settings as most sites have them, with these changed.
fn settings(changed: &[(&str, &str)]) -> Settings {
    let usual = [
        ("SLURM_VERSION", "22.05.8"),
        ("ProctrackType", "proctrack/cgroup"),
        ("TaskPlugin", "task/affinity,task/cgroup"),
        ("JobAcctGatherType", "jobacct_gather/linux"),
        ("JobAcctGatherFrequency", "task=30"),
        ("PrologFlags", "Alloc,Contain"),
        ("CgroupPlugin", "autodetect"),
        ("ConstrainRAMSpace", "yes"),
    ];
    usual
        .iter()
        .filter(|(name, _)| changed.iter().all(|(other, _)| name != other))
        .chain(changed)
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// What is said of Slurm where memory is counted in this version.
fn slurm(version: Version, changed: &[(&str, &str)]) -> Check {
    told(Topic::Slurm, |facts| {
        facts.slurm = Ok(settings(changed));
        if let Ok(Cgroups {
            memory: Some(memory), ..
        }) = &mut facts.cgroups
        {
            memory.version = version;
        }
    })
}

const NO_RAM: (&str, &str) = ("ConstrainRAMSpace", "no");

#[test]
fn what_is_told_of_slurm_are_its_settings() {
    let check = slurm(Version::V1, &[]);
    assert_told(
        &check,
        Verdict::Ok,
        "Slurm 22.05.8: ProctrackType=proctrack/cgroup",
        None,
    );
    for setting in [
        "TaskPlugin=task/affinity,task/cgroup",
        "JobAcctGatherFrequency=task=30",
        "PrologFlags=Alloc,Contain",
        "CgroupPlugin=autodetect",
        "ConstrainRAMSpace=yes",
    ] {
        assert!(check.found.contains(setting), "{check:?}");
    }
}

#[test]
fn on_version_1_memory_is_counted_where_it_is_constrained_or_gathered_by_cgroup() {
    let gather = ("JobAcctGatherType", "jobacct_gather/cgroup");
    for good in [
        &[][..],
        &[NO_RAM, gather],
        &[NO_RAM, ("ConstrainSwapSpace", "yes")],
        &[NO_RAM, gather, ("TaskPlugin", "task/none")],
    ] {
        assert_told(&slurm(Version::V1, good), Verdict::Ok, "Slurm", None);
    }
    let check = slurm(Version::V1, &[NO_RAM]);
    assert_told(
        &check,
        Verdict::Degraded,
        "ConstrainRAMSpace=no",
        Some("ConstrainRAMSpace=yes"),
    );
    assert!(check.means.contains("sampled"), "{check:?}");
    let check = slurm(Version::V1, &[("TaskPlugin", "task/affinity")]);
    assert_told(
        &check,
        Verdict::Degraded,
        "TaskPlugin=task/affinity",
        Some("task/cgroup"),
    );
    let check = slurm(Version::V1, &[("ConstrainRAMSpace", "")]);
    assert_told(
        &check,
        Verdict::Unknown,
        "ConstrainRAMSpace=(none)",
        Some("cgroup.conf"),
    );
}

#[test]
fn on_version_2_every_cgroup_of_a_job_counts_memory() {
    assert_told(
        &slurm(Version::V2, &[NO_RAM]),
        Verdict::Ok,
        "ConstrainRAMSpace=no",
        None,
    );
    let check = slurm(Version::V2, &[("CgroupPlugin", "disabled")]);
    assert_told(
        &check,
        Verdict::Degraded,
        "CgroupPlugin=disabled",
        Some("proctrack/cgroup"),
    );
}

#[test]
fn without_any_plugin_of_cgroups_no_job_can_be_found() {
    for version in [Version::V1, Version::V2] {
        let changed = [
            ("ProctrackType", "proctrack/linuxproc"),
            ("TaskPlugin", "task/none"),
        ];
        let check = slurm(version, &changed);
        assert_told(
            &check,
            Verdict::Degraded,
            "linuxproc",
            Some("ProctrackType=proctrack/cgroup"),
        );
    }
}

#[test]
fn without_contain_a_job_of_salloc_ends_early() {
    for flags in ["", "Alloc", "NoContain"] {
        let check = slurm(Version::V1, &[("PrologFlags", flags)]);
        assert_told(
            &check,
            Verdict::Degraded,
            "PrologFlags=",
            Some("PrologFlags=Contain"),
        );
    }
    let check = slurm(Version::V1, &[("PrologFlags", "X11,contain")]);
    assert_told(&check, Verdict::Ok, "PrologFlags=X11,contain", None);
    // The other fault stays told.
    let check = slurm(Version::V1, &[("PrologFlags", ""), NO_RAM]);
    assert_told(&check, Verdict::Degraded, "", Some("ConstrainRAMSpace=yes"));
    assert_told(&check, Verdict::Degraded, "", Some("PrologFlags=Contain"));
}

#[test]
fn no_slurm_is_a_fact_unless_there_are_jobs() {
    assert_told(
        &told(Topic::Slurm, |_| ()),
        Verdict::Ok,
        "scontrol is not in PATH",
        None,
    );
    let check = told(Topic::Slurm, |facts| {
        if let Ok(cgroups) = &mut facts.cgroups {
            cgroups.jobs = Ok(Jobs {
                all: 1,
                without_memory: 0,
            });
        }
    });
    assert_told(&check, Verdict::Degraded, "jobs of Slurm run here", Some("PATH"));
}

#[test]
fn a_slurm_that_does_not_answer_is_unknown() {
    for (unknown, words) in [
        (
            Unknown::TimedOut {
                program: "scontrol",
                limit: std::time::Duration::from_secs(5),
            },
            "within 5 s",
        ),
        (
            Unknown::Odd {
                program: "scontrol",
                what: "it has no SLURM_VERSION",
            },
            "not understood",
        ),
    ] {
        let check = told(Topic::Slurm, |facts| facts.slurm = Err(unknown));
        assert_told(&check, Verdict::Unknown, words, Some("scontrol show config"));
    }
}

#[test]
fn without_cgroups_nothing_can_be_measured() {
    let none = |facts: &mut Facts| facts.cgroups = Err("no cgroup hierarchy is mounted".into());
    let check = told(Topic::Cgroups, none);
    assert_told(
        &check,
        Verdict::Broken,
        "no cgroup hierarchy",
        Some("mount -t cgroup2"),
    );
    assert_told(
        &told(Topic::Jobs, none),
        Verdict::Unknown,
        "no cgroup hierarchy",
        None,
    );
}

#[test]
fn layouts_are_told_apart() {
    let layout = |has_v1, has_v2, version: Option<Version>| {
        told(Topic::Cgroups, |facts| {
            if let Ok(cgroups) = &mut facts.cgroups {
                (cgroups.has_v1, cgroups.has_v2) = (has_v1, has_v2);
                cgroups.memory = version.map(|version| MemoryHierarchy {
                    version,
                    point: PathBuf::from("/cg"),
                });
            }
        })
    };
    let check = layout(true, true, Some(Version::V1));
    assert_told(
        &check,
        Verdict::Ok,
        "version 1 and 2; memory of version 1 in /cg",
        None,
    );
    assert_told(
        &layout(true, false, Some(Version::V1)),
        Verdict::Ok,
        "version 1; memory",
        None,
    );
    assert_told(
        &layout(false, true, Some(Version::V2)),
        Verdict::Ok,
        "version 2; memory",
        None,
    );
    let check = layout(true, true, None);
    assert_told(
        &check,
        Verdict::Degraded,
        "none counts memory",
        Some("cgroup_disable=memory"),
    );
}

#[test]
fn jobs_without_a_memory_cgroup_are_counted() {
    let jobs_of = |version, all, without_memory| {
        told(Topic::Jobs, |facts| {
            if let Ok(cgroups) = &mut facts.cgroups {
                cgroups.jobs = Ok(Jobs { all, without_memory });
                cgroups.memory = Some(MemoryHierarchy {
                    version,
                    point: PathBuf::from("/cg"),
                });
            }
        })
    };
    let jobs = |all, without_memory| jobs_of(Version::V1, all, without_memory);
    assert_told(&jobs(1, 0), Verdict::Ok, "1 job, with", None);
    assert_told(&jobs(3, 0), Verdict::Ok, "3 jobs, with", None);
    let check = jobs(3, 2);
    assert_told(
        &check,
        Verdict::Degraded,
        "3 jobs, 2 without",
        Some("ConstrainRAMSpace=yes"),
    );
    let check = jobs_of(Version::V2, 2, 1);
    assert_told(
        &check,
        Verdict::Degraded,
        "2 jobs, 1 without",
        Some("subtree_control"),
    );
}
