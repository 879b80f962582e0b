//! Jobs of every form, and the job that sw-bpf itself is in.

use support::measure::{MIB, wait_until};
use support::slurm::{JobId, cgroups};

use super::{HELD, all_nodes, bytes, cluster, gathered, hold, need, root, user, wait_held};

#[test]
fn tasks_of_an_array_and_components_are_gathered() {
    if !need() {
        return;
    }
    let slurm = cluster();
    let array = slurm.sbatch(&hold(""), &["-N2", "-n2", "--mem=300M", "--array=3-4%1"]);
    // Only a task that runs has an id of its own.
    let shown = format!("{array}_3");
    slurm.wait_running(&shown);
    let parts = slurm.parts(array);
    let raw = parts.iter().find(|(name, _)| *name == shown).expect("a task").1;
    wait_held(slurm.user().uid, raw);
    // The array means the one of it that runs.
    for id in [&shown, &array.to_string()] {
        let (told, code) = gathered(&all_nodes(user(&slurm), &["--json", "--window=200ms", id]));
        assert_eq!((code, &told["job_id"]), (Some(0), &shown.as_str().into()));
        assert_eq!(told["nodes"][1]["snapshot"]["job"]["job_id"], raw.0);
        assert!(bytes(&told, "/nodes/1/snapshot/memory/needed_bytes") >= HELD[1] * MIB);
    }
    slurm.scancel(array);
    slurm.wait_end(raw);

    let script = "#!/bin/sh\nsrun --het-group=0,1 workload anon --size 30M --hold-ms 300000\n";
    let leader = slurm.sbatch(script, &["-n1", "--mem=100M", ":", "-n1", "--mem=100M"]);
    for (offset, node) in [(0, 1), (1, 2)] {
        let raw = JobId(leader.0 + offset);
        let dir = cgroups::job("memory", &cgroups::node(node), slurm.user().uid, raw.0).join("step_0");
        wait_until("the component runs", || dir.exists());
        let id = format!("{leader}+{offset}");
        let (told, code) = gathered(&all_nodes(user(&slurm), &["--json", "--window=200ms", &id]));
        assert_eq!((code, &told["job_id"]), (Some(0), &id.as_str().into()), "{told}");
        assert_eq!(told["nodes"][0]["node"], format!("swbpf{node}"));
        assert_eq!(told["nodes"][0]["snapshot"]["job"]["job_id"], raw.0);
    }
    // Which component is meant has to be said.
    let answer = all_nodes(root(&slurm), &[&leader.to_string()]);
    assert_eq!(answer.status.code(), Some(2), "{}", answer.stderr);
    assert!(
        answer
            .stderr
            .ends_with(&format!("\n  {leader}+0\n  {leader}+1\n")),
        "{}",
        answer.stderr
    );
    slurm.scancel(leader);
}

/// The caller's own job, whose variables would lead `srun` astray.
#[test]
fn inside_of_a_job_no_id_is_needed() {
    if !need() {
        return;
    }
    let slurm = cluster();
    let script = format!(
        "{} &\nuntil-let-go\nsw-bpf --once --all-nodes --json --window=200ms >told; echo code $?\n",
        hold("").trim_end()
    );
    let job = slurm.sbatch(
        &script,
        &[
            "-N2",
            "-n2",
            "--ntasks-per-node=1",
            "--mem=300M",
            "--hint=nomultithread",
        ],
    );
    wait_held(slurm.user().uid, job);
    slurm.let_go(job);
    slurm.wait_line(job, "code 0");
    let told = std::fs::read_to_string(slurm.dir("work").join("told")).expect("an answer");
    let told: serde_json::Value = serde_json::from_str(&told).expect("one object");
    assert_eq!(
        (&told["job_id"], told["missing"].as_array().map(Vec::len)),
        (&job.to_string().into(), Some(0))
    );
    for (index, mib) in HELD.into_iter().enumerate() {
        assert!(bytes(&told, &format!("/nodes/{index}/snapshot/memory/needed_bytes")) >= mib * MIB);
    }
    slurm.scancel(job);
}
