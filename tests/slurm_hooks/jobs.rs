//! Every job is recorded from its first instruction to its end, whatever that is.

use std::fs;

use serde_json::Value;
use support::measure::MIB;
use support::slurm::Config;

use super::hooks::Hooks;
use super::need;

/// What a job has beside a workload: page tables, the workload's own footprint, shells, and a daemon for each step.
const BESIDE: u64 = 6 * MIB;

/// Asserts that a whole run was counted, and its peak.
fn assert_whole(summary: &Value, mib: u64) {
    let memory = &summary["memory"];
    assert_eq!(summary["coverage"]["from_start"], true, "{}", summary["coverage"]);
    assert_eq!(memory["source"], "kernel");
    let peak = memory["needed_peak_bytes"].as_u64().expect("a peak");
    // Not known where an interrupt gave kernel memory back unseen, and the cgroup was gone before a comparison.
    let bound = memory["error_bound_bytes"].as_u64();
    let is_lossy = summary["loss"]["kernel_memory_misses"] != 0;
    assert!(bound == Some(0) || is_lossy, "{bound:?}: {}", summary["loss"]);
    let bound = bound.unwrap_or(0);
    assert!(
        peak + bound >= mib * MIB && peak <= mib * MIB + BESIDE + bound,
        "{peak} +- {bound} for {mib} MiB"
    );
}

/// The job is its spike: its script becomes the program that allocates, and gives it back 5 ms later.
#[test]
fn a_spike_in_the_first_instruction_is_recorded() {
    if !need() {
        return;
    }
    let hooks = Hooks::install();
    let slurm = hooks.cluster(Config::default());
    let script = "#!/bin/sh\nexec workload anon --size 300M --hold-ms 5\n";
    let summary = hooks.summary(&slurm, script, &["--mem=600M"], "COMPLETED");
    assert_whole(&summary, 300);
    let steps = summary["steps"].as_array().expect("steps");
    let batch = steps.iter().find(|step| step["step_id"] == "batch");
    let peak = batch.and_then(|step| step["needed_peak_bytes"].as_u64());
    assert!(peak >= Some(300 * MIB), "{steps:#?}");
}

#[test]
fn each_task_of_an_array_has_its_record() {
    if !need() {
        return;
    }
    let hooks = Hooks::install();
    let slurm = hooks.cluster(Config::default());
    let script = "#!/bin/sh\nworkload anon --size $((40 * SLURM_ARRAY_TASK_ID))M\n";
    let array = slurm.sbatch(script, &["--array=1-3", "--mem=300M"]);
    for (number, mib) in [(1, 40), (2, 80), (3, 120)] {
        assert_eq!(slurm.wait_end(format!("{array}_{number}")), "COMPLETED");
        let parts = slurm.parts(array);
        let (_, job) = parts
            .iter()
            .find(|(name, _)| *name == format!("{array}_{number}"))
            .expect("a task");
        let path = hooks.records().join(format!("{job}.jsonl"));
        support::measure::wait_until("the summary is there", || {
            let text = fs::read_to_string(&path).unwrap_or_default();
            text.lines()
                .last()
                .is_some_and(|line| line.contains("\"kind\":\"summary\""))
        });
        assert_whole(&hooks.last_line(&format!("{job}.jsonl")), mib);
    }
    hooks.assert_cleared(&slurm, array);
    assert_eq!(hooks.record_names().len(), 3);
    assert_eq!(hooks.told(), [""; 0]);
}

#[test]
fn a_job_of_a_moment_and_one_that_does_nothing_are_recorded() {
    if !need() {
        return;
    }
    let hooks = Hooks::install();
    let slurm = hooks.cluster(Config::default());
    let script = "#!/bin/sh\nworkload anon --size 20M\nsleep 0.2\n";
    assert_whole(&hooks.summary(&slurm, script, &["--mem=100M"], "COMPLETED"), 20);
    assert_whole(
        &hooks.summary(&slurm, "#!/bin/sh\n", &["--mem=100M"], "COMPLETED"),
        0,
    );
}

#[test]
fn a_cancelled_job_has_a_summary() {
    if !need() {
        return;
    }
    let hooks = Hooks::install();
    let slurm = hooks.cluster(Config::default());
    let job = slurm.sbatch(
        "#!/bin/sh\nworkload anon --size 50M --hold-ms 5\necho here\nsleep 600\n",
        &["--mem=100M"],
    );
    slurm.wait_line(job, "here");
    slurm.scancel(job);
    assert_eq!(slurm.wait_end(job), "CANCELLED");
    assert_whole(&hooks.summary_of(&slurm, job), 50);
}

#[test]
fn a_job_that_is_killed_for_memory_says_so() {
    if !need() {
        return;
    }
    let hooks = Hooks::install();
    let slurm = hooks.cluster(Config::default());
    let script = "#!/bin/sh\nexec workload anon --size 400M\n";
    let summary = hooks.summary(&slurm, script, &["--mem=200M"], "OUT_OF_MEMORY");
    assert_eq!(summary["coverage"]["from_start"], true);
    let kill = &summary["oom_kills"][0];
    assert_eq!(
        (&kill["limit_of"], &kill["limit_bytes"]),
        (&"job".into(), &(200 * MIB).into())
    );
    let needed = kill["needed_bytes"].as_u64().expect("its memory");
    assert!((199 * MIB..=200 * MIB).contains(&needed), "{kill}");
}

/// The same id, a new directory, a new record; that of the first run is kept.
#[test]
fn a_requeued_job_has_a_record_of_each_run() {
    if !need() {
        return;
    }
    let hooks = Hooks::install();
    let slurm = hooks.cluster(Config {
        // A requeued job waits for as long as credentials are good for, else two minutes.
        slurm_conf: "AuthInfo=socket={dir}/run/munge.socket,cred_expire=5".to_owned(),
        ..Config::default()
    });
    let script = "#!/bin/sh\n\
        if [ \"${SLURM_RESTART_COUNT-0}\" = 0 ]; then\n\
        workload anon --size 90M; echo here; sleep 600\n\
        fi\n\
        workload anon --size 30M\n";
    let job = slurm.sbatch(script, &["--mem=200M", "--requeue", "--open-mode=append"]);
    slurm.wait_line(job, "here");
    let id = job.to_string();
    slurm.client("scontrol", &["requeue", &id]);
    assert_eq!(slurm.wait_end(job), "COMPLETED");
    assert_whole(&hooks.summary_of(&slurm, job), 30);
    assert_eq!(
        hooks.record_names(),
        [format!("{id}.1.jsonl"), format!("{id}.jsonl")]
    );
    assert_whole(&hooks.last_line(&format!("{id}.1.jsonl")), 90);
}
