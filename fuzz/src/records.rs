//! Records and snapshots, as they are read from a file that anyone could have written.

use std::fs;

use swbpf::out::{json, text};
use swbpf::record::{Filter, RecordName, Records, View, list, listed};
use swbpf::snapshot::Snapshot;
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

/// One line of a record, or of an answer of another node.
pub fn snapshot(data: &[u8]) {
    if let Ok(snapshot) = serde_json::from_slice(data) {
        check_snapshot(&snapshot);
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
