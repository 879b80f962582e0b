//! The record: a line a second, the last one the summary.

use std::ffi::OsStr;
use std::fs;

use serde_json::Value;
use support::command::{answer, failure, output, sw_bpf, told};
use support::measure::program;
use support::need_bpf;
use tempfile::TempDir;

use super::{recorded, recording};

#[test]
fn every_line_is_whole_and_the_last_is_the_summary() {
    if !need_bpf() {
        return;
    }
    let (output, lines) = recorded(&[], &["sleep", "2.3"].map(OsStr::new));
    assert!(output.status.success());
    assert!((2..=3).contains(&lines.len()), "{}", lines.len());
    let moments: Vec<_> = lines.iter().map(|line| line["timestamp"].as_str()).collect();
    assert!(moments.is_sorted(), "{moments:?}");
    let summary = lines.last().expect("a line");
    assert_eq!(summary["source"], "kernel");
    assert_eq!(summary["coverage"]["from_start"], true);
    assert_eq!(summary["exit"]["code"], 0);
    assert_eq!(summary["target"]["kind"], "command");
    assert_eq!(summary["target"]["command"], serde_json::json!(["sleep", "2.3"]));
    let elapsed = summary["elapsed_seconds"].as_f64().expect("from its begin");
    assert!((2.3..3.5).contains(&elapsed), "{elapsed}");
}

#[test]
fn what_grows_with_time_never_shrinks() {
    if !need_bpf() {
        return;
    }
    let workload = program("workload");
    let spin = ["spin", "--ms", "2500"].map(OsStr::new);
    let (_, lines) = recorded(&[], &[&[workload.as_os_str()][..], &spin].concat());
    for pointer in [
        "/cpu/busy_seconds",
        "/cpu/usage_ns",
        "/cpu/concurrency/seconds/1",
        "/memory/needed_peak_bytes",
        "/memory/sampled_1s/samples",
        "/processes/started",
        "/coverage/seconds",
    ] {
        let values: Vec<_> = lines
            .iter()
            .filter_map(|line| line.pointer(pointer)?.as_f64())
            .collect();
        assert!(values.len() > 1 && values.is_sorted(), "{pointer}: {values:?}");
    }
}

/// The keys of an object and all below it; those of lists and of maps by number are left out.
fn keys(value: &Value) -> Vec<String> {
    let members = value.as_object().into_iter().flatten();
    let mut all = Vec::new();
    for (name, value) in members.filter(|(name, _)| *name != "unknown" && name.parse::<u32>().is_err()) {
        all.push(name.clone());
        all.extend(keys(value).iter().map(|below| format!("{name}.{below}")));
    }
    all
}

#[test]
fn a_summary_has_the_keys_of_an_answer() {
    if !need_bpf() {
        return;
    }
    let once = answer(&output(&mut sw_bpf(&["--once", "--json", "--window", "100ms"])));
    let (_, lines) = recorded(&[], &[OsStr::new("true")]);
    // Without what only a command has, and without who raised the peak: here it may rise within the window or not.
    let common = |value: &Value| {
        keys(value)
            .into_iter()
            .filter(|key| !key.starts_with("exit") && !key.starts_with("memory.peak.raised_by."))
            .collect::<Vec<_>>()
    };
    assert_eq!(common(&lines[0]), common(&once));
}

#[test]
fn the_processes_of_a_short_command_are_looked_at() {
    if !need_bpf() {
        return;
    }
    for options in [&[][..], &["--force-source", "sampled"]] {
        let (_, lines) = recorded(options, &["sleep", "0.5"].map(OsStr::new));
        let summary = lines.last().expect("a summary");
        let seen = summary["memory"]["rss_sum_peak_bytes"].as_u64();
        assert!(seen > Some(0), "{}", summary["unknown"]);
    }
}

#[test]
fn a_record_that_cannot_be_begun_keeps_the_command_from_starting() {
    if !need_bpf() {
        return;
    }
    let dir = TempDir::new().expect("a directory");
    let trace = dir.path().join("trace");
    for path in [dir.path().join("none/record"), dir.path().to_owned()] {
        let output = output(&mut recording(
            &path,
            &[],
            &[OsStr::new("touch"), trace.as_os_str()],
        ));
        let (code, line) = failure(&output);
        assert_eq!(code, Some(73), "{line}");
        assert!(!trace.exists());
    }
}

#[test]
fn a_record_that_cannot_be_gone_on_with_leaves_the_command_alone() {
    if !need_bpf() {
        return;
    }
    let output = output(&mut recording(
        "/dev/full".as_ref(),
        &[],
        &["sh", "-c", "exit 6"].map(OsStr::new),
    ));
    let told = told(&output);
    assert_eq!(output.status.code(), Some(6), "{told}");
    assert!(
        told.contains("exit 6 after") && told.contains("cannot write \"/dev/full\""),
        "{told}"
    );
}

#[test]
fn an_older_record_is_replaced() {
    if !need_bpf() {
        return;
    }
    let dir = TempDir::new().expect("a directory");
    let path = dir.path().join("record");
    fs::write(&path, "x".repeat(100_000)).expect("a file");
    assert!(
        output(&mut recording(&path, &[], &[OsStr::new("true")]))
            .status
            .success()
    );
    assert_eq!(support::command::record(&path).len(), 1);
}
