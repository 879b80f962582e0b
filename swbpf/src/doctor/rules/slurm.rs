//! Will jobs have cgroups that count memory, by the settings of Slurm.

use crate::doctor::diagnosis::{Check, Topic, Verdict};
use crate::doctor::facts::{Cgroups, Known};
use crate::job::cgroup::Version;
use crate::job::slurm::{Settings, Unknown};

/// The settings that are told, by the names that Slurm has for them.
const TOLD: [&str; 7] = [
    "ProctrackType",
    "TaskPlugin",
    "JobAcctGatherType",
    "JobAcctGatherFrequency",
    "PrologFlags",
    "CgroupPlugin",
    "ConstrainRAMSpace",
];

pub fn slurm(slurm: &Result<Settings, Unknown>, cgroups: &Known<Cgroups>) -> Check {
    let told = |verdict, found: String, means: &str| Check::new(Topic::Slurm, verdict, found, means);
    match slurm {
        Ok(settings) => configured(settings, cgroups),
        Err(Unknown::Absent { .. }) if has_jobs(cgroups) => told(
            Verdict::Degraded,
            "jobs of Slurm run here, and scontrol is not in PATH".to_owned(),
            "what a job asked for is not known, and ids of arrays are not understood",
        )
        .change("put the directory of Slurm's programs into PATH; sudo has one of its own (secure_path)"),
        Err(Unknown::Absent { .. }) => told(
            Verdict::Ok,
            "none: scontrol is not in PATH".to_owned(),
            "`sw-bpf run`, `--cgroup` and `--pid` do without",
        ),
        Err(unknown) => told(
            Verdict::Unknown,
            unknown.to_string(),
            "whether jobs have memory cgroups is not known, nor what they ask for",
        )
        .change("see that `scontrol show config` answers here"),
    }
}

fn has_jobs(cgroups: &Known<Cgroups>) -> bool {
    let jobs = cgroups
        .as_ref()
        .ok()
        .and_then(|cgroups| cgroups.jobs.as_ref().ok());
    jobs.is_some_and(|jobs| jobs.all > 0)
}

/// Which of Slurm's plugins make cgroups.
struct Plugins {
    proctrack: bool,
    task: bool,
    gather: bool,
}

fn configured(settings: &Settings, cgroups: &Known<Cgroups>) -> Check {
    let plugins = Plugins {
        proctrack: settings.lists("ProctrackType", "proctrack/cgroup"),
        task: settings.lists("TaskPlugin", "task/cgroup"),
        gather: settings.lists("JobAcctGatherType", "jobacct_gather/cgroup"),
    };
    let memory = cgroups.as_ref().ok().and_then(|cgroups| cgroups.memory.as_ref());
    let check = match memory.map(|memory| memory.version) {
        Some(version) => of_memory(settings, &plugins, version),
        None => told(
            settings,
            Verdict::Unknown,
            "no cgroup here counts memory, whatever Slurm does",
        ),
    };
    with_contain(check, settings)
}

fn of_memory(settings: &Settings, plugins: &Plugins, version: Version) -> Check {
    const EXACT: &str = "jobs have memory cgroups: their memory is counted";
    let constrains = ["ConstrainRAMSpace", "ConstrainSwapSpace"].map(|name| settings.is_on(name));
    if settings.lists("CgroupPlugin", "disabled") || !(plugins.proctrack || plugins.task || plugins.gather) {
        return told(
            settings,
            Verdict::Degraded,
            "jobs have no cgroups, so none can be measured by its id",
        )
        .change("in slurm.conf, ProctrackType=proctrack/cgroup and TaskPlugin=task/cgroup");
    }
    // On version 2 Slurm turns on every controller that there is, for each job.
    if version == Version::V2 || plugins.gather || (plugins.task && constrains.contains(&Some(true))) {
        return told(settings, Verdict::Ok, EXACT);
    }
    if plugins.task && constrains[0].is_none() {
        return told(
            settings,
            Verdict::Unknown,
            "without ConstrainRAMSpace=yes jobs have no memory cgroup, and their memory is sampled",
        )
        .change("look at ConstrainRAMSpace in cgroup.conf, which this Slurm does not tell");
    }
    let check = told(
        settings,
        Verdict::Degraded,
        "jobs have no memory cgroup: their memory is sampled from their processes, CPU time is counted",
    );
    if plugins.task {
        check.change("in cgroup.conf, ConstrainRAMSpace=yes; or in slurm.conf, JobAcctGatherType=jobacct_gather/cgroup")
    } else {
        check.change("in slurm.conf, TaskPlugin=task/cgroup, and in cgroup.conf, ConstrainRAMSpace=yes")
    }
}

/// Version and settings, and what these mean.
fn told(settings: &Settings, verdict: Verdict, means: &str) -> Check {
    let version = settings.version().unwrap_or("of an unknown version");
    let values = TOLD.map(|name| format!("{name}={}", settings.get(name).unwrap_or("(none)")));
    Check::new(
        Topic::Slurm,
        verdict,
        format!("Slurm {version}: {}", values.join(" ")),
        means,
    )
}

/// `PrologFlags=Contain` keeps a job populated from its begin to its end.
fn with_contain(check: Check, settings: &Settings) -> Check {
    if settings.lists("PrologFlags", "contain") {
        return check;
    }
    let means = format!(
        "{}; a job of salloc whose steps all end between two srun is taken for ended",
        check.means
    );
    let verdict = check.verdict.max(Verdict::Degraded);
    Check {
        verdict,
        means,
        ..check
    }
    .change("in slurm.conf, PrologFlags=Contain")
}
