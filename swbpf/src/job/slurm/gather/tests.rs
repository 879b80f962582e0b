//! An `srun` that answers, hangs, floods, fails and is not there.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{Answer, OnEachNode};
use crate::job::slurm::tests::programs::{block, programs};
use crate::job::slurm::{Slurm, Unknown};

const LONG: Duration = Duration::from_mins(1);

fn nodes(count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("cn{number}")).collect()
}

/// What `srun`, a shell script, makes of so many nodes within a limit.
fn ask(script: &str, count: usize, limit: Duration) -> (TempDir, Result<Vec<Answer>, Unknown>) {
    let (dir, slurm) = programs(&[("srun", script)]);
    let answers = block(on_each(&slurm, count, limit, std::future::pending()));
    (dir, answers)
}

async fn on_each(
    slurm: &Slurm,
    count: usize,
    limit: Duration,
    stop: impl Future<Output = ()>,
) -> Result<Vec<Answer>, Unknown> {
    let what = OnEachNode {
        job: 7,
        het_group: None,
        nodes: &nodes(count),
        program: Path::new("/opt/sw-bpf"),
        args: &["--once".to_owned(), "a b".to_owned()],
        limit,
    };
    slurm.on_each_node(&what, stop).await
}

fn answers(script: &str, count: usize) -> Vec<Answer> {
    ask(script, count, LONG).1.expect("answers")
}

/// An answer in text, or the reason for that there is none with a `!` before it.
fn told(answers: &[Answer]) -> Vec<String> {
    let told = |answer: &Answer| match answer {
        Ok(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Err(reason) => format!("!{reason}"),
    };
    answers.iter().map(told).collect()
}

fn has_ended(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    stat.map_or(true, |stat| stat.contains(") Z "))
}

#[test]
fn one_srun_asks_all_of_them() {
    let script =
        "echo x >> calls; for a; do echo \"$a\" >> args; done; env > env; echo '1: {b}'; echo '0: {a}'";
    let (dir, answers) = ask(script, 2, LONG);
    assert_eq!(told(&answers.expect("answers")), ["{a}", "{b}"]);
    let text = |name| fs::read_to_string(dir.path().join(name)).expect(name);
    assert_eq!(text("calls"), "x\n");
    let args = text("args");
    for option in [
        "--overlap",
        "--jobid=7",
        "--nodes=2",
        "--ntasks=2",
        "--ntasks-per-node=1",
        "--label",
        "--input=none",
        "--mpi=none",
        "--cpu-bind=none",
        "--kill-on-bad-exit=0",
    ] {
        assert!(args.lines().any(|arg| arg == option), "{option}: {args}");
    }
    assert!(args.ends_with("\n/opt/sw-bpf\n--once\na b\n"), "{args}");
}

#[test]
fn what_srun_cut_is_put_together() {
    // As it comes: in parts, among one another, behind what a prologue said.
    let script = "printf '00: hello\\n01: {\"a\": \\n00: {\"b\"\\n01: 1}\\n00: : {2\\n00: 3}\\n00: \\n'";
    assert_eq!(told(&answers(script, 2)), ["{\"b\": {23}", "{\"a\": 1}"]);
}

#[test]
fn who_does_not_answer_is_told_in_the_best_words_there_are() {
    for (script, reason) in [
        // Its own, before those of anyone else.
        (
            "echo '1: sw-bpf: no job 7' >&2; echo 'srun: error: cn2: task 1: Exited' >&2",
            "no job 7",
        ),
        (
            "echo '1: hello' >&2; echo '1: slurmstepd: error: execve(): /opt/sw-bpf: No such file' >&2",
            "slurmstepd: error: execve(): /opt/sw-bpf: No such file",
        ),
        (
            "echo '1: sw-bpf: note: runs inside' >&2; echo '1: sw-bpf: no job 7' >&2",
            "no job 7",
        ),
        (
            "echo '1: sw-bpf: note: runs inside' >&2; exit 3",
            "srun ended (exit status: 3) without its answer",
        ),
        (
            "echo 'srun: error: Unable to create step for job 7: Access/permission denied' >&2; exit 1",
            "Unable to create step for job 7: Access/permission denied: Slurm starts a step for the job's own user alone, \
             be that as root",
        ),
        ("echo '1: hello' >&2", "hello"),
        // Those of srun that name it.
        (
            "echo 'srun: error: cn1: x' >&2; echo 'srun: error: Task launch failed on node cn2: timed out' >&2",
            "Task launch failed on node cn2: timed out",
        ),
        (
            "echo 'srun: error: x' >&2; echo 'srun: error: cn22: y' >&2; exit 1",
            "x",
        ),
        (
            "echo 'srun: error: Job/step already completing' >&2; exit 1",
            "Job/step already completing",
        ),
        (
            "echo 'srun: hello' >&2; exit 3",
            "srun ended (exit status: 3) without its answer",
        ),
    ] {
        let answers = answers(&format!("echo '0: {{}}'; {script}"), 2);
        assert_eq!(told(&answers), ["{}", &format!("!{reason}")], "{script}");
    }
}

#[test]
fn what_hangs_is_ended_with_its_children_and_what_was_said_is_kept() {
    let script = "trap 'echo 1 > asked; echo srun: error: cn2: Killed >&2; exit' TERM; echo '0: {a}'; sleep 600 & echo $! > child; echo $$ > self; wait";
    let begin = Instant::now();
    let (dir, answers) = ask(script, 2, Duration::from_millis(1500));
    assert_eq!(
        told(&answers.expect("answers")),
        ["{a}", "!it did not answer within 1.5 s"]
    );
    assert!(begin.elapsed() < Duration::from_secs(20));
    assert!(dir.path().join("asked").exists(), "srun is asked to end its step");
    for name in ["child", "self"] {
        let pid = fs::read_to_string(dir.path().join(name)).expect("its id");
        while !has_ended(&pid) {
            assert!(begin.elapsed() < LONG, "{name} is left");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn what_does_not_end_when_it_is_asked_to_is_killed() {
    let script = "trap '' TERM; echo '0: {a}'; echo $$ > self; while :; do sleep 1; done";
    let begin = Instant::now();
    let (dir, answers) = ask(script, 1, Duration::from_millis(1500));
    assert_eq!(told(&answers.expect("answers")), ["{a}"]);
    let pid = fs::read_to_string(dir.path().join("self")).expect("its id");
    while !has_ended(&pid) {
        assert!(begin.elapsed() < LONG, "it is left");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_caller_can_end_it_early() {
    let (dir, slurm) = programs(&[("srun", "echo '1: {b}'; touch said; sleep 600")]);
    let said = dir.path().join("said");
    let stop = async {
        while !said.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let begin = Instant::now();
    let answers = block(on_each(&slurm, 2, LONG, stop)).expect("answers");
    assert!(begin.elapsed() < LONG);
    let reason = "!it was not waited for: sw-bpf was told to end";
    assert_eq!(told(&answers), [reason, "{b}"]);
}

#[test]
fn floods_are_cut() {
    let (_dir, answers) = ask(
        "echo '1: {b}'; yes '0: {0123456789012345678901234567890123456789'",
        2,
        LONG,
    );
    let too_long = "!its answer is longer than 4 MiB, or all together than 64 MiB";
    assert_eq!(told(&answers.expect("answers")), [too_long, "{b}"]);
    let (_dir, answers) = ask(
        "echo '0: {a}'; yes 0123456789012345678901234567890123456789 >&2",
        2,
        LONG,
    );
    let flood = "!it was not waited for: srun wrote without an end";
    assert_eq!(told(&answers.expect("answers")), ["{a}", flood]);
}

#[test]
fn a_srun_that_is_not_there_is_told() {
    let (dir, slurm) = programs(&[]);
    let ask = || block(on_each(&slurm, 1, LONG, std::future::pending()));
    assert_eq!(ask(), Err(Unknown::Absent { program: "srun" }));
    fs::write(dir.path().join("srun"), "x").expect("a file");
    assert!(matches!(ask(), Err(Unknown::NotExecutable { .. })));
}

#[test]
fn the_job_that_the_caller_is_in_does_not_reach_srun() {
    for name in [
        "SLURM_JOB_ID",
        "SLURM_NTASKS",
        "SLURMD_NODENAME",
        "SRUN_DEBUG",
        "SLURM_CONF_X",
    ] {
        assert!(super::is_of_slurm(&name.into()), "{name}");
    }
    for name in ["SLURM_CONF", "SLURM_JWT", "PATH", "SLURMX", "MY_SLURM_JOB_ID"] {
        assert!(!super::is_of_slurm(&name.into()), "{name}");
    }
}
