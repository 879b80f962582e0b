//! Programs that answer, hang, fail, flood and are not there.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::job::id::JobId;
use crate::job::slurm::*;

/// Path of a stored answer.
fn stored(name: &str) -> String {
    format!("{}/tests/fixtures/slurm/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A directory with these programs, each a shell script.
pub fn programs(scripts: &[(&str, &str)]) -> (TempDir, Slurm) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for (name, script) in scripts {
        let path = dir.path().join(format!("{name}.sh"));
        fs::write(
            &path,
            format!("#!/bin/sh\ncd '{}'\n{script}\n", dir.path().display()),
        )
        .expect("a script");
        // Another process writes the program: one that is open for writing here when another test forks cannot be run.
        let copied = Command::new("install")
            .args(["-m", "755"])
            .arg(&path)
            .arg(dir.path().join(name))
            .status();
        assert!(copied.expect("install").success());
    }
    let slurm = Slurm::default().in_dir(dir.path().to_path_buf());
    (dir, slurm)
}

pub fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(future)
}

fn facts(slurm: &Slurm, id: &str) -> Result<Vec<JobFacts>, Unknown> {
    block(slurm.facts(&id.parse().expect(id)))
}

/// How Slurm 22.05 refuses JSON.
const NO_JSON: &str = "case $1 in --json) echo \"scontrol: unrecognized option '--json'\" >&2; exit 1;; esac";

#[test]
fn text_is_asked_for_where_there_is_no_json() {
    let script = format!("echo \"$*\" >> calls; {NO_JSON}; cat '{}'", stored("array.txt"));
    let (dir, slurm) = programs(&[("scontrol", &script)]);
    let jobs = facts(&slurm, "4_1.batch").expect("facts");
    assert_eq!(jobs.len(), 1);
    assert_eq!(jobs[0].job_id, 19);
    let calls = fs::read_to_string(dir.path().join("calls")).expect("calls");
    assert_eq!(calls, "--json -d show job 4_1\n-d show job 4_1\n");
}

#[test]
fn json_is_one_call() {
    let script = format!("echo x >> calls; cat '{}'", stored("json_26.05.json"));
    let (dir, slurm) = programs(&[("scontrol", &script)]);
    let jobs = facts(&slurm, "4_[1-3]").expect("facts");
    let ids: Vec<_> = jobs.iter().map(|job| job.job_id).collect();
    assert_eq!(ids, [4, 19]);
    assert_eq!(
        fs::read_to_string(dir.path().join("calls")).expect("calls"),
        "x\n"
    );
}

#[test]
fn a_job_that_slurm_does_not_know_is_told_from_a_controller_that_is_down() {
    let empty = "case $1 in --json) echo '{\"jobs\": []}'; exit 0;; esac";
    for (refusal, expected) in [
        ("slurm_load_jobs error: Invalid job id specified", Ok(vec![])),
        ("Job 4_77 not found", Ok(vec![])),
        (
            "sh: scontrol: not found",
            Err(Unknown::Failed {
                program: "scontrol",
                told: "sh: scontrol: not found".into(),
            }),
        ),
        (
            "slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
            Err(Unknown::Failed {
                program: "scontrol",
                told: "slurm_load_jobs error: Unable to contact slurm controller (connect failure)".into(),
            }),
        ),
    ] {
        for begin in [empty, NO_JSON] {
            // Some versions say it on standard output.
            for to in [">&2", ""] {
                let script = format!("{begin}; echo '{refusal}' {to}; exit 1");
                let (_dir, slurm) = programs(&[("scontrol", &script)]);
                assert_eq!(facts(&slurm, "4"), expected);
            }
        }
    }
}

#[test]
fn the_users_habits_do_not_reach_the_programs() {
    let script = format!("{NO_JSON}; env > env; cat '{}'", stored("running.txt"));
    let (dir, slurm) = programs(&[("scontrol", &script)]);
    facts(&slurm, "1").expect("facts");
    let env = fs::read_to_string(dir.path().join("env")).expect("the environment");
    for line in ["LC_ALL=C", "TZ=UTC", "SLURM_BITSTR_LEN=0"] {
        assert!(env.lines().any(|own| own == line), "{line}");
    }
}

#[test]
fn what_hangs_is_ended_with_its_children() {
    let (dir, slurm) = programs(&[("scontrol", "sleep 600 & echo $! > child; echo $$ > self; wait")]);
    let slurm = slurm.with_limit(Duration::from_millis(300));
    let begin = Instant::now();
    let unknown = facts(&slurm, "1").expect_err("no answer");
    assert!(matches!(unknown, Unknown::TimedOut { .. }), "{unknown}");
    assert!(unknown.to_string().contains("0.3 s"), "{unknown}");
    for name in ["child", "self"] {
        wait_for_end(dir.path(), name, begin);
    }
}

/// Waits until the process has ended whose id is in the file of this name.
fn wait_for_end(dir: &Path, name: &str, begin: Instant) {
    let pid = fs::read_to_string(dir.join(name)).expect("its id");
    let proc = Path::new("/proc").join(pid.trim());
    let has_ended = || fs::read_to_string(proc.join("stat")).map_or(true, |stat| stat.contains(") Z "));
    while !has_ended() {
        assert!(begin.elapsed() < Duration::from_mins(1), "{name} is left");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_goes_on_behind_the_answer_is_not_waited_for() {
    let left = "sleep 600 & echo $! > child";
    let script = format!("{NO_JSON}; cat '{}'; {left}", stored("running.txt"));
    let (dir, slurm) = programs(&[("scontrol", &script)]);
    let slurm = slurm.with_limit(Duration::from_mins(2));
    let begin = Instant::now();
    let jobs = facts(&slurm, "1").expect("what was written is whole");
    assert_eq!(jobs.len(), 1);
    wait_for_end(dir.path(), "child", begin);
    // What it wrote is no answer: that is told, and not that it hangs.
    let (_dir, slurm) = programs(&[("scontrol", &format!("echo {{; {left}"))]);
    let unknown = facts(&slurm.with_limit(Duration::from_mins(2)), "1").expect_err("no answer");
    assert!(!matches!(unknown, Unknown::TimedOut { .. }), "{unknown}");
}

#[test]
fn floods_are_cut() {
    let (_dir, slurm) = programs(&[("scontrol", &format!("{NO_JSON}; yes"))]);
    assert!(matches!(
        facts(&slurm, "1"),
        Err(Unknown::TooLong { max: 4_194_304, .. })
    ));
    let (_dir, slurm) = programs(&[("scontrol", "yes >&2")]);
    assert!(matches!(
        facts(&slurm, "1"),
        Err(Unknown::TooLong { max: 65_536, .. })
    ));
}

#[test]
fn too_much_json_is_asked_for_as_text() {
    let script = format!(
        "case $1 in --json) exec yes;; esac; cat '{}'",
        stored("running.txt")
    );
    let (_dir, slurm) = programs(&[("scontrol", &script)]);
    assert_eq!(facts(&slurm, "1").expect("facts").len(), 1);
}

#[test]
fn what_is_not_there_or_not_a_program_is_told() {
    let (dir, slurm) = programs(&[]);
    assert_eq!(facts(&slurm, "1"), Err(Unknown::Absent { program: "scontrol" }));
    fs::write(dir.path().join("scontrol"), "x").expect("a file");
    let unknown = facts(&slurm, "1").expect_err("not a program");
    assert!(matches!(unknown, Unknown::NotExecutable { .. }), "{unknown}");
    let (_dir, slurm) = programs(&[("scontrol", "exit 3")]);
    let unknown = facts(&slurm, "1").expect_err("a failure");
    assert_eq!(unknown.to_string(), "scontrol failed: \"exit status: 3\"");
    let (_dir, slurm) = programs(&[("scontrol", "printf '\\033[31m\\n' >&2; kill -9 $$")]);
    let told = facts(&slurm, "1").expect_err("a failure").to_string();
    assert!(!told.contains('\u{1b}'), "{told}");
    let (_dir, slurm) = programs(&[("scontrol", "echo hello")]);
    let unknown = facts(&slurm, "1").expect_err("no job");
    assert!(matches!(unknown, Unknown::Odd { .. }), "{unknown}");
}

#[test]
fn running_jobs_are_asked_for_once() {
    let script = "echo \"$*\" > call; printf '%s|%s|%-64s|\\n' 19 4_1 arr 3 2+1 'a b'";
    let (dir, slurm) = programs(&[("squeue", script)]);
    let jobs = block(slurm.running_here(1001, "node1")).expect("jobs");
    let told: Vec<_> = jobs
        .iter()
        .map(|job| (job.raw, job.id.to_string(), job.name.as_str()))
        .collect();
    assert_eq!(told, [(19, "4_1".into(), "arr"), (3, "2+1".into(), "a b")]);
    assert_eq!(
        fs::read_to_string(dir.path().join("call")).expect("the call"),
        "--noheader --states=running --user=1001 --nodelist=node1 --format=%A|%i|%64j|\n"
    );
    for node in ["", "-x", "a,b", "a[1-2]", "a b", "a\n"] {
        assert!(
            matches!(block(slurm.running_here(0, node)), Err(Unknown::Odd { .. })),
            "{node}"
        );
    }
    let (_dir, slurm) = programs(&[("squeue", "echo 'squeue: error: Invalid node name x' >&2; exit 1")]);
    assert!(matches!(
        block(slurm.running_here(0, "x")),
        Err(Unknown::Failed { .. })
    ));
}

#[test]
fn the_limit_of_a_partition_is_asked_for() {
    let script = format!("echo \"$*\" > call; cat '{}'", stored("partition_short.txt"));
    let (dir, slurm) = programs(&[("scontrol", &script)]);
    let limit = block(slurm.partition_limit("short")).expect("a limit");
    assert_eq!(limit.to_string(), "00:10:00");
    assert_eq!(
        fs::read_to_string(dir.path().join("call")).expect("the call"),
        "-o show partition short\n"
    );
    assert!(matches!(
        block(slurm.partition_limit("main")),
        Err(Unknown::Odd { .. })
    ));
    assert!(matches!(
        block(slurm.partition_limit("a,b")),
        Err(Unknown::Odd { .. })
    ));
    let (_dir, slurm) = programs(&[("scontrol", "echo 'Partition nope not found' >&2; exit 1")]);
    assert!(matches!(
        block(slurm.partition_limit("nope")),
        Err(Unknown::Failed { .. })
    ));
}

#[test]
fn an_id_is_never_an_option() {
    let (dir, slurm) = programs(&[("scontrol", "for a; do echo \"$a\" >> call; done; exit 1")]);
    for id in ["7", "7_[1-2]", "7+1", "sFNDM35NQ39R00"] {
        let _ = block(slurm.facts(&id.parse::<JobId>().expect(id)));
    }
    let call = fs::read_to_string(dir.path().join("call")).expect("the call");
    let dashed: Vec<_> = call.lines().filter(|word| word.starts_with('-')).collect();
    assert!(
        dashed.iter().all(|word| ["--json", "-d"].contains(word)),
        "{call}"
    );
}
