//! Jobs that cannot be measured here: one clear line, and an exit code that says which case it is.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use support::slurm::{Config, run};

use super::{LIMIT, answered, cluster, need, refused, root, user};

#[test]
fn wrong_finished_pending_and_others_ids_are_told_apart() {
    if !need() {
        return;
    }
    let slurm = cluster(&Config::default());
    let (code, line) = refused(root(&slurm, &["4000000"]));
    assert_eq!(code, Some(67), "{line}");
    for typed in ["12x", "1_", "1.x", "0", "-"] {
        let answer = run(&mut root(&slurm, &["attach", typed]), LIMIT);
        assert_eq!(answer.status.code(), Some(2), "{typed}: {}", answer.stderr);
        assert!(answer.stderr.contains("123_4"), "{typed}: {}", answer.stderr);
    }
    let (done, _) = slurm.run_job("#!/bin/sh\n", &["--mem=100M"]);
    let (code, line) = refused(root(&slurm, &[&done.to_string()]));
    assert_eq!(code, Some(66), "{line}");
    assert!(line.contains("COMPLETED") && line.contains("sacct"), "{line}");

    let running = slurm.sbatch("#!/bin/sh\necho here\nuntil-let-go\n", &["--mem=100M"]);
    slurm.wait_line(running, "here");
    let (code, line) = refused(root(&slurm, &[&format!("{running}.7")]));
    assert_eq!(code, Some(67), "{line}");
    assert!(line.contains("batch"), "{line}");

    // More than the node has left.
    let pending = slurm.sbatch("#!/bin/sh\n", &["--mem=100M", "--begin=now+1hour", "--time=10"]);
    let answer = run(&mut root(&slurm, &[&pending.to_string()]), LIMIT);
    assert_eq!(answer.status.code(), Some(65), "{}", answer.stderr);
    assert!(answer.stdout.contains("BeginTime"), "{}", answer.stdout);
    assert_eq!(answer.stderr.lines().count(), 1, "{}", answer.stderr);
    let (code, line) = refused(root(&slurm, &["--once", "--json", &pending.to_string()]));
    assert_eq!(code, Some(65), "{line}");
}

/// Only root and its user may look at a job.
#[test]
fn a_job_of_someone_else_is_refused() {
    if !need() {
        return;
    }
    let slurm = cluster(&Config::default());
    let script = slurm.dir("work").join("roots");
    fs::write(&script, "#!/bin/sh\nuntil-let-go\n").expect("a script");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("a script");
    let script = script.to_str().expect("text");
    let id = slurm.client(
        "sbatch",
        &["--parsable", "--output=/dev/null", "--mem=100M", script],
    );
    slurm.wait_running(&id);
    support::measure::wait_until("it has a cgroup", || {
        run(&mut root(&slurm, &["--once", "--window=50ms", &id]), LIMIT)
            .status
            .success()
    });
    let (code, line) = refused(user(&slurm, &[&id]));
    assert_eq!(code, Some(77), "{line}");
    assert!(line.contains("root"), "{line}");
    slurm.client("scancel", &[&id]);
}

/// Slurm's own programs are absent, hang or fail: the job's cgroup is there all the same.
#[test]
fn without_slurms_programs_the_cgroup_is_enough() {
    if !need() {
        return;
    }
    let slurm = cluster(&Config::default());
    let job = slurm.sbatch("#!/bin/sh\necho here\nuntil-let-go\n", &["--mem=100M"]);
    slurm.wait_line(job, "here");
    let bin = tempfile::tempdir().expect("a directory");
    let id = job.to_string();
    for (program, reason) in [
        (None, "not in PATH"),
        (Some("#!/bin/sh\nsleep 100\n"), "did not answer within 5 s"),
        (Some("#!/bin/sh\necho no >&2; exit 1\n"), "failed"),
        (Some("#!/bin/sh\nyes\n"), "more than"),
    ] {
        let path = bin.path().join("scontrol");
        if let Some(text) = program {
            fs::write(&path, text).expect("a program");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
        }
        let mut command = slurm.as_root(slurm.dir("bin").join("sw-bpf"));
        let path = if program.is_some() {
            format!("{}:/usr/bin:/bin", bin.path().display())
        } else {
            bin.path().display().to_string()
        };
        command
            .env("PATH", path)
            .args(["--once", "--json", "--window=100ms", &id]);
        let answer = answered(command);
        assert_eq!(
            (&answer["job_id"], &answer["source"]),
            (&id.as_str().into(), &"kernel".into())
        );
        let why = answer["unknown"]["job"].as_str().expect("a reason");
        assert!(why.contains(reason), "{why}");
    }
    slurm.let_go(job);
}
