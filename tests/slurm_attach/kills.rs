//! Jobs that run out of memory.

use support::measure::{MIB, on_its_way_back};
use support::slurm::{Config, Slurm};

use super::{Attached, bytes, cluster, need, step};

/// Runs a script with sw-bpf attached, and gives the state in which the job ended and its summary.
fn run(slurm: &Slurm, script: &str, memory: &str) -> (String, serde_json::Value) {
    let script = format!("#!/bin/bash\necho here\nuntil-let-go\n{script}");
    let job = slurm.sbatch(&script, &[memory, "-n2"]);
    slurm.wait_line(job, "here");
    let attached = Attached::start(slurm, job);
    slurm.let_go(job);
    let state = slurm.wait_end(job);
    (state, attached.summary().1)
}

fn assert_at_limit(kill: &serde_json::Value, mib: u64, summary: &serde_json::Value) {
    let needed = bytes(kill, "needed_bytes");
    let limit = mib * MIB;
    assert_eq!(kill["limit_bytes"], limit, "{kill}");
    // What is not needed memory is page cache that could not be handed back at once.
    let bound = kill["error_bound_bytes"].as_u64().unwrap_or_else(|| {
        assert_ne!(summary["loss"]["kernel_memory_misses"], 0, "{kill}");
        MIB
    });
    let charged = kill["limit_charged_bytes"].as_u64().expect("a limit");
    let most = limit.max(charged) + on_its_way_back() + bound;
    assert!((limit - MIB..=most).contains(&needed), "{kill}");
}

/// The child is killed, the script goes on.
#[test]
fn a_batch_script_that_goes_on_is_told_apart_from_one_that_does_not() {
    if !need() {
        return;
    }
    let slurm = cluster(&Config::default());
    let (state, summary) = run(
        &slurm,
        "workload anon --size 400M\nsleep 1\nexit 0\n",
        "--mem=200M",
    );
    assert_eq!(state, "OUT_OF_MEMORY");
    let kill = &summary["oom_kills"][0];
    assert_at_limit(kill, 200, &summary);
    // The limits of job and step are equal, and the job holds what the other steps hold too.
    assert_eq!(
        (&kill["limit_of"], &kill["step_id"]),
        (&"job".into(), &"batch".into())
    );
    assert_eq!(
        (&kill["victim_is_main"], &kill["victim"]["comm"]),
        (&false.into(), &"workload".into())
    );
    assert!(kill["went_on_seconds"].as_f64() > Some(0.8), "{kill}");
    let (_, summary) = run(&slurm, "exec workload anon --size 400M\n", "--mem=200M");
    let kill = &summary["oom_kills"][0];
    assert_at_limit(kill, 200, &summary);
    assert_eq!(kill["victim_is_main"], true, "{kill}");
}

/// A step with a limit of its own.
#[test]
fn a_step_over_its_own_limit_is_named() {
    if !need() {
        return;
    }
    let slurm = cluster(&Config::default());
    let script = "srun -n1 --mem=100M workload anon --size 150M\nsrun -n1 workload anon --size 50M\nexit 0\n";
    let (state, summary) = run(&slurm, script, "--mem=400M");
    assert_eq!(state, "COMPLETED");
    let kills = summary["oom_kills"].as_array().expect("kills");
    assert_eq!(kills.len(), 1, "{kills:#?}");
    assert_at_limit(&kills[0], 100, &summary);
    assert_eq!(
        (&kills[0]["limit_of"], &kills[0]["step_id"]),
        (&"step".into(), &"0".into())
    );
    assert_eq!(kills[0]["task_id"], 0);
    assert_eq!(
        (
            &step(&summary, "0")["oom_kills"],
            &step(&summary, "1")["oom_kills"]
        ),
        (&1.into(), &0.into())
    );
}
