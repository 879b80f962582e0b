//! Which number a job's directory bears, and on which node it is.

use std::collections::BTreeSet;

use support::measure::wait_until;
use support::need_slurm;
use support::slurm::cgroups::path_in;
use support::slurm::{Config, JobId, Slurm, cgroups};

use super::right_below;

fn two_nodes() -> Slurm {
    Slurm::start(&Config {
        nodes: 2,
        ..Config::default()
    })
}

#[test]
fn each_task_of_an_array_has_a_number_and_the_last_has_the_arrays() {
    if !need_slurm() {
        return;
    }
    let slurm = two_nodes();
    let script =
        "#!/bin/sh\necho $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID $SLURM_JOB_ID\ncat /proc/self/cgroup\n";
    let array = slurm.sbatch(script, &["--array=2-4"]);
    // Until it starts, a task has the number of the array.
    let distinct = |parts: &[(String, JobId)]| parts.iter().map(|(_, id)| *id).collect::<BTreeSet<_>>().len();
    wait_until("all tasks have started", || distinct(&slurm.parts(array)) == 3);
    let parts = slurm.parts(array);
    let names: Vec<_> = parts.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(names, [2, 3, 4].map(|task| format!("{array}_{task}")));
    assert_eq!(parts[2].1, array);
    for (task, (name, id)) in (2..).zip(&parts) {
        assert_eq!(slurm.wait_end(name), "COMPLETED");
        let output = slurm.output(id);
        assert!(output.starts_with(&format!("{array} {task} {id}\n")), "{output}");
        assert!(
            path_in(&output, "memory").contains(&format!("/job_{id}/")),
            "{output}"
        );
    }
}

#[test]
fn each_component_of_a_het_job_is_a_job() {
    if !need_slurm() {
        return;
    }
    let slurm = two_nodes();
    let script = "#!/bin/sh\nsrun --het-group=0,1 until-let-go\n";
    let first = slurm.sbatch(script, &["-n1", ":", "-n1"]);
    slurm.wait_running(first);
    let second = JobId(first.0 + 1);
    let parts = slurm.parts(first);
    assert_eq!(
        parts,
        [(format!("{first}+0"), first), (format!("{first}+1"), second)]
    );
    // The components are on nodes of their own, and the script is in the first alone.
    let user = slurm.user().uid;
    let dirs =
        [("swbpf1", first), ("swbpf2", second)].map(|(node, job)| cgroups::job("freezer", node, user, job.0));
    wait_until("both steps run", || {
        dirs.iter().all(|dir| dir.join("step_0").exists())
    });
    let steps = dirs.map(|dir| right_below(cgroups::below(&dir)));
    assert_eq!(steps[0], ["step_0", "step_batch", "step_extern"]);
    assert_eq!(steps[1], ["step_0", "step_extern"]);
    slurm.let_go(first);
    assert_eq!(slurm.wait_end(first), "COMPLETED");
}

#[test]
fn several_nodes_on_one_host_keep_their_jobs_apart() {
    if !need_slurm() {
        return;
    }
    let slurm = two_nodes();
    let script = "#!/bin/sh\nsrun sh -c 'echo $SLURM_PROCID $SLURMD_NODENAME; cat /proc/self/cgroup'\n";
    let (job, state) = slurm.run_job(script, &["-N2", "-n2"]);
    assert_eq!(state, "COMPLETED");
    let output = slurm.output(job);
    let user = slurm.user().uid;
    for (task, node) in ["swbpf1", "swbpf2"].into_iter().enumerate() {
        // Tasks are numbered anew on each node.
        let path = cgroups::job("memory", node, user, job.0).join(cgroups::task("step_0", 0));
        let is_in = |line: &str| {
            line.split_once(":/")
                .is_some_and(|(_, inside)| path.ends_with(inside))
        };
        assert!(output.lines().any(is_in), "{output}");
        assert!(
            output.lines().any(|line| line == format!("{task} {node}")),
            "{output}"
        );
    }
}
