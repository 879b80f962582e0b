//! Cgroups that a job makes itself.

use support::measure::wait_until;
use support::need_slurm;
use support::slurm::cgroups::path_in;
use support::slurm::{Config, Slurm, cgroups};

/// On version 1 in its steps and tasks, and it can move there; on version 2 in its tasks alone, and it cannot.
#[test]
fn a_job_can_make_cgroups_and_they_outlast_it() {
    if !need_slurm() {
        return;
    }
    let slurm = Slurm::start(&Config::default());
    let script = format!(
        "#!/bin/sh\n{}for dir in $job $step $limited $task; do mkdir $dir/own && echo made in ${{dir#$job}}; done\n\
         echo 0 >$task/own/cgroup.procs\ncat /proc/self/cgroup\n",
        cgroups::shell()
    );
    let (job, state) = slurm.run_job(&script, &[]);
    assert_eq!(state, "COMPLETED");
    let output = slurm.output(job);
    let made: Vec<_> = output
        .lines()
        .filter_map(|line| line.strip_prefix("made in /"))
        .collect();
    let task = cgroups::task("step_batch", 0);
    let (places, moved) = if cgroups::version() == 2 {
        (vec![task.as_str()], "")
    } else {
        (vec!["step_batch", &task], "/own")
    };
    assert_eq!(made, places, "{output}");
    let path = path_in(&output, "memory");
    assert!(path.ends_with(&format!("/job_{job}/{task}{moved}")), "{output}");

    // The end of a job is that no process is in it, not that it is gone.
    let memory = slurm.job_cgroup(job);
    let mut left: Vec<_> = places.iter().map(|place| format!("{place}/own")).collect();
    left.extend(above(&task));
    left.sort();
    wait_until("the other steps are gone", || cgroups::below(&memory) == left);
    assert!(
        cgroups::tree(&memory)
            .iter()
            .all(|dir| cgroups::processes(dir).is_empty())
    );
    if cgroups::version() == 1 {
        let freezer = slurm.job_dir("freezer", job);
        wait_until("the other hierarchies are cleared", || !freezer.exists());
    }
}

/// The path, and those of all that it is in.
fn above(path: &str) -> Vec<String> {
    let ends = path.match_indices('/').map(|(index, _)| index);
    ends.chain([path.len()])
        .map(|end| path[..end].to_owned())
        .collect()
}
