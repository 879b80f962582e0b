//! Each node's numbers are its own, and the totals are their sums.

use std::time::Duration;

use serde_json::Value;
use support::measure::MIB;
use support::pace::{factor, scaled};
use support::slurm::cgroups;

use super::{
    BESIDE, HELD, all_nodes, bytes, cluster, gathered, held_by_root, held_by_user, need, root, user,
};

/// What the paths of all cgroups of a node have in them.
fn of_node(name: &str) -> String {
    if cgroups::version() == 2 {
        format!("/{name}_slurmstepd.scope/")
    } else {
        format!("/slurm_{name}/")
    }
}

/// Holds what the nodes told against what the job has there, and the totals against what they told.
fn assert_sums(told: &Value) {
    assert_eq!(told["missing"], Value::Array(vec![]), "{told}");
    let mut sums = [0; 2];
    for (index, mib) in HELD.into_iter().enumerate() {
        let node = &told["nodes"][index];
        let name = format!("swbpf{}", index + 1);
        assert_eq!(
            (&node["node"], &node["snapshot"]["job"]["here"]["node"]),
            (&name.as_str().into(), &name.as_str().into())
        );
        let cgroup = node["snapshot"]["target"]["cgroup"].as_str().expect("a path");
        assert!(cgroup.contains(&of_node(&name)), "{cgroup}");
        let bound = node["snapshot"]["memory"]["error_bound_bytes"]
            .as_u64()
            .unwrap_or(0);
        for (sum, key) in sums.iter_mut().zip(["needed_bytes", "needed_peak_bytes"]) {
            let own = bytes(node, &format!("/snapshot/memory/{key}"));
            let most = mib * MIB + BESIDE + bound;
            assert!(
                own + bound >= mib * MIB && own <= most,
                "{name} {key}: {own} +- {bound}"
            );
            *sum += own;
        }
    }
    let totals = [
        bytes(told, "/totals/needed_bytes"),
        bytes(told, "/totals/needed_peak_sum_bytes"),
    ];
    assert_eq!(totals, sums);
}

#[test]
fn as_root_the_kernel_counts_on_each_node() {
    if !need() {
        return;
    }
    let slurm = cluster();
    let job = held_by_root(&slurm, "workload spin --ms 300000 &").to_string();
    // As much longer as it takes to start a step: what that costs is to be small beside it.
    let asked = scaled(Duration::from_millis(500)).as_millis();
    let answer = all_nodes(root(&slurm), &["--json", &format!("--window={asked}ms"), &job]);
    let (told, code) = gathered(&answer);
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(
        (&told["kind"], &told["job_id"]),
        (&"all_nodes".into(), &job.as_str().into())
    );
    assert_sums(&told);
    assert_eq!(told["totals"]["source"], "kernel");
    let cores = |index: usize| {
        told["nodes"][index]["snapshot"]["cpu"]["busy_cores"]
            .as_f64()
            .expect("cores")
    };
    // The machine may be busy with other things, and the daemons of the step start within the window.
    assert!(
        cores(0) < 0.2 && (0.2..1.1).contains(&cores(1)),
        "{} {}",
        cores(0),
        cores(1)
    );
    // A sum that was written as text and read back can differ in its last digit.
    let sum = told["totals"]["busy_cores"].as_f64().expect("cores");
    assert!((sum - cores(0) - cores(1)).abs() < 1e-9, "{sum}");
    for node in told["nodes"].as_array().expect("nodes") {
        assert_eq!(node["snapshot"]["target"]["own_processes"], "left");
        let window = node["snapshot"]["window_seconds"].as_f64().expect("a window");
        let slower = f64::from(factor());
        assert!((0.5 * slower..0.9 * slower).contains(&window), "{window}");
    }
    let text = all_nodes(root(&slurm), &["--window=100ms", &job]).good();
    for name in ["swbpf1", "swbpf2", "all"] {
        assert!(
            text.lines().any(|line| line.starts_with(&format!("  {name} "))),
            "{text}"
        );
    }
    // What it started in the job is gone.
    let steps = slurm.client(
        "squeue",
        &["--noheader", "--steps", "--format=%i", "--jobs", &job],
    );
    assert!(
        steps
            .lines()
            .all(|step| !step.ends_with(".1") && !step.ends_with(".2")),
        "{steps}"
    );
    // Slurm lets no one but its user start a step in a job.
    let other = held_by_user(&slurm).to_string();
    let answer = all_nodes(root(&slurm), &["--json", &other]);
    let (told, code) = gathered(&answer);
    assert_eq!(code, Some(76));
    for node in told["nodes"].as_array().expect("nodes") {
        let reason = node["reason"].as_str().expect("a reason");
        assert!(reason.contains("own user alone"), "{reason}");
    }
    slurm.client("scancel", &[&job, &other]);
}

#[test]
fn as_the_user_of_the_job_the_files_are_read_on_each_node() {
    if !need() {
        return;
    }
    let slurm = cluster();
    let job = held_by_user(&slurm).to_string();
    let answer = all_nodes(user(&slurm), &["--json", "--window=500ms", &job]);
    let (told, code) = gathered(&answer);
    assert_eq!(code, Some(0), "{told}");
    assert_sums(&told);
    assert_eq!(told["totals"]["source"], "sampled");
    // What samples can have missed on each node.
    let bounds = [0, 1].map(|node| bytes(&told, &format!("/nodes/{node}/snapshot/memory/error_bound_bytes")));
    let sum: u64 = bounds.iter().sum();
    assert_eq!(bytes(&told, "/totals/error_bound_bytes"), sum);
    slurm.client("scancel", &[&job]);
}
