//! Kills for want of memory.

use std::ffi::OsStr;

use serde_json::Value;
use support::command::told;
use support::measure::{MIB, program};
use support::need_bpf;

use super::recorded;

const LIMIT: u64 = 64 * MIB;

/// Runs a script with the limit, in which `"$0"` is the workload, and gives the summary and the exit code.
fn limited(script: &str) -> (Value, Option<i32>, String) {
    let workload = program("workload");
    let mut command = ["sh", "-c", script].map(OsStr::new).to_vec();
    command.push(workload.as_os_str());
    let (output, mut lines) = recorded(&["--limit-mem", "64M"], &command);
    (
        lines.pop().expect("a summary"),
        output.status.code(),
        told(&output),
    )
}

fn kills(summary: &Value) -> &[Value] {
    summary["oom_kills"].as_array().expect("a list")
}

fn is_right(kill: &Value, summary: &Value) {
    assert_eq!(kill["victim"]["comm"], "workload");
    assert_eq!(kill["trigger"]["comm"], "workload");
    let needed = kill["needed_bytes"].as_u64().expect("needed memory");
    assert!((LIMIT - MIB..=LIMIT).contains(&needed), "{needed}");
    let peak = kill["needed_peak_bytes"].as_u64().expect("a peak");
    assert!(needed <= peak && peak <= LIMIT, "{peak}");
    assert_eq!(kill["limit_bytes"], LIMIT);
    assert_eq!(kill["limit_cgroup"], summary["target"]["cgroup"]);
}

#[test]
fn a_kill_ends_the_command_and_is_explained() {
    if !need_bpf() {
        return;
    }
    let (summary, code, told) = limited("exec \"$0\" anon --size 200M");
    assert_eq!(code, Some(128 + 9), "{told}");
    assert_eq!(summary["exit"]["signal"], 9);
    assert_eq!(summary["memory"]["limit_bytes"], LIMIT);
    assert_eq!(kills(&summary).len(), 1);
    is_right(&kills(&summary)[0], &summary);
    assert!(told.contains("workload") && told.contains("64.0 MiB"), "{told}");
}

#[test]
fn a_command_that_outlives_its_killed_child_goes_on() {
    if !need_bpf() {
        return;
    }
    let (summary, code, told) = limited("\"$0\" anon --size 200M; [ $? = 137 ] && sleep 0.1 && exit 5");
    assert_eq!(code, Some(5), "{told}");
    assert_eq!(kills(&summary).len(), 1);
    is_right(&kills(&summary)[0], &summary);
}

#[test]
fn each_of_several_kills_is_told() {
    if !need_bpf() {
        return;
    }
    let (summary, code, told) = limited("for i in 1 2 3; do \"$0\" anon --size 100M; done; exit 0");
    assert_eq!(code, Some(0), "{told}");
    let kills = kills(&summary);
    assert_eq!(kills.len(), 3, "{told}");
    for kill in kills {
        is_right(kill, &summary);
    }
    let moments: Vec<_> = kills.iter().map(|kill| kill["at_seconds"].as_f64()).collect();
    assert!(moments.is_sorted() && moments[0] > Some(0.0), "{moments:?}");
    let victims: Vec<_> = kills.iter().map(|kill| &kill["victim"]["pid"]).collect();
    assert!(
        victims[0] != victims[1] && victims[1] != victims[2],
        "{victims:?}"
    );
}

#[test]
fn a_command_within_its_limit_is_left_alone() {
    if !need_bpf() {
        return;
    }
    let (summary, code, told) = limited("exec \"$0\" anon --size 40M");
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(kills(&summary), [] as [Value; 0]);
    assert_eq!(summary["memory"]["limit_bytes"], LIMIT);
}
