//! Kills within a job.

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt as _;

use serde_json::Value;
use support::measure::{MIB, on_its_way_back, program};
use swbpf::job::cgroup::Controller;

use super::tree::{Tree, batch, end, start_in, step, summary};

/// What was needed at a kill is within 1 MiB below the limit, and not more than what was charged and what was on its way back.
fn assert_near(kill: &Value, limit: u64, summary: &Value) {
    let needed = kill["needed_bytes"].as_u64().expect("a number");
    let bound = kill["error_bound_bytes"].as_u64().unwrap_or_else(|| {
        assert_ne!(summary["loss"]["kernel_memory_misses"], 0, "{kill}");
        MIB
    });
    let charged = kill["limit_charged_bytes"].as_u64().expect("a limit");
    let most = limit.max(charged) + on_its_way_back() + bound;
    assert!((limit - MIB..=most).contains(&needed), "{kill}");
}

/// Nested limits: the level that was hit is named, with what was needed there.
#[test]
fn a_kill_names_whose_limit_was_hit() {
    let Some(tree) = Tree::new(Controller::Memory) else {
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("record");
    let script = batch(&tree);
    let attached = tree.attach(&path);
    let mut expected = Vec::new();
    for (below, limited, of, mib) in [
        ("step_0/task_0", "step_0/task_0", "task", 16),
        ("step_1/task_0", "step_1", "step", 24),
        ("step_2/task_0", "", "job", 48),
    ] {
        tree.make(below);
        tree.limit(limited, mib * MIB);
        let status = tree.run(below, &["anon", "--size", "200M", "--hold-ms", "1"]);
        assert_eq!(status.signal(), Some(9), "{below}");
        expected.push((of, mib * MIB, tree.path(limited)));
    }
    // A child is killed, and its parent goes on.
    let parent = start_in(
        &tree.make("step_0/task_1"),
        OsStr::new("sh"),
        &[
            "-c",
            "\"$0\" anon --size 200M; sleep 0.5",
            program("workload").to_str().expect("text"),
        ],
    );
    assert!(parent.wait_with_output().expect("an end").status.success());
    end(script);
    let summary = summary(attached, &path);
    let kills = summary["oom_kills"].as_array().expect("kills");
    assert_eq!(kills.len(), 4, "{kills:#?}");
    for (kill, (of, limit, dir)) in kills.iter().zip(expected) {
        assert_eq!(kill["limit_of"], of, "{kill}");
        assert_eq!(kill["limit_bytes"], limit);
        assert_eq!(
            kill["limit_cgroup"],
            dir.to_str().expect("text").trim_end_matches('/')
        );
        assert_near(kill, limit, &summary);
        assert_eq!(
            (&kill["task_id"], &kill["victim_is_main"]),
            (&0.into(), &true.into())
        );
        assert_eq!(kill["victim"]["comm"], "workload");
    }
    let child = &kills[3];
    assert_eq!(
        (&child["victim_is_main"], &child["limit_of"]),
        (&false.into(), &"job".into())
    );
    assert_eq!((&child["step_id"], &child["task_id"]), (&"0".into(), &1.into()));
    assert!(
        child["went_on_seconds"].as_f64().expect("a span") > 0.4,
        "{child}"
    );
    assert_eq!(step(&summary, "0")["oom_kills"], 2);
}

/// A hundred kills in a row: a hundred records, each within 1 MiB of the limit.
#[test]
fn no_kill_of_a_hundred_is_missed() {
    let Some(tree) = Tree::new(Controller::Memory) else {
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("record");
    let script = batch(&tree);
    let attached = tree.attach(&path);
    let limit = 32 * MIB;
    let task = tree.make("step_0/task_0");
    tree.limit("step_0", limit);
    for _ in 0..100 {
        let mut killed = start_in(&task, program("workload").as_os_str(), &["anon", "--size", "64M"]);
        assert_eq!(killed.wait().expect("an end").signal(), Some(9));
    }
    end(script);
    let summary = summary(attached, &path);
    let kills = summary["oom_kills"].as_array().expect("kills");
    assert_eq!(kills.len(), 100);
    for kill in kills {
        assert_eq!(
            (&kill["limit_of"], &kill["limit_bytes"]),
            (&"step".into(), &limit.into())
        );
        assert_near(kill, limit, &summary);
    }
    assert_eq!(step(&summary, "0")["oom_kills"], 100);
}
