//! Cgroups that a job makes itself.

use support::measure::wait_until;
use support::slurm::{Config, Slurm, cgroups};

use super::{need_slurm_v1, path_in};

#[test]
fn a_job_can_make_cgroups_in_its_steps_and_tasks_and_they_outlast_it() {
    if !need_slurm_v1() {
        return;
    }
    let slurm = Slurm::start(&Config::default());
    let script = "#!/bin/sh\n\
        task=/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory:\\(.*\\)/\\1/p' /proc/self/cgroup)\n\
        step=${task%/*}\n\
        mkdir ${step%/*}/own && echo made in the job\n\
        mkdir $step/own $task/own && echo 0 >$task/own/cgroup.procs && cat /proc/self/cgroup\n";
    let (job, state) = slurm.run_job(script, &[]);
    assert_eq!(state, "COMPLETED");
    let output = slurm.output(job);
    assert!(!output.contains("made in the job"), "{output}");
    let path = path_in(&output, "memory");
    assert!(
        path.ends_with(&format!("/job_{job}/step_batch/task_0/own")),
        "{output}"
    );

    // The end of a job is that no process is in it, not that it is gone.
    let memory = slurm.job_cgroup(job);
    let left = [
        "step_batch",
        "step_batch/own",
        "step_batch/task_0",
        "step_batch/task_0/own",
    ];
    wait_until("the other steps are gone", || cgroups::below(&memory) == left);
    assert!(
        cgroups::tree(&memory)
            .iter()
            .all(|dir| cgroups::processes(dir).is_empty())
    );
    let freezer = slurm.job_dir("freezer", job);
    wait_until("the other hierarchies are cleared", || !freezer.exists());
}
