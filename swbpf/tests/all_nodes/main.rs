//! `sw-bpf --once --all-nodes` with programs in the place of Slurm's.

mod answers;
#[path = "../snapshots/mod.rs"]
mod snapshots;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use snapshots::gathered::on;
use swbpf::snapshot::Snapshot;
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

/// A directory with a `scontrol` that knows one job, and an `srun`, a shell script.
struct Scene(TempDir);

impl Scene {
    fn new(job: &str, srun: &str) -> Self {
        let scene = Self(tempfile::tempdir().expect("a directory"));
        scene.file("job", job);
        // As version 22.05, which has no JSON.
        scene.program("scontrol", "case $1 in --json) exit 1;; esac; cat job");
        scene.program("srun", srun);
        scene
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(name), text).expect("a file");
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect(name)
    }

    fn program(&self, name: &str, script: &str) {
        let dir = self.0.path().display();
        let source = format!("{name}.sh");
        self.file(
            &source,
            format!("#!/bin/sh\nPATH=/usr/bin:/bin\ncd '{dir}' || exit\n{script}\n"),
        );
        // Another process writes the program: one that is open for writing here when another test forks cannot be run.
        let copied = Command::new("install")
            .args(["-m", "755"])
            .args([self.path(&source), self.path(name)])
            .status();
        assert!(copied.expect("install").success());
    }

    fn sw_bpf(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sw-bpf"));
        command
            .args(["--once", "--all-nodes"])
            .args(arguments)
            .env("PATH", self.0.path())
            .env("SLURM_NTASKS", "9")
            .env_remove("SLURM_JOB_ID");
        command
    }

    fn ask(&self, arguments: &[&str]) -> Output {
        self.sw_bpf(arguments).output().expect("sw-bpf starts")
    }
}

/// A job on two nodes, as `scontrol` writes it.
fn job(state: &str, nodes: &str) -> String {
    let uid = rustix::process::geteuid().as_raw();
    format!(
        "JobId=77 JobName=train\n   UserId=me({uid}) GroupId=users(100) MCS_label=N/A\n   JobState={state} Reason=Priority \
         Dependency=(null)\n   Partition=main AllocNode:Sid=login:1\n   NodeList={nodes}\n   BatchHost=cn1\n   NumNodes=2 \
         NumCPUs=2 NumTasks=2 CPUs/Task=1\n"
    )
}

fn running() -> String {
    job("RUNNING", "cn[1-2]")
}

/// A line of a task, with its label.
fn labelled(task: usize, snapshot: &Snapshot) -> String {
    format!("{task}: {}\n", serde_json::to_string(snapshot).expect("JSON"))
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The one object that was printed, with the exit code.
fn gathered(output: &Output) -> (Value, Option<i32>) {
    let text = std::str::from_utf8(&output.stdout).expect("text");
    assert_eq!(text.find('\n'), Some(text.len() - 1), "{text}{}", stderr(output));
    let value: Value = serde_json::from_str(text).expect("JSON");
    (value, output.status.code())
}

#[test]
fn every_node_is_asked_and_the_sums_are_told() {
    let scene = Scene::new(
        &running(),
        "for a; do echo \"$a\" >> args; done; env > env; cat answers",
    );
    // The answers come in any order.
    let answers = labelled(1, &on("cn2", 2 * MIB, 4 * MIB)) + &labelled(0, &on("cn1", 300 * MIB, 310 * MIB));
    scene.file("answers", answers);
    let output = scene.ask(&["--json", "--window", "200ms", "--force-source", "kernel", "77"]);
    let (told, code) = gathered(&output);
    assert_eq!(code, Some(0), "{}", stderr(&output));
    assert_eq!(
        (&told["kind"], &told["job_id"], &told["window_seconds"]),
        (&"all_nodes".into(), &"77".into(), &0.2.into())
    );
    assert_eq!(told["missing"], Value::Array(vec![]));
    let nodes: Vec<_> = told["nodes"].as_array().expect("nodes").iter().collect();
    assert_eq!(
        (&nodes[0]["node"], &nodes[1]["node"]),
        (&"cn1".into(), &"cn2".into())
    );
    let own = serde_json::to_value(on("cn1", 300 * MIB, 310 * MIB)).expect("JSON");
    assert_eq!(nodes[0]["snapshot"], own);
    let totals = &told["totals"];
    assert_eq!(
        (&totals["needed_bytes"], &totals["needed_peak_sum_bytes"]),
        (&(302 * MIB).into(), &(314 * MIB).into())
    );
    assert_eq!(totals["busy_cores"].as_f64(), Some(0.8204 + 0.8204));
    let args = scene.text("args");
    let program = fs::canonicalize(env!("CARGO_BIN_EXE_sw-bpf")).expect("a path");
    let own = format!(
        "\n{}\n--once\n--json\n--window=0.2\n--force-source=kernel\n77\n",
        program.display()
    );
    assert!(args.ends_with(&own), "{args}");
    assert!(args.contains("--jobid=77\n--nodes=2\n--ntasks=2\n"), "{args}");
    assert!(
        !scene.text("env").contains("SLURM_NTASKS"),
        "the caller's own job stays with it"
    );
}

#[test]
fn a_node_that_does_not_answer_is_named_and_the_others_are_told() {
    let scene = Scene::new(
        &running(),
        "cat answers; echo '1: sw-bpf: out of\u{1b}[31m luck' >&2; exit 1",
    );
    scene.file("answers", labelled(0, &on("cn1", MIB, MIB)));
    let output = scene.ask(&["--json", "77"]);
    let (told, code) = gathered(&output);
    assert_eq!(code, Some(76));
    let failure =
        "sw-bpf: 1 of 2 nodes of job 77 did not answer: cn2: what is printed names the reason of each\n";
    assert_eq!(stderr(&output), failure);
    assert_eq!(told["missing"], Value::Array(vec!["cn2".into()]));
    assert_eq!(told["nodes"][1]["snapshot"], Value::Null);
    assert_eq!(told["nodes"][1]["reason"], "out of\u{1b}[31m luck");
    assert_eq!(told["totals"]["needed_bytes"], MIB);
    let output = scene.ask(&["77"]);
    assert_eq!(output.status.code(), Some(76));
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.contains(r"out of\u{1b}[31m luck"), "{text}");
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
}

#[test]
fn ctrl_c_ends_srun_and_keeps_what_has_come() {
    let scene = Scene::new(&running(), "echo $$ > self; cat answers; touch said; sleep 600");
    scene.file("answers", labelled(1, &on("cn2", MIB, MIB)));
    let child = scene
        .sw_bpf(&["--json", "77"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("sw-bpf starts");
    let begin = Instant::now();
    while !scene.path("said").exists() {
        assert!(begin.elapsed() < Duration::from_mins(1), "srun was not started");
        sleep(Duration::from_millis(5));
    }
    let pid = Pid::from_raw(child.id().cast_signed()).expect("an id");
    kill_process(pid, Signal::INT).expect("it runs");
    let output = child.wait_with_output().expect("an end");
    assert!(begin.elapsed() < Duration::from_secs(20));
    let (told, code) = gathered(&output);
    assert_eq!(
        (code, &told["missing"]),
        (Some(76), &Value::Array(vec!["cn1".into()]))
    );
    let srun = Path::new("/proc").join(scene.text("self").trim());
    let has_ended = || fs::read_to_string(srun.join("stat")).map_or(true, |stat| stat.contains(") Z "));
    assert!(has_ended(), "srun is left");
}

#[test]
fn what_cannot_be_asked_is_refused_as_attach_does() {
    let pending = Scene::new(&job("PENDING", "(null)"), "touch called");
    let output = pending.ask(&["77"]);
    assert_eq!(output.status.code(), Some(65), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(
        text.starts_with("Job 77 has not started.\n  why         Priority: "),
        "{text}"
    );
    let output = pending.ask(&["--json", "77"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(65), 0));
    let ended = Scene::new(&job("COMPLETED", "cn[1-2]"), "touch called");
    assert_eq!(ended.ask(&["77"]).status.code(), Some(66));
    let nowhere = Scene::new(&job("RUNNING", "(null)"), "touch called");
    let output = nowhere.ask(&["77"]);
    assert_eq!(output.status.code(), Some(67), "{}", stderr(&output));
    let down = Scene::new("", "touch called");
    down.program(
        "scontrol",
        "echo 'Unable to contact slurm controller' >&2; exit 1",
    );
    let output = down.ask(&["77"]);
    assert_eq!(output.status.code(), Some(67));
    let told = stderr(&output);
    assert!(
        told.contains("Unable to contact slurm controller") && told.contains("`sw-bpf --once 77`"),
        "{told}"
    );
    for scene in [pending, ended, nowhere, down] {
        assert!(!scene.path("called").exists());
    }
}

#[test]
fn without_srun_the_way_out_is_told() {
    let scene = Scene::new(&running(), "");
    fs::remove_file(scene.path("srun")).expect("a file");
    let output = scene.ask(&["--json", "77"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    let told = stderr(&output);
    let line = "sw-bpf: cannot ask the nodes of job 77: srun is not in PATH: on each, `sw-bpf --once 77` does without\n";
    assert_eq!(told, line);
}

#[test]
fn without_an_id_it_is_the_job_of_the_caller() {
    let scene = Scene::new(&running(), "cat answers");
    scene.file(
        "answers",
        labelled(0, &on("cn1", MIB, MIB)) + &labelled(1, &on("cn2", MIB, MIB)),
    );
    let output = scene.sw_bpf(&["--json"]).env("SLURM_JOB_ID", "77").output();
    let (told, code) = gathered(&output.expect("sw-bpf starts"));
    assert_eq!((code, &told["job_id"]), (Some(0), &"77".into()));
}

#[test]
fn a_task_of_an_array_is_asked_for_by_its_own_id() {
    let task = running().replacen("JobId=77", "JobId=77 ArrayJobId=77 ArrayTaskId=3", 1);
    let scene = Scene::new(&task, "for a; do echo \"$a\" >> args; done");
    let output = scene.ask(&["--json", "77_3"]);
    assert_eq!(output.status.code(), Some(76), "{}", stderr(&output));
    let args = scene.text("args");
    assert!(
        args.contains("--jobid=77\n") && args.ends_with("\n77_3\n"),
        "{args}"
    );
}

#[test]
fn a_component_is_asked_for_through_its_leader() {
    let component = running().replacen("JobId=77", "JobId=78 HetJobId=77 HetJobOffset=1", 1);
    let scene = Scene::new(&component, "for a; do echo \"$a\" >> args; done");
    let output = scene.ask(&["--json", "77+1"]);
    assert_eq!(output.status.code(), Some(76), "{}", stderr(&output));
    let args = scene.text("args");
    assert!(
        args.contains("--jobid=77\n") && args.contains("--het-group=1\n") && args.ends_with("\n77+1\n"),
        "{args}"
    );
}
