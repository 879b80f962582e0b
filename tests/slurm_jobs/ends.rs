//! Jobs that do not end by themselves.

use std::fs;

use support::measure::wait_until;
use support::need_slurm;
use support::slurm::{Config, Slurm};

const STAYS: &str = "#!/bin/sh\necho here\nuntil-let-go\n";

#[test]
fn a_job_that_is_cancelled_or_out_of_time_says_so() {
    if !need_slurm() {
        return;
    }
    let slurm = Slurm::start(&Config {
        accounting: true,
        ..Config::default()
    });
    // The controller looks for jobs whose time is over every 30 s: that wait is shared with the rest of this test.
    let late = slurm.sbatch(STAYS, &["--time=1"]);
    slurm.wait_line(late, "here");
    slurm.client(
        "scontrol",
        &["update", &format!("JobId={late}"), "EndTime=now+10"],
    );

    let cancelled = slurm.sbatch(STAYS, &[]);
    slurm.wait_line(cancelled, "here");
    slurm.scancel(cancelled);
    assert_eq!(slurm.wait_end(cancelled), "CANCELLED");
    let rows = slurm.sacct(cancelled, &["ExitCode"]);
    assert_eq!(rows[0].get("State"), "CANCELLED by 0");
    assert_eq!(
        (rows[1].get("State"), rows[1].get("ExitCode")),
        ("CANCELLED", "0:15")
    );

    assert_eq!(slurm.wait_end(late), "TIMEOUT");
    let rows = slurm.sacct(late, &["ExitCode", "Timelimit"]);
    let told = |index: usize| (rows[index].get("State"), rows[index].get("ExitCode"));
    assert_eq!(told(0), ("TIMEOUT", "0:0"));
    assert_eq!(rows[0].get("Timelimit"), "00:01:00");
    // Nothing of the script's own row names the time limit.
    assert_eq!(told(1), ("CANCELLED", "0:15"));
}

#[test]
fn a_process_that_leaves_its_session_ends_with_the_job() {
    if !need_slurm() {
        return;
    }
    let slurm = Slurm::start(&Config::default());
    let (job, state) = slurm.run_job("#!/bin/sh\nsetsid sleep 600 &\necho $!\n", &[]);
    assert_eq!(state, "COMPLETED");
    let pid: u32 = slurm.output(job).trim().parse().expect("a process id");
    wait_until("the process has ended", || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // Ended and not yet waited for, at most.
        stat.rsplit_once(") ")
            .is_none_or(|(_, rest)| rest.starts_with('Z'))
    });
    let dir = slurm.job_dir("freezer", job);
    wait_until("the directory is removed", || !dir.exists());
}
