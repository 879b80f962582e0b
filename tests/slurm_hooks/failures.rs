//! What goes wrong with a record is not the job's trouble, nor the node's.

use std::path::Path;

use support::measure::program;

use super::hooks::{Scene, limit};
use super::need;

const SCRIPT: &str = "#!/bin/sh\necho done\n";

/// Runs a job that has no summary in its output, and asserts that it does not notice.
fn assert_runs_without(scene: &Scene, reason: &str) {
    let (job, output) = scene.output_of(SCRIPT, &["--mem=100M"], "COMPLETED");
    assert_eq!(output, "done\n", "{reason}");
    let told = scene.hooks.told();
    let start = format!("job {job}: ");
    assert!(
        told.iter()
            .any(|line| line.starts_with(&start) && line.contains(reason)),
        "{reason}: {told:#?}"
    );
}

/// sw-bpf is absent, is no program, fails, dies, hangs, or says too much: the node stays up.
#[test]
fn whatever_sw_bpf_does_the_job_ends() {
    if !need() {
        return;
    }
    let scene = Scene::start();
    let records = scene.agent.path("jobs");
    let set = |path: &Path| scene.hooks.set(path, &records, "");
    set(Path::new("/nonexistent/sw-bpf"));
    assert_runs_without(&scene, "/nonexistent/sw-bpf is not there");
    set(&scene.hooks.write("bin/text", 0o755, "\0\0no program\n"));
    assert_runs_without(&scene, "no summary");
    let late = format!("it took longer than {} s (LIMIT)", limit());
    for (body, reason) in [
        (
            "echo 'sw-bpf: no \u{1b}[31m' >&2; exit 78",
            "no summary: sw-bpf: no  [31m",
        ),
        ("kill -SEGV $$", "no summary"),
        ("exec sleep 600", &late),
        ("trap '' TERM; while :; do sleep 0.05; done", &late),
    ] {
        set(&scene.hooks.fake(body));
        assert_runs_without(&scene, reason);
    }
    // No more than what a summary can have.
    set(&scene.hooks.fake("head -c 300000 /dev/zero | tr '\\0' x"));
    let (_, output) = scene.output_of(SCRIPT, &["--mem=100M"], "COMPLETED");
    assert_eq!(output.len(), "done\n".len() + 65_536);
    // With one that works, the next job has its summary.
    set(&program("sw-bpf"));
    let (job, output) = scene.output_of(SCRIPT, &["--mem=100M"], "COMPLETED");
    let is_told = |shown: &str| output == format!("done\n\n{shown}");
    assert!(scene.is_shown(job, 0, is_told), "{output}");
}

/// The agent is not there: what it has not written by the end of the job is not waited for without end.
#[test]
fn without_an_agent_the_job_ends() {
    if !need() {
        return;
    }
    let mut scene = Scene::start();
    let job = scene
        .slurm
        .sbatch("#!/bin/sh\necho here\nuntil-let-go\n", &["--mem=100M"]);
    scene.slurm.wait_line(job, "here");
    support::measure::wait_until("its record", || scene.agent.record(job).exists());
    scene.agent.kill();
    scene.slurm.let_go(job);
    assert_eq!(scene.slurm.wait_end(job), "COMPLETED");
    scene.wait_for_epilog();
    assert_eq!(scene.slurm.output(job), "here\n");
    assert_eq!(
        scene.hooks.told(),
        [format!(
            "job {job}: no summary yet: later, `sw-bpf show {job}` has it"
        )]
    );
    assert_runs_without(&scene, "does `sw-bpf agent` run?");
    scene.agent.restart(&scene.slurm);
    // Both are in the records by now.
    assert_eq!(scene.agent.summary(job)["kind"], "summary");
}
