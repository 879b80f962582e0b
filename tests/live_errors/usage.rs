//! What was typed is not understood.

use support::command::{failure, output, sw_bpf, told};

#[test]
fn what_is_not_understood_is_2() {
    for arguments in [
        &["frobnicate"][..],
        &[""],
        &["12x"],
        &["run"],
        &["run", "--"],
        &["run", "--limit-mem", "much", "--", "true"],
        &["run", "--limit-mem", "0", "--", "true"],
        &["attach", "--pid", "0"],
        &["attach", "--pid", "-1"],
        &["attach", "--pid", "99999999999"],
        &["attach", "--pid", "1", "--cgroup", "/sys/fs/cgroup"],
        &["attach", "4711", "--pid", "1"],
        &["--once", "--window", "1ms"],
        &["--once", "--window", "2h"],
        &["--once", "--window", "-1s"],
        &["--once", "--pid", "x"],
        &["--json"],
        &["--once", "run", "--", "true"],
        &["--force-source", "magic", "--once"],
    ] {
        let output = output(&mut sw_bpf(arguments));
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", told(&output));
        assert!(
            output.stdout.is_empty() && !output.stderr.is_empty(),
            "{arguments:?}"
        );
    }
}

/// Whether or not Slurm is here: it does not know this job.
#[test]
fn a_job_that_is_nowhere_is_67() {
    for arguments in [
        &["4294967293"][..],
        &["attach", "4294967293.batch"],
        &["--once", "4294967293_7"],
    ] {
        let (code, line) = failure(&output(&mut sw_bpf(arguments)));
        assert_eq!(code, Some(67), "{line}");
    }
}

#[test]
fn help_lists_every_exit_code() {
    let output = output(&mut sw_bpf(&["--help"]));
    assert!(output.status.success() && output.stderr.is_empty());
    let help = String::from_utf8_lossy(&output.stdout);
    for (code, meaning) in swbpf::error::EXIT_CODES {
        assert!(help.contains(&format!("{code:>5}  {meaning}")), "{code}");
    }
}
