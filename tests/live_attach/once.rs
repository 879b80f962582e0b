//! `--once`: one window, one answer.

use std::time::{Duration, Instant};

use serde_json::Value;
use support::command::{answer, output, sw_bpf};
use support::measure::{MIB, Process, own_cgroup};
use support::need_bpf;

use super::held;

fn number(value: &Value, pointer: &str) -> f64 {
    let number = value.pointer(pointer).and_then(Value::as_f64);
    number.unwrap_or_else(|| panic!("{pointer} of {value}"))
}

#[test]
fn every_way_to_name_a_target_is_answered() {
    if !need_bpf() {
        return;
    }
    let (own, mut process) = held();
    let path = own.cgroup().path().to_str().expect("text");
    let pid = process.id().to_string();
    for (target, kind) in [
        (&["--cgroup", path][..], "cgroup"),
        (&["--pid", &pid], "pid"),
        (&[], "pid"),
    ] {
        let mut command = sw_bpf(&["--once", "--json", "--window", "300ms"]);
        let answer = answer(&output(command.args(target)));
        assert_eq!(
            (&answer["kind"], &answer["source"]),
            (&"once".into(), &"kernel".into())
        );
        assert_eq!(answer["target"]["kind"], kind);
        if !target.is_empty() {
            assert_eq!(answer["target"]["cgroup"], path);
            assert_eq!(answer["target"]["cgroup_id"], own.cgroup().id());
        }
    }
    assert!(process.finish().0.success());
}

#[test]
fn the_window_is_as_long_as_was_asked() {
    if !need_bpf() {
        return;
    }
    let (own, mut process) = held();
    for (window, seconds) in [("50ms", 0.05), ("200ms", 0.2), ("1", 1.0), ("1.5s", 1.5)] {
        let mut command = sw_bpf(&["--once", "--json", "--window", window, "--cgroup"]);
        let answer = answer(&output(command.arg(own.cgroup().path())));
        let told = number(&answer, "/window_seconds");
        assert!((seconds..seconds + 0.3).contains(&told), "{told} for {window}");
        assert!((number(&answer, "/coverage/seconds") - told).abs() < 0.001);
    }
    assert!(process.finish().0.success());
}

#[test]
fn memory_that_was_there_before_is_told() {
    if !need_bpf() {
        return;
    }
    let (own, mut process) = held();
    let mut command = sw_bpf(&["--once", "--json", "--cgroup"]);
    let answer = answer(&output(command.arg(own.cgroup().path())));
    assert_eq!(answer["memory"]["peak"]["top_processes"][0]["pid"], process.id());
    for pointer in ["/memory/needed_bytes", "/memory/needed_peak_bytes"] {
        let bytes = number(&answer, pointer) as u64;
        assert!((20 * MIB..22 * MIB).contains(&bytes), "{pointer}: {bytes}");
    }
    assert!(process.finish().0.success());
}

#[test]
fn sampling_sees_the_same_and_says_what_it_does_not_see() {
    if !need_bpf() {
        return;
    }
    let own = own_cgroup();
    let mut process = Process::workload_in(&own, &["spin-until-stdin"]);
    process.ready();
    // By its process, which tells its cgroup in each hierarchy: a path tells one of them.
    let pid = process.id().to_string();
    let arguments = ["--force-source", "sampled", "--once", "--json", "--pid", &pid];
    let answer = answer(&output(&mut sw_bpf(&arguments)));
    assert_eq!(answer["source"], "sampled");
    assert_eq!(answer["memory"]["source"], "sampled");
    assert_eq!(answer["probes"]["rung"], "none");
    assert_eq!(answer["probes"]["reason"], "sampling was asked for");
    assert!(number(&answer, "/memory/needed_peak_samples") >= 2.0);
    // Where another path in the hierarchy of CPU time leaves it open whether the process is alone there, this is unknown.
    let cores = answer["cpu"]["busy_cores"].as_f64();
    assert!(
        cores.is_none_or(|cores| (0.05..1.05).contains(&cores)),
        "{cores:?}"
    );
    // The kernel's high-water holds what was not seen.
    let bound = number(&answer, "/memory/error_bound_bytes");
    let peak = number(&answer, "/memory/needed_peak_bytes");
    assert!(peak + bound >= number(&answer, "/memory/peak_bytes"), "{answer}");
    for unseen in ["memory.levels", "cpu.concurrency", "processes.started"] {
        assert!(answer["unknown"][unseen].is_string(), "{unseen}");
    }
    assert!(process.finish().0.success());
}

#[test]
fn a_target_that_ends_early_is_answered_all_the_same() {
    if !need_bpf() {
        return;
    }
    let own = own_cgroup();
    let _process = Process::workload_in(&own, &["sleep", "--ms", "300"]);
    let mut command = sw_bpf(&["--once", "--json", "--window", "1s", "--cgroup"]);
    let begin = Instant::now();
    let answer = answer(&output(command.arg(own.cgroup().path())));
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert_eq!(answer["processes"]["alive"], 0);
    assert!(answer["unknown"]["memory.rss_sum_bytes"].is_string());
}

#[test]
fn without_json_the_answer_is_text() {
    if !need_bpf() {
        return;
    }
    let output = output(&mut sw_bpf(&["--once", "--window", "100ms"]));
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(
        text.starts_with("sw-bpf: process ") && text.contains("Peak memory"),
        "{text}"
    );
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
}
