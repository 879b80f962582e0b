//! `sw-bpf show` and `sw-bpf list` on records of every kind.

mod hostile;
mod rights;
#[allow(dead_code, unused_imports, reason = "others use the rest of it")]
#[path = "../snapshots/mod.rs"]
mod snapshots;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;
use swbpf::out::{json, text};
use swbpf::record::{Dir, Run, Writer};
use swbpf::snapshot::{Kind, Snapshot};
use tempfile::TempDir;

/// A directory of records.
struct Scene {
    temp: TempDir,
    dir: Dir,
}

impl Scene {
    fn new() -> Self {
        let temp = tempfile::tempdir().expect("a directory");
        let dir = Dir::open(&temp.path().join("jobs")).expect("made");
        Self { temp, dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path_of(name)
    }

    /// Writes a record of these lines.
    fn record(&self, job: &str, lines: &[Snapshot]) -> Writer {
        let mut writer = Writer::begin(&self.dir, job, Run::Latest).expect("a record");
        for line in lines {
            writer.append(line).expect("written");
        }
        writer
    }

    fn file(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(name), text).expect("a file");
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sw-bpf"));
        command
            .args(arguments)
            .arg("--records")
            .arg(self.temp.path().join("jobs"))
            // Without the programs of Slurm.
            .env("PATH", self.temp.path());
        command
    }

    fn ask(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("sw-bpf starts")
    }

    /// What it answers, where it succeeds.
    fn answer(&self, arguments: &[&str]) -> String {
        let output = self.ask(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).expect("text")
    }

    /// The one line of a failure, and its exit code.
    fn failure(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.ask(arguments);
        let told = stderr(&output);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(told.starts_with("sw-bpf: "), "{told}");
        (output.status.code(), told)
    }

    /// The ids that are listed.
    fn listed(&self, arguments: &[&str]) -> Vec<String> {
        let arguments = [&["list", "--json"], arguments].concat();
        let value: Value = serde_json::from_str(&self.answer(&arguments)).expect("JSON");
        let jobs = value["jobs"].as_array().expect("jobs").iter();
        jobs.map(|job| job["record"].as_str().expect("a name").to_owned())
            .collect()
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A job of Slurm under way, of this raw id, whose last moment is this.
fn progress(id: u32, to: &str) -> Snapshot {
    let mut snapshot = snapshots::job();
    snapshot.kind = Kind::Progress;
    snapshot.coverage.to = to.into();
    snapshot.job_id = Some(id.to_string());
    if let Some(job) = &mut snapshot.job {
        job.job_id = id;
        (job.array_job_id, job.array_task_id) = (None, None);
    }
    snapshot
}

/// The same at its end.
fn ended(id: u32, to: &str) -> Snapshot {
    Snapshot {
        kind: Kind::Summary,
        ..progress(id, to)
    }
}

const BEFORE: &str = "2026-11-28T12:00:00Z";
const AFTER: &str = "2026-11-30T12:00:00Z";

#[test]
fn the_last_line_of_a_record_is_shown() {
    let scene = Scene::new();
    let job = snapshots::job();
    scene.record("77", &[progress(77, AFTER), job.clone()]);
    assert_eq!(scene.answer(&["show", "77"]), text::summary(&job));
    let line = json::line(&job).expect("JSON");
    assert_eq!(scene.answer(&["show", "77", "--json"]), line);
    let comment = text::comment(&job) + "\n";
    assert_eq!(scene.answer(&["show", "77", "--admin-comment"]), comment);
}

#[test]
fn a_step_is_shown_alone() {
    let scene = Scene::new();
    let job = snapshots::job();
    scene.record("77", std::slice::from_ref(&job));
    let steps = job.steps.as_ref().expect("steps");
    assert_eq!(scene.answer(&["show", "77.batch"]), text::step(&job, &steps[0]));
    let told: Value = serde_json::from_str(&scene.answer(&["show", "70_7.0", "--json"])).expect("JSON");
    assert_eq!(told, serde_json::to_value(&steps[1]).expect("JSON"));
    let (code, told) = scene.failure(&["show", "77.5"]);
    assert_eq!(code, Some(67), "{told}");
    assert!(told.contains("no such step"), "{told}");
}

#[test]
fn a_record_without_a_summary_says_as_of_when_it_is() {
    let scene = Scene::new();
    scene.record("8", &[progress(8, AFTER)]);
    let output = scene.ask(&["show", "8"]);
    assert!(output.status.success());
    let told = stderr(&output);
    assert!(
        told.starts_with("sw-bpf: note: there is no summary yet"),
        "{told}"
    );
    assert_eq!(told.lines().count(), 1, "{told}");
}

#[test]
fn a_job_is_found_by_each_of_its_ids() {
    let scene = Scene::new();
    scene.record("77", &[snapshots::job()]);
    let mut component = ended(81, AFTER);
    if let Some(job) = &mut component.job {
        (job.het_job_id, job.het_job_offset) = (Some(80), Some(1));
        job.sluid = Some("s0000000000002".into());
    }
    scene.record("81", std::slice::from_ref(&component));
    scene.record("cgroup-web", &[snapshots::sampled()]);
    let job = text::summary(&snapshots::job());
    // The array has one task here.
    for id in ["77", "70_7", "70", "70_[5-9]"] {
        assert_eq!(scene.answer(&["show", id]), job, "{id}");
    }
    for id in ["81", "80+1", "80", "s0000000000002", "SOOOOOOOOOOOO2"] {
        assert_eq!(scene.answer(&["show", id]), text::summary(&component), "{id}");
    }
    let other = text::summary(&snapshots::sampled());
    assert_eq!(scene.answer(&["show", "cgroup-web"]), other);
    for id in ["78", "70_8", "80+0", "cgroup-none"] {
        let (code, told) = scene.failure(&["show", id]);
        assert_eq!(code, Some(67), "{told}");
        assert!(
            told.contains("no record of") && told.contains("sw-bpf list"),
            "{told}"
        );
    }
}

#[test]
fn several_tasks_of_an_array_are_named() {
    let scene = Scene::new();
    for (raw, task) in [(77, 7), (78, 8)] {
        let mut snapshot = snapshots::job();
        snapshot.job_id = Some(format!("70_{task}"));
        if let Some(job) = &mut snapshot.job {
            (job.job_id, job.array_task_id) = (raw, Some(task));
        }
        scene.record(&raw.to_string(), &[snapshot]);
    }
    let (code, told) = scene.failure(&["show", "70"]);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.ends_with(":\n  70_7\n  70_8\n"), "{told}");
}

#[test]
fn an_earlier_run_is_shown_by_its_number() {
    let scene = Scene::new();
    let runs = [ended(7, BEFORE), ended(7, AFTER)];
    for run in &runs {
        scene.record("7", std::slice::from_ref(run));
    }
    assert_eq!(
        scene.answer(&["show", "7", "--json"]),
        json::line(&runs[1]).expect("JSON")
    );
    assert_eq!(
        scene.answer(&["show", "7", "--run", "1", "--json"]),
        json::line(&runs[0]).expect("JSON")
    );
    let (code, told) = scene.failure(&["show", "7", "--run", "2"]);
    assert_eq!(code, Some(67), "{told}");
    for typed in ["-1", "last", "1.5", "99999999999"] {
        let output = scene.ask(&["show", "7", "--run", typed]);
        assert_eq!(output.status.code(), Some(2));
        let told = stderr(&output);
        assert!(told.contains("a run is 0 for the latest one"), "{told}");
    }
}

/// What `show` takes: whatever dots it has, and however long it is.
#[test]
fn a_name_is_listed_whole() {
    let scene = Scene::new();
    let mut watched = ended(7, BEFORE);
    (watched.job, watched.job_id) = (None, None);
    let names = [
        "cgroup-w.slice",
        "cgroup-w.service",
        "cgroup-job-of-alice-2026.scope",
    ];
    for name in names {
        scene.record(name, std::slice::from_ref(&watched));
    }
    let text = scene.answer(&["list"]);
    for name in names {
        assert!(text.lines().any(|line| line.trim() == name), "{name}: {text}");
        assert!(scene.answer(&["show", name]).contains("Peak memory"), "{name}");
    }
    scene.record("8", &[ended(8, BEFORE)]);
    let row = scene.answer(&["list"]);
    assert!(row.lines().any(|line| line.starts_with("8  ")), "{row}");
}

#[test]
fn what_was_asked_for_is_listed() {
    let scene = Scene::new();
    scene.record("7", &[ended(7, BEFORE)]);
    scene.record("8", &[ended(8, AFTER)]);
    let mut other = progress(9, AFTER);
    if let Some(job) = &mut other.job {
        job.user = Some("bob".into());
    }
    other.coverage.from = "2026-11-30T11:00:00Z".into();
    scene.record("9", &[other]);
    let all = ["7.jsonl", "8.jsonl", "9.jsonl"];
    assert_eq!(scene.listed(&[]), all);
    assert_eq!(scene.listed(&["--since", "2026-11-28"]), all);
    assert_eq!(scene.listed(&["--since", "2026-11-29"]), all[1..]);
    assert_eq!(scene.listed(&["--user", "bob"]), all[2..]);
    assert_eq!(scene.listed(&["--user", "4000000"]), [""; 0]);
    let (code, told) = scene.failure(&["list", "--user", "nobody-of-this-name"]);
    assert_eq!(code, Some(2));
    assert!(
        told.starts_with("sw-bpf: no such user: \"nobody-of-this-name\""),
        "{told}"
    );
    // Whom this host does not know, and a record does.
    assert_eq!(
        scene.listed(&["--user", "bob", "--since", "2026-11-30"]),
        all[2..]
    );
    assert_eq!(scene.listed(&["--state", "ended"]), all[..2]);
    assert_eq!(scene.listed(&["--state", "unknown", "--user", "bob"]), all[2..]);
    assert_eq!(scene.listed(&["--state", "running"]), [""; 0]);
    let text = scene.answer(&["list"]);
    assert_eq!(text.lines().next().map(str::len), Some(80), "{text}");
    assert!(text.contains("its record has no summary"), "{text}");
}

/// What has not been written to since then is not opened, whatever it holds.
#[test]
fn old_records_are_left_out_unread() {
    let scene = Scene::new();
    scene.record("7", &[ended(7, AFTER)]);
    let file = fs::File::options()
        .write(true)
        .open(scene.path("7.jsonl"))
        .expect("there");
    let day = std::time::Duration::from_hours(24);
    file.set_modified(std::time::SystemTime::now() - day)
        .expect("set back");
    assert_eq!(scene.listed(&["--since", "1h"]), [""; 0]);
    assert_eq!(scene.listed(&["--since", "2026-11-29"]), ["7.jsonl"]);
}

#[test]
fn a_directory_that_is_not_there_is_told() {
    let output = Command::new(env!("CARGO_BIN_EXE_sw-bpf"))
        .args(["list", "--records", "/nowhere/at/all"])
        .output()
        .expect("sw-bpf starts");
    assert_eq!(output.status.code(), Some(67));
    assert!(stderr(&output).contains("sw-bpf agent"), "{}", stderr(&output));
}
