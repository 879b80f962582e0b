//! The files of the agent: where they cannot be written, and who may write to them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use support::command::{failure, output, sw_bpf};
use support::measure::{MIB, cgroup_below, own_cgroup, wait_until};
use support::need_bpf;
use swbpf::job::cgroup::Hierarchies;
use swbpf::snapshot::{JobState, Kind, Listing, Snapshot};

use super::node::{Job, Node, check_peak};

/// A disk that is full is told once, and the record is whole when there is room again.
#[test]
fn a_full_disk_is_told_and_got_over() {
    if !need_bpf() {
        return;
    }
    let mut node = Node::new();
    let jobs = node.dir("jobs");
    fs::create_dir(&jobs).expect("a directory");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=256k,mode=711", "none"])
        .arg(&jobs)
        .status();
    assert!(mounted.expect("mount").success());
    node.start();
    let job = node.job("full");
    node.wait_for_line("cgroup-full");
    let ballast = jobs.join("ballast");
    fs::write(&ballast, vec![1_u8; 1 << 20]).expect_err("a full disk");
    job.run(&["anon", "--size", "40M", "--hold-ms", "5"]);
    wait_until("a note", || node.told().contains("No space left"));
    fs::remove_file(&ballast).expect("room");
    job.remove();
    let summary = node.summary("cgroup-full");
    check_peak(&summary, 40 * MIB);
    assert!(summary.coverage.from_start);
    assert_eq!(node.told().matches("No space left").count(), 1, "{}", node.told());
    drop(node);
    let _ = Command::new("umount").arg("-l").arg(&jobs).status();
}

/// Nobody but the agent has a say in what is in a record.
#[test]
fn a_directory_that_others_can_write_to_is_refused() {
    if !need_bpf() {
        return;
    }
    let node = Node::new();
    let jobs = node.dir("jobs");
    fs::create_dir(&jobs).expect("a directory");
    fs::set_permissions(&jobs, fs::Permissions::from_mode(0o777)).expect("changed");
    let (code, line) = failure(&output(&mut node.command()));
    assert_eq!(code, Some(1));
    assert!(line.contains("chmod 711"), "{line}");
}

/// A record that is there of a run before keeps its lines under a name of its own.
#[test]
fn a_name_that_comes_again_has_a_record_of_each() {
    if !need_bpf() {
        return;
    }
    let mut node = Node::new();
    node.start();
    for size in ["10M", "30M"] {
        let job = node.job("again");
        job.run(&["anon", "--size", size, "--hold-ms", "5"]);
        job.remove();
        wait_until("the summary", || {
            let last = node.lines("cgroup-again").pop();
            last.is_some_and(|last| last.kind == Kind::Summary)
        });
    }
    check_peak(&node.summary("cgroup-again"), 30 * MIB);
    check_peak(&node.summary("cgroup-again.1"), 10 * MIB);
}

/// What is too old goes at the start, and nothing else.
#[test]
fn old_records_go() {
    if !need_bpf() {
        return;
    }
    let mut node = Node::new();
    let jobs = node.dir("jobs");
    fs::create_dir(&jobs).expect("a directory");
    fs::set_permissions(&jobs, fs::Permissions::from_mode(0o711)).expect("changed");
    let now = SystemTime::now();
    for (name, days) in [("7.jsonl", 31), ("8.jsonl", 29), ("README", 900)] {
        let file = fs::File::create(jobs.join(name)).expect("made");
        file.set_modified(now - Duration::from_hours(24 * days))
            .expect("set back");
    }
    node.start();
    let job = node.job("now");
    job.run(&["anon", "--size", "10M", "--hold-ms", "5"]);
    wait_until("a note", || node.told().contains("1 old records are removed"));
    job.remove();
    check_peak(&node.summary("cgroup-now"), 10 * MIB);
    let there = |name: &str| jobs.join(name).exists();
    assert!(!there("7.jsonl") && there("8.jsonl") && there("README"));
}

/// The commands that read records understand what the agent writes.
#[test]
fn what_was_recorded_is_listed_and_shown() {
    if !need_bpf() {
        return;
    }
    let mut node = Node::new();
    node.start();
    for name in ["one", "two"] {
        let job = node.job(name);
        job.run(&["anon", "--size", "20M", "--hold-ms", "5"]);
        job.remove();
        node.summary(&format!("cgroup-{name}"));
    }
    let records = node.dir("jobs");
    let ask = |arguments: &[&str]| {
        let output = output(sw_bpf(arguments).arg("--records").arg(&records));
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let listing: Listing = serde_json::from_str(&ask(&["list", "--json"])).expect("a list");
    let listed: Vec<_> = listing
        .jobs
        .iter()
        .map(|job| (job.record.as_str(), job.state))
        .collect();
    assert_eq!(
        listed,
        [
            ("cgroup-one.jsonl", JobState::Ended),
            ("cgroup-two.jsonl", JobState::Ended)
        ]
    );
    let peak = listing.jobs[0].needed_peak_bytes;
    let summary: Snapshot =
        serde_json::from_str(&ask(&["show", "cgroup-one", "--json"])).expect("a snapshot");
    check_peak(&summary, 20 * MIB);
    assert_eq!(peak, summary.memory.needed_peak_bytes);
    assert!(ask(&["show", "cgroup-one"]).contains("Peak memory"));
}

/// Children of one name in two watched cgroups do not get into each other's record.
#[test]
fn cgroups_of_one_name_have_records_of_their_own() {
    if !need_bpf() {
        return;
    }
    let mut node = Node::new();
    let other = own_cgroup();
    let other = other.cgroup().path();
    node.start_as(node.command().arg("--watch").arg(other));
    let hierarchies = Hierarchies::detect().expect("a hierarchy");
    let first = node.job("same.1");
    node.wait_for_line("cgroup-same_1");
    let path = cgroup_below(other, "same.1");
    let cgroup = hierarchies.cgroup_at(&path).expect("a cgroup");
    let second = Job { cgroup };
    node.wait_for_line("cgroup-same_1-2");
    first.run(&["anon", "--size", "20M", "--hold-ms", "5"]);
    node.kill();
    second.run(&["anon", "--size", "40M", "--hold-ms", "5"]);
    node.start_as(node.command().arg("--watch").arg(other));
    first.remove();
    second.remove();
    check_peak(&node.summary("cgroup-same_1"), 20 * MIB);
    check_peak(&node.summary("cgroup-same_1-2"), 40 * MIB);
}

/// What is in the directory of the pins and is none is neither removed nor used, and nor is one of another file system.
#[test]
fn a_directory_of_pins_that_is_not_its_own_is_refused() {
    if !need_bpf() {
        return;
    }
    let node = Node::new();
    let plain = node.dir("plain");
    let (precious, pin) = (plain.join("precious/file"), node.dir("bpf/cilium/a"));
    fs::create_dir_all(precious.parent().expect("a directory")).expect("a directory");
    fs::write(&precious, "kept").expect("written");
    fs::create_dir_all(&pin).expect("a directory");
    for (dir, why) in [
        (&plain, "on no BPF file system"),
        (&node.dir("bpf"), "is not the agent's"),
    ] {
        let mut agent = sw_bpf(&["agent"]);
        agent.arg("--socket").arg(node.dir("run/agent.sock"));
        agent.arg("--records").arg(node.dir("jobs"));
        let (code, line) = failure(&output(agent.arg("--pin-dir").arg(dir)));
        assert_eq!(code, Some(1));
        assert!(line.contains(why), "{line}");
    }
    assert_eq!(fs::read_to_string(&precious).expect("there"), "kept");
    assert!(pin.exists());
}

/// A second agent, on another socket, takes nothing from the first.
#[test]
fn a_second_agent_on_the_same_directories_is_refused() {
    if !need_bpf() {
        return;
    }
    let mut node = Node::new();
    node.start();
    let job = node.job("kept");
    node.wait_for_line("cgroup-kept");
    let other = "other/agent.sock";
    for (socket, records, pins) in [
        ("run/second.sock", "other/jobs", "bpf/other"),
        (other, "jobs", "bpf/other"),
        (other, "other/jobs", "bpf/pins"),
    ] {
        let mut second = sw_bpf(&["agent"]);
        second.arg("--socket").arg(node.dir(socket));
        second.arg("--records").arg(node.dir(records));
        second.arg("--pin-dir").arg(node.dir(pins));
        let (code, line) = failure(&output(&mut second));
        assert_eq!(code, Some(1));
        assert!(line.contains("another agent"), "{line}");
    }
    job.run(&["anon", "--size", "40M", "--hold-ms", "5"]);
    node.kill();
    node.start();
    job.remove();
    let summary = node.summary("cgroup-kept");
    assert!(summary.coverage.from_start);
    check_peak(&summary, 40 * MIB);
}

/// A job that has ended while there was no agent ended when it did, not when the next agent came; what only files told is not
/// taken for what they would have told.
#[test]
fn a_job_that_ended_without_an_agent_has_its_own_length() {
    if !need_bpf() {
        return;
    }
    let mut node = Node::new();
    node.start();
    let begin = Instant::now();
    let job = node.job("short");
    node.wait_for_line("cgroup-short");
    node.wait_for_state(&job);
    node.kill();
    job.run(&["anon", "--size", "40M", "--hold-ms", "5"]);
    job.remove();
    let lived = begin.elapsed().as_secs_f64();
    std::thread::sleep(Duration::from_secs(4));
    node.start();
    let taken_over = node.taken_over();
    let is_told = taken_over.is_some_and(|(jobs, ended)| jobs >= ended && ended >= 1);
    assert!(is_told, "{}", node.told());
    let summary = node.summary("cgroup-short");
    check_peak(&summary, 40 * MIB);
    let seconds = summary.coverage.seconds;
    assert!(seconds < lived + 0.05, "{seconds} s of {lived} s");
    let at_once = summary.cpu.concurrency.expect("counted").seconds;
    let sum: f64 = at_once.values().sum();
    assert!((sum - seconds).abs() < 0.05, "{sum} of {seconds}");
    let levels = summary.memory.levels.expect("counted");
    let sum: f64 = levels.iter().map(|level| level.seconds).sum();
    assert!((sum - seconds).abs() < 0.05, "{sum} of {seconds}");
    assert_eq!(summary.memory.peak_bytes, None);
}

/// Where what counts is taken away, the agent ends and says so, and does not go on with numbers that stand still; what somebody puts
/// beside it is no matter. A record that is removed is begun anew.
#[test]
fn an_agent_without_its_pins_ends() {
    if !need_bpf() {
        return;
    }
    let mut node = Node::new();
    node.start();
    let job = node.job("removed");
    node.wait_for_line("cgroup-removed");
    fs::remove_file(node.dir("jobs/cgroup-removed.jsonl")).expect("a record");
    fs::create_dir(node.dir("bpf/pins/others")).expect("a directory");
    std::thread::sleep(Duration::from_millis(2500));
    node.wait_for_line("cgroup-removed");
    let beside = node.job("beside");
    beside.run(&["anon", "--size", "20M", "--hold-ms", "5"]);
    beside.remove();
    check_peak(&node.summary("cgroup-beside"), 20 * MIB);
    assert!(!node.told().contains("pins"), "{}", node.told());
    fs::remove_dir_all(node.dir("bpf/pins")).expect("pins");
    wait_until("a word", || node.told().contains("the pins in"));
    node.kill();
    node.start();
    job.run(&["anon", "--size", "40M", "--hold-ms", "5"]);
    job.remove();
    let summary = node.summary("cgroup-removed");
    assert!(!summary.coverage.from_start);
    check_peak(&summary, 40 * MIB);
}

/// Records that are moved away while jobs run begin anew where they were, with all that came before, and that is told once.
#[test]
fn records_that_are_moved_away_begin_anew() {
    if !need_bpf() {
        return;
    }
    let mut node = Node::new();
    node.start();
    let job = node.job("moved");
    job.run(&["anon", "--size", "40M", "--hold-ms", "5"]);
    node.wait_for_line("cgroup-moved");
    let (jobs, moved) = (node.dir("jobs"), node.dir("moved"));
    fs::rename(&jobs, &moved).expect("moved");
    node.wait_for_line("cgroup-moved");
    let mode = fs::metadata(&jobs).expect("made anew").permissions().mode();
    assert_eq!(mode & 0o7777, 0o711);
    let told = node.told();
    assert_eq!(
        told.matches("or has another directory over it").count(),
        1,
        "{told}"
    );
    // Where another directory is put in its place, that is the one. The agent may make it anew between the two steps.
    while fs::rename(&moved, &jobs).is_err() {
        let _ = fs::remove_dir_all(&jobs);
    }
    wait_until("the record of before, set aside", || {
        jobs.join("cgroup-moved.1.jsonl").exists()
    });
    job.remove();
    let summary = node.summary("cgroup-moved");
    check_peak(&summary, 40 * MIB);
    assert!(summary.coverage.from_start);
    let before = node.lines("cgroup-moved.1");
    assert!(before.iter().all(|line| line.kind == Kind::Progress) && !before.is_empty());
    // Nobody else may take what it holds by then.
    let mut second = sw_bpf(&["agent"]);
    second.arg("--socket").arg(node.dir("other/agent.sock"));
    second.arg("--records").arg(&jobs);
    second.arg("--pin-dir").arg(node.dir("bpf/other"));
    let (_, line) = failure(&output(&mut second));
    assert!(line.contains("another agent writes records"), "{line}");
}

/// Where there can be no directory of records, what is to be written waits until there can.
#[test]
fn summaries_wait_for_a_directory_that_is_gone() {
    if !need_bpf() {
        return;
    }
    let mut node = Node::new();
    node.start();
    let (job, other) = (node.job("gone"), node.job("later"));
    node.wait_for_line("cgroup-gone");
    node.wait_for_line("cgroup-later");
    let jobs = node.dir("jobs");
    // The agent may make it anew between the two steps.
    while fs::write(&jobs, "in its place").is_err() {
        let _ = fs::remove_dir_all(&jobs);
    }
    wait_until("a note", || {
        node.told().contains("the directory of the records is gone")
    });
    job.run(&["anon", "--size", "40M", "--hold-ms", "5"]);
    job.remove();
    // Some looks later. Nor is one that others can write to of use.
    std::thread::sleep(Duration::from_secs(2));
    let wide = node.dir("wide");
    fs::create_dir(&wide).expect("a directory");
    fs::set_permissions(&wide, fs::Permissions::from_mode(0o777)).expect("changed");
    renameat_with(CWD, &wide, CWD, &jobs, RenameFlags::EXCHANGE).expect("exchanged");
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(fs::read_dir(&jobs).expect("listed").count(), 0);
    fs::set_permissions(&jobs, fs::Permissions::from_mode(0o711)).expect("changed");
    let summary = node.summary("cgroup-gone");
    check_peak(&summary, 40 * MIB);
    assert!(summary.coverage.from_start);
    other.run(&["anon", "--size", "20M", "--hold-ms", "5"]);
    other.remove();
    check_peak(&node.summary("cgroup-later"), 20 * MIB);
    let told = node.told();
    assert_eq!(
        told.matches("the directory of the records is gone").count(),
        1,
        "{told}"
    );
}
