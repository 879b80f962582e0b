//! What is told of a job: its steps and tasks, its facts, its end.

use std::time::Duration;

use serde_json::Value;
use support::measure::wait_until;
use support::pace::{factor, scaled};
use support::slurm::{Config, Gather, cgroups};

use super::{Attached, answered, assert_holds, bytes, cluster, need, root, step};

/// A batch script with two steps, one of which spikes for 30 ms. The accounting looks every second, and misses it.
#[test]
fn a_job_has_rows_for_its_steps_and_the_spike_that_the_accounting_misses() {
    if !need() {
        return;
    }
    let slurm = cluster(&Config {
        accounting: true,
        gather_seconds: 1,
        ..Config::default()
    });
    // Its two tasks are to be there at once, however slowly the second one starts.
    let both = scaled(Duration::from_millis(100)).as_millis();
    let script = format!(
        "#!/bin/sh\necho here\nuntil-let-go\n\
         srun -n1 workload anon --size 300M --hold-ms 30\n\
         srun -n2 --overlap workload anon --size 60M --hold-ms {both}\n\
         workload anon --size 40M --hold-ms 5\n"
    );
    let job = slurm.sbatch(&script, &["--mem=900M", "-n2", "--job-name=two steps"]);
    slurm.wait_line(job, "here");
    let attached = Attached::start(&slurm, job);
    slurm.let_go(job);
    assert_eq!(slurm.wait_end(job), "COMPLETED");
    let (told, summary) = attached.summary();
    for (id, mib) in [("batch", 40), ("0", 300), ("1", 120)] {
        assert_holds(step(&summary, id), mib);
        assert!(step(&summary, id)["ended_at"].is_string(), "{id}");
        assert!(told.contains(&format!("  .{id} ")), "{told}");
    }
    let tasks = step(&summary, "1")["tasks"].as_array().expect("tasks");
    assert_eq!(tasks.len(), 2);
    for task in tasks {
        assert_holds(task, 60);
    }
    assert_holds(&summary["memory"], 300);
    assert_eq!(summary["memory"]["source"], "kernel");
    // A step that began under watch is exact, unless an interrupt gave kernel memory back unseen.
    let is_lossy = summary["loss"]["kernel_memory_misses"] != 0;
    assert!(
        step(&summary, "0")["error_bound_bytes"] == 0 || is_lossy,
        "{summary}"
    );
    let stored = slurm.sacct_step(job, "0", &["MaxRSS"]);
    println!(
        "step 0: needed peak {}; MaxRSS every second {}",
        bytes(step(&summary, "0"), "needed_peak_bytes"),
        stored.get("MaxRSS")
    );
    assert!(stored.max_rss_bytes() < Some(150 << 20), "{stored:?}");
}

/// What Slurm says of the job is beside the numbers.
#[test]
fn the_facts_of_a_job_are_told() {
    if !need() {
        return;
    }
    let slurm = cluster(&Config::default());
    let name = "odd = name | 'x' \u{1b}[31m";
    let job = slurm.sbatch(
        "#!/bin/sh\necho here\nuntil-let-go\n",
        &["--mem=300M", "-c2", "--time=30", "--job-name", name],
    );
    slurm.wait_line(job, "here");
    let answer = answered(root(
        &slurm,
        &["--once", "--json", "--window=200ms", &job.to_string()],
    ));
    assert_eq!(
        (&answer["job_id"], &answer["target"]["kind"]),
        (&job.to_string().into(), &"job".into())
    );
    let told = &answer["job"];
    assert_eq!(told["job_id"], job.0);
    assert_eq!(told["user"], slurm.user().name.as_str());
    assert_eq!(
        (&told["state"], &told["time_limit_seconds"]),
        (&"RUNNING".into(), &1800.into())
    );
    assert_eq!(told["requested"]["memory_per_node_bytes"], 300_u64 << 20);
    assert_eq!(told["here"]["node"], "swbpf1");
    assert_eq!(told["here"]["memory_bytes"], 300_u64 << 20);
    assert_eq!(answer["memory"]["limit_bytes"], 300_u64 << 20);
    let elapsed = answer["elapsed_seconds"].as_f64().expect("a span");
    assert!((0.0..60.0 * f64::from(factor())).contains(&elapsed), "{elapsed}");
    let text = support::slurm::run(
        &mut root(&slurm, &["--once", "--window=100ms", &job.to_string()]),
        super::LIMIT,
    )
    .good();
    assert!(!text.contains('\u{1b}'), "{text}");
    slurm.let_go(job);
}

/// On version 1 Slurm then makes no memory cgroup: time is exact, memory is that of the processes, and what to set is said. On
/// version 2 the kernel counts it all the same, but has no cgroup for each task.
#[test]
fn a_job_without_limits_and_gathering_by_cgroup_is_told_as_exactly_as_can_be() {
    if !need() {
        return;
    }
    let slurm = cluster(&Config {
        constrain_ram: false,
        gather: Gather::Linux,
        ..Config::default()
    });
    let script = "#!/bin/sh\necho here\nsrun workload anon --size 50M --hold-ms 300000\n";
    let job = slurm.sbatch(script, &["--mem=300M"]);
    slurm.wait_line(job, "here");
    let is_counted = cgroups::version() == 2;
    let mut answer = Value::Null;
    wait_until("memory of the step", || {
        answer = answered(root(
            &slurm,
            &["--once", "--json", "--window=300ms", &job.to_string()],
        ));
        assert_eq!(answer["cpu"]["source"], "kernel");
        if is_counted {
            assert_eq!(answer["memory"]["source"], "kernel");
        } else {
            assert_eq!(answer["memory"]["source"], "sampled");
            let reason = answer["unknown"]["memory.error_bound_bytes"]
                .as_str()
                .expect("a reason");
            assert!(reason.contains("ConstrainRAMSpace"), "{reason}");
        }
        answer["memory"]["needed_bytes"].as_u64() > Some(50 << 20)
            && answer["steps"]
                .as_array()
                .is_some_and(|steps| steps.iter().any(|step| step["step_id"] == "0"))
            && step(&answer, "0")["needed_bytes"].as_u64() > Some(50 << 20)
    });
    if is_counted {
        assert_holds(&answer["memory"], 50);
        assert_holds(step(&answer, "0"), 50);
        assert_eq!(step(&answer, "0")["tasks"], Value::Array(vec![]));
        assert_eq!(answer["memory"]["limit_bytes"], Value::Null);
    }
    slurm.scancel(job);
}

/// Fifty steps one after the other, each of some 50 ms: each has its row and its peak.
#[test]
fn fifty_short_steps_have_fifty_rows() {
    if !need() {
        return;
    }
    let slurm = cluster(&Config::default());
    let script = "#!/bin/sh\necho here\nuntil-let-go\nfor i in $(seq 50); do srun -n1 workload anon --size 16M; done\n";
    let job = slurm.sbatch(script, &["--mem=300M"]);
    slurm.wait_line(job, "here");
    let attached = Attached::start(&slurm, job);
    slurm.let_go(job);
    assert_eq!(slurm.wait_end(job), "COMPLETED");
    let (_, summary) = attached.summary();
    // Where an interrupt gave kernel memory back unseen, that is a bound for all that was there then.
    let is_lossy = summary["loss"]["kernel_memory_misses"] != 0;
    for id in 0..50 {
        let row = step(&summary, &id.to_string());
        assert_holds(row, 16);
        assert_holds(&row["tasks"][0], 16);
        assert!(row["error_bound_bytes"] == 0 || is_lossy, "{row}");
    }
    assert_eq!(
        (&summary["loss"]["without_row"], &summary["steps_left_out"]),
        (&0.into(), &0.into())
    );
}
