//! Do jobs have cgroups, and do these count memory.

use crate::doctor::diagnosis::{Check, Topic, Verdict};
use crate::doctor::facts::{Cgroups, Known, Refusal};
use crate::error::{MOUNT_PROC, NO_PROC};
use crate::job::cgroup::{Version, WAY_TO_UNSEEN};

pub fn cgroups(cgroups: &Known<Cgroups>) -> Check {
    let told = |verdict, found: String, means: &str| Check::new(Topic::Cgroups, verdict, found, means);
    let cgroups = match cgroups {
        Ok(cgroups) => cgroups,
        Err(reason) => {
            return told(Verdict::Broken, reason.clone(), "there is nothing to measure").change(
                if reason == NO_PROC {
                    MOUNT_PROC
                } else {
                    "mount -t cgroup2 none /sys/fs/cgroup"
                },
            );
        }
    };
    let layout = match (cgroups.has_v1, cgroups.has_v2) {
        (true, true) => "version 1 and 2",
        (true, false) => "version 1",
        (false, _) => "version 2",
    };
    if !cgroups.sees_own {
        let found = format!("{layout}; that of this process cannot be seen");
        let means = "sw-bpf measures nothing that is not named, and `sw-bpf run` fails";
        return told(Verdict::Degraded, found, means).change(WAY_TO_UNSEEN);
    }
    match &cgroups.memory {
        Some(memory) => {
            let version = memory.version.number();
            let point = memory.point.display();
            let found = format!("{layout}; memory of version {version} in {point}");
            told(Verdict::Ok, found, "memory is counted by cgroup")
        }
        None => told(
            Verdict::Degraded,
            format!("{layout}; none counts memory"),
            "memory is sampled from the processes, CPU time is counted",
        )
        .change("boot without cgroup_disable=memory; on version 1, mount -t cgroup -o memory none /sys/fs/cgroup/memory"),
    }
}

pub fn run(run: &Result<(), Refusal>) -> Check {
    match run {
        Ok(()) => Check::new(
            Topic::Run,
            Verdict::Ok,
            "a cgroup was made for a command, and removed",
            "`sw-bpf run` measures from the first instruction",
        ),
        Err(refusal) => {
            let check = Check::new(
                Topic::Run,
                Verdict::Degraded,
                refusal.reason.clone(),
                "`sw-bpf run` fails for this user",
            );
            match refusal.way {
                Some(way) => check.change(way),
                None => check,
            }
        }
    }
}

pub fn jobs(cgroups: &Known<Cgroups>) -> Check {
    let told = |verdict, found: String, means: &str| Check::new(Topic::Jobs, verdict, found, means);
    let (jobs, is_v2) = match cgroups {
        Ok(cgroups) => (
            &cgroups.jobs,
            cgroups
                .memory
                .as_ref()
                .is_some_and(|memory| memory.version == Version::V2),
        ),
        Err(reason) => {
            return told(
                Verdict::Unknown,
                reason.clone(),
                "jobs are found by their cgroups",
            );
        }
    };
    match jobs {
        Ok(jobs) if jobs.all == 0 => told(
            Verdict::Ok,
            "no job of Slurm has a cgroup here now".to_owned(),
            "where none should be running there is nothing to say",
        ),
        Ok(jobs) if jobs.without_memory == 0 => told(
            Verdict::Ok,
            format!("{}, with a memory cgroup each", counted(jobs.all)),
            "their memory is counted",
        ),
        Ok(jobs) => told(
            Verdict::Degraded,
            format!(
                "{}, {} without a memory cgroup",
                counted(jobs.all),
                jobs.without_memory
            ),
            "the memory of those is sampled from their processes",
        )
        .change(if is_v2 {
            "see why slurmd could not turn on the memory controller: its log names cgroup.subtree_control"
        } else {
            "in cgroup.conf, ConstrainRAMSpace=yes, for jobs that start from then on"
        }),
        Err(reason) => told(
            Verdict::Unknown,
            reason.clone(),
            "jobs are found by their cgroups",
        ),
    }
}

fn counted(jobs: usize) -> String {
    match jobs {
        1 => "1 job".to_owned(),
        jobs => format!("{jobs} jobs"),
    }
}
