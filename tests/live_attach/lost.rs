//! What becomes of a measurement whose notices are lost, whose events are, and whose begin was not seen.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;
use support::command::{answer, sw_bpf};
use support::measure::{MIB, program, wait_until};
use swbpf::job::cgroup::Controller;

use super::send;
use super::tree::{Tree, assert_holds, batch, end, start_in, step, summary};

/// Moves of a process that fill the ring buffer while nobody reads it: each is told, and that one cgroup has emptied and another has
/// not.
const STORM: usize = 4000;

fn storm(tree: &Tree) {
    let [here, there] = ["step_9/task_0", "step_9/task_1"].map(|path| tree.make(path));
    let mut mover = start_in(
        &here,
        program("workload").as_os_str(),
        &["sleep", "--ms", "600000"],
    );
    let pid = mover.id().to_string();
    for _ in 0..STORM {
        for dir in [&there, &here] {
            fs::write(dir.join("cgroup.procs"), &pid).expect("a live process");
        }
    }
    mover.kill().expect("a process of its own");
    mover.wait().expect("an end");
}

/// Stopped while notices pile up beyond the buffer: the peak of a step, the number of kills and the end are known all the same.
#[test]
fn no_number_and_no_end_depends_on_a_notice() {
    let Some(tree) = Tree::new(Controller::Memory) else {
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("record");
    let script = batch(&tree);
    let attached = tree.attach(&path);
    send(&attached, Signal::STOP);
    storm(&tree);
    tree.make("step_0/task_0");
    tree.limit("step_0/task_0", 32 * MIB);
    let status = tree.run("step_0/task_0", &["anon", "--size", "64M"]);
    assert_eq!(status.signal(), Some(9));
    assert!(tree.run("step_1/task_0", &["anon", "--size", "100M"]).success());
    end(script);
    send(&attached, Signal::CONT);
    let summary = summary(attached, &path);
    assert!(
        summary["loss"]["notices_dropped"].as_u64() > Some(0),
        "{}",
        summary["loss"]
    );
    let told = summary["oom_kills"].as_array().expect("kills").len() as u64;
    assert_eq!(summary["oom_kills_untold"].as_u64().expect("a number") + told, 1);
    assert_eq!(step(&summary, "0")["oom_kills"], 1);
    assert_holds(step(&summary, "1"), 100);
}

/// A job that was emptied for a moment goes on, also where the notice of its next process is lost.
#[test]
fn a_job_that_goes_on_is_not_taken_for_ended() {
    let Some(tree) = Tree::new(Controller::Memory) else {
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("record");
    let script = batch(&tree);
    let mut attached = tree.attach(&path);
    send(&attached, Signal::STOP);
    end(script);
    storm(&tree);
    let script = batch(&tree);
    let procs = tree.path("step_batch/task_0").join("cgroup.procs");
    wait_until("a process is in it", || {
        fs::read_to_string(&procs).is_ok_and(|procs| !procs.is_empty())
    });
    send(&attached, Signal::CONT);
    sleep(Duration::from_millis(1500));
    assert!(attached.try_wait().expect("a child").is_none(), "it runs still");
    end(script);
    summary(attached, &path);
}

/// Kernel memory given back by interrupts while it attaches: what a step holds that was there before is known in the end.
#[test]
fn a_step_that_was_there_before_has_its_peak_whatever_is_lost() {
    let Some(tree) = Tree::new(Controller::Memory) else {
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("record");
    let holder = start_in(
        &tree.make("step_0/task_0"),
        program("workload").as_os_str(),
        &["anon", "--size", "100M", "--hold-ms", "30000"],
    );
    let churn = "for i in $(seq 100000); do /bin/true | cat; done";
    let churn = start_in(&tree.make("step_1/task_0"), "sh".as_ref(), &["-c", churn]);
    wait_until("the memory is there", || tree.usage("step_0") > 100 * MIB);
    let attached = tree.attach(&path);
    sleep(Duration::from_millis(2500));
    end(churn);
    end(holder);
    let summary = summary(attached, &path);
    let row = step(&summary, "0");
    let peak = row["needed_peak_bytes"]
        .as_u64()
        .unwrap_or_else(|| panic!("no peak: {row}"));
    let bound = row["error_bound_bytes"].as_u64().unwrap_or(4 * MIB);
    assert!(peak + bound >= 100 * MIB && peak <= 102 * MIB + bound, "{row}");
}

/// A step that is removed and made again under the same name is another one.
#[test]
fn two_steps_of_one_name_are_told_apart() {
    let Some(tree) = Tree::new(Controller::Memory) else {
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("record");
    let script = batch(&tree);
    let attached = tree.attach(&path);
    for size in ["30M", "60M"] {
        assert!(tree.run("step_0/task_0", &["anon", "--size", size]).success());
        tree.remove("step_0/task_0");
        tree.remove("step_0");
    }
    end(script);
    let summary = summary(attached, &path);
    let steps = summary["steps"].as_array().expect("steps");
    let both: Vec<_> = steps.iter().filter(|step| step["step_id"] == "0").collect();
    assert_eq!(both.len(), 2, "{steps:#?}");
    for (step, mib) in both.into_iter().zip([30, 60]) {
        assert_holds(step, mib);
        let tasks = step["tasks"].as_array().expect("tasks");
        assert_eq!(tasks.len(), 1, "{step}");
        assert_holds(&tasks[0], mib);
    }
}

/// Ended early, `--once` answers for the time until then, and leaves nothing of the cgroup that it moved to.
#[test]
fn an_interrupted_answer_is_given_and_nothing_is_left() {
    let Some(tree) = Tree::new(Controller::Memory) else {
        return;
    };
    let job = tree.job.to_str().expect("text");
    let mut child = start_in(
        &tree.make("step_0/task_0"),
        program("sw-bpf").as_os_str(),
        &["--once", "--json", "--window=60s", "--cgroup", job],
    );
    let moved = tree.mount.join(format!("sw-bpf-attach-{}", child.id()));
    wait_until("it has moved out", || moved.exists());
    sleep(Duration::from_millis(700));
    send(&child, Signal::TERM);
    let mut text = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().expect("a pipe"), &mut text).expect("text");
    assert!(child.wait().expect("an end").success());
    let told = support::command::snapshot(text.trim_end());
    assert!(told["window_seconds"].as_f64() < Some(30.0), "{text}");
    assert!(!moved.exists());
}

/// The cgroup that it runs in itself, by no name and by its own process id: it leaves that one, and measures it.
#[test]
fn its_own_cgroup_is_the_one_that_it_was_started_in() {
    let Some(tree) = Tree::new(Controller::Memory) else {
        return;
    };
    let own = tree.make("step_0/task_0");
    let script = "\"$0\" --once --json --window 200ms; exec \"$0\" --once --json --window 200ms --pid $$";
    let mut child = start_in(
        &own,
        "sh".as_ref(),
        &["-c", script, program("sw-bpf").to_str().expect("text")],
    );
    let mut text = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().expect("a pipe"), &mut text).expect("text");
    assert!(child.wait().expect("an end").success());
    let answers: Vec<_> = text.lines().map(support::command::snapshot).collect();
    assert_eq!(answers.len(), 2, "{text}");
    for told in answers {
        assert_eq!(told["target"]["cgroup"], own.to_str().expect("text"));
        assert_eq!(told["target"]["own_processes"], "left");
        assert!(told["memory"]["needed_bytes"].as_u64() < Some(2 * MIB), "{told}");
    }
}

/// The mark of one that has left is no proof of it.
#[test]
fn the_mark_of_having_left_is_not_believed() {
    let Some(tree) = Tree::new(Controller::Memory) else {
        return;
    };
    let script = batch(&tree);
    let mut command = sw_bpf(&["--once", "--json", "--window=200ms", "--cgroup"]);
    command
        .arg(&tree.job)
        .env("SWBPF_HAS_LEFT", "/")
        .stdout(Stdio::piped());
    assert_eq!(
        answer(&command.output().expect("sw-bpf"))["target"]["own_processes"],
        "elsewhere"
    );
    let job = tree.job.to_str().expect("text");
    let child = start_in(
        &tree.make("step_0/task_0"),
        "env".as_ref(),
        &[
            "SWBPF_HAS_LEFT=1",
            program("sw-bpf").to_str().expect("text"),
            "--once",
            "--json",
            "--window=200ms",
            "--cgroup",
            job,
        ],
    );
    let told = answer(&child.wait_with_output().expect("an end"));
    assert_eq!(told["target"]["own_processes"], "counted");
    end(script);
}
