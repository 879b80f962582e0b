//! Records and snapshots, as they are read from a file that anyone could have written.

use std::collections::BTreeSet;
use std::fs;

use swbpf::out::openmetrics::{self, AgentSample, Format, JobSample, Whose};
use swbpf::out::{json, text};
use swbpf::record::{Filter, RecordName, Records, View, list, listed};
use swbpf::snapshot::{Gathered, Listing, ListingKind, Loss, NodeAnswer, Snapshot};
use tempfile::TempDir;

use crate::check_shown;

/// A snapshot is shown in printable text, whatever is in it, and read again where it is written.
fn check_snapshot(snapshot: &Snapshot) {
    check_shown(&text::summary(snapshot));
    check_shown(&text::progress(snapshot));
    for step in snapshot.steps.iter().flatten() {
        check_shown(&text::step(snapshot, step));
    }
    let line = json::line(snapshot).expect("JSON");
    assert_eq!(line.find('\n'), Some(line.len() - 1));
    let again: Snapshot = serde_json::from_str(&line).expect("what was written");
    assert_eq!(
        again.steps.map(|steps| steps.len()),
        snapshot.steps.as_ref().map(Vec::len)
    );
}

/// One line of a record.
pub fn snapshot(data: &[u8]) {
    if let Ok(snapshot) = serde_json::from_slice(data) {
        check_snapshot(&snapshot);
    }
}

/// The answers of the nodes of a job, each on a line.
pub fn gathered(data: &[u8]) {
    let answers = data.split(|byte| *byte == b'\n').take(3).map(<[u8]>::to_vec);
    let nodes: Vec<_> = ["node1", "node2", "node3"]
        .iter()
        .zip(answers)
        .map(|(node, answer)| NodeAnswer::read(node, 77, Ok(answer)))
        .collect();
    let gathered = Gathered::of("77".to_owned(), 1.0, "2026-11-30T00:00:00Z".to_owned(), nodes);
    check_shown(&text::gathered(&gathered));
    json::line(&gathered).expect("JSON");
}

/// A snapshot in both formats of metrics: each line is a comment or a number, and no series is there twice.
pub fn metrics(data: &[u8]) {
    let Ok(snapshot) = serde_json::from_slice::<Snapshot>(data) else {
        return;
    };
    let whose = Whose::Cgroup(snapshot.target.cgroup.clone());
    let job = JobSample::new(&whose, snapshot).with_window_peak(Some(1));
    for format in [Format::OpenMetrics, Format::Prometheus] {
        let told = openmetrics::text(std::slice::from_ref(&job), &agent(), format);
        let body = told.strip_suffix("# EOF\n").expect("an end");
        let mut series = BTreeSet::new();
        for line in body.split_terminator('\n').filter(|line| !line.starts_with("# ")) {
            let (name, value) = line.rsplit_once(' ').expect("a value");
            assert!(name.starts_with("swbpf_") && series.insert(name), "{line}");
            assert!(value.parse().is_ok_and(f64::is_finite), "{line}");
        }
    }
}

fn agent() -> AgentSample {
    AgentSample {
        version: String::new(),
        kernel: String::new(),
        rung: String::new(),
        started_seconds: 0.0,
        jobs: 1,
        jobs_left_out: 0,
        records_failing: 0,
        window_seconds: 1.0,
        slots: Vec::new(),
        loss: Loss::default(),
        without_target: 0,
        timed_run_seconds: 0.0,
        timed_runs: 0,
        timed_seconds: 0.0,
        cpu_seconds: 0.0,
        resident_bytes: None,
    }
}

/// A record.
pub fn record(data: &[u8]) {
    let dir = TempDir::new().expect("a directory");
    fs::write(dir.path().join("7.jsonl"), data).expect("a file");
    let records = Records::open(dir.path()).expect("a directory");
    let record = records
        .record(RecordName::latest("7"))
        .expect("a file that can be read");
    match record.expect("a file that is there").last() {
        Ok(last) => check_snapshot(&last.snapshot),
        Err(untold) => assert!(!untold.to_string().is_empty()),
    }
    let entries = list(&records, &Filter::default(), View::default()).expect("a list");
    assert_eq!(entries.len(), 1);
    check_shown(&text::listed(&Listing {
        schema_version: 1,
        tool_version: String::new(),
        kind: ListingKind::List,
        timestamp: String::new(),
        hostname: String::new(),
        jobs: entries,
    }));
}

/// Names of records, each on a line, and the list of who may read one. A name is that of one record alone.
pub fn record_names(data: &[u8]) {
    assert!(listed(data).len() * 8 <= data.len());
    for name in String::from_utf8_lossy(data).lines() {
        if let Some(record) = RecordName::of_file(name) {
            assert_eq!(record.file(), name);
        }
    }
}
