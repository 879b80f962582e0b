//! An agent that is killed, at any moment, and started again.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use support::measure::MIB;
use support::need_bpf;
use support::pace::{fewer, scaled};
use swbpf::snapshot::Snapshot;

use super::node::{Node, check_busy, check_peak};
use super::socket::{ROOT, once};

/// Kills, one for each job; fewer where all takes longer.
const ROUNDS: u64 = 200;
/// An agent lives so long at most: it takes about half of that to start in a build for tests.
const LIFE_MS: u64 = 400;

/// What each job was, by the kernel's own account.
struct Truth {
    name: String,
    size: u64,
    used_ns: Option<u64>,
}

/// Killed before, while and after jobs are born, run and end: each has the record that it would have without.
#[test]
fn nothing_is_lost_by_two_hundred_kills() {
    if !need_bpf() {
        return;
    }
    let mut node = Node::new();
    node.start();
    let mut jobs = Vec::new();
    let begin = Instant::now();
    let rounds = fewer("kills", ROUNDS);
    for round in 0..rounds {
        let name = format!("job{round}");
        let job = node.job(&name);
        let size = 4 + round % 29;
        // Another one in each round, in all phases of a life.
        let life = scaled(Duration::from_millis((round * 137) % LIFE_MS));
        let argument = format!("{size}M");
        let running = job.start(&["anon", "--size", &argument, "--hold-ms", "40"]);
        sleep(life);
        node.kill();
        assert!({ running }.finish().0.success());
        job.run(&["anon", "--size", "2M", "--hold-ms", "1"]);
        node.spawn();
        jobs.push(Truth {
            name,
            size: size * MIB,
            used_ns: job.used_ns(),
        });
        job.remove();
    }
    let seconds = begin.elapsed().as_secs_f64();
    sleep(scaled(Duration::from_secs(2)));
    for truth in &jobs {
        let summary = node.summary(&format!("cgroup-{}", truth.name));
        assert!(summary.coverage.from_start, "{}", truth.name);
        check_peak(&summary, truth.size);
        check_busy(&summary, truth.used_ns);
        assert_eq!(summary.processes.ended, Some(2), "{}", truth.name);
    }
    println!("{rounds} kills in {seconds:.1} s");
}

/// What was told before is told after: the begin, the time, the kills for want of memory.
#[test]
fn a_job_goes_on_where_it_was() {
    if !need_bpf() {
        return;
    }
    let mut node = Node::new();
    node.start();
    let job = node.job("on");
    job.run(&["anon", "--size", "30M", "--hold-ms", "20"]);
    node.wait_for_line("cgroup-on");
    sleep(scaled(Duration::from_millis(1500)));
    let before = node.lines("cgroup-on").pop().expect("a line");
    node.kill();
    node.start();
    let taken_over = node.taken_over();
    assert!(taken_over.is_some_and(|(jobs, _)| jobs >= 1), "{}", node.told());
    job.remove();
    let after = node.summary("cgroup-on");
    assert_eq!(after.coverage.from, before.coverage.from);
    assert!(after.coverage.from_start);
    assert_eq!(after.memory.needed_peak_bytes, before.memory.needed_peak_bytes);
    let (before, after) = (before.memory.peak, after.memory.peak);
    let (before, after) = (before.expect("a peak"), after.expect("a peak"));
    let apart = (after.at_seconds - before.at_seconds).abs();
    assert!(apart <= before.at_error_seconds, "{apart} s");
}

/// Right after a time without an agent, what is told is as of then: nothing that was read before it. What nobody has read is a gap of
/// the timeline.
#[test]
fn what_is_told_after_a_gap_was_read_after_it() {
    if !need_bpf() {
        return;
    }
    let mut node = Node::new();
    node.start();
    let job = node.job("gap");
    let mut first = job.start(&["hold", "--size", "20M"]);
    first.ready();
    node.wait_for_line("cgroup-gap");
    sleep(scaled(Duration::from_millis(1500)));
    node.kill();
    let mut second = job.start(&["hold", "--size", "60M"]);
    second.ready();
    first.finish();
    sleep(scaled(Duration::from_secs(4)));
    // It takes the place of what changed before.
    job.run(&["anon", "--size", "20M", "--hold-ms", "5"]);
    let begun = jiff::Timestamp::now();
    node.start();
    let told = once(&node, ROOT, &job, &[]);
    assert_eq!(told["probes"]["held_by"], "agent");
    let told: Snapshot = serde_json::from_value(told).expect("a snapshot");
    let at: jiff::Timestamp = told.timestamp.parse().expect("a moment");
    assert!(at > begun, "{at} is before {begun}");
    assert_eq!(told.processes.alive, Some(1));
    let about = 60 * MIB..70 * MIB;
    let rss = told.memory.rss_sum_bytes.expect("processes");
    assert!(about.contains(&rss), "{rss}");
    let needed = told.memory.needed_bytes.expect("counted");
    assert!(about.contains(&needed), "{needed}");
    let gaps = told.memory.timeline.expect("counted").gaps;
    let longest = { gaps.iter() }
        .map(|gap| gap.to_seconds - gap.from_seconds)
        .fold(0.0, f64::max);
    // The kernel keeps the last two seconds.
    assert!((1.5..told.coverage.seconds - 2.0).contains(&longest), "{gaps:?}");
    second.finish();
    job.remove();
}

/// Programs of another layout are not taken over: counting begins anew, and the operator and the record say so.
#[test]
fn programs_of_another_layout_are_replaced() {
    if !need_bpf() {
        return;
    }
    let mut node = Node::new();
    node.start();
    let job = node.job("old");
    let mut held = job.start(&["hold", "--size", "20M"]);
    held.ready();
    node.wait_for_line("cgroup-old");
    assert_eq!(node.end(), Some(0));
    let loaded = node.dir("run/loaded.json");
    let text = fs::read_to_string(&loaded).expect("a description");
    fs::write(&loaded, text.replacen("\"abi\":", "\"abi\":9", 1)).expect("written");
    node.start();
    let why = "counting begins anew, since the programs before were of another version (layout";
    assert!(node.told().contains(why), "{}", node.told());
    assert_eq!(node.taken_over(), None);
    held.finish();
    job.remove();
    let summary = node.summary("cgroup-old");
    assert!(!summary.coverage.from_start);
    let why = summary.coverage.reason;
    assert!(why.starts_with("counting began anew"), "{why}");
    let pins = fs::read_dir(node.dir("bpf/pins")).expect("pins").count();
    assert_eq!(pins, 1, "the programs before are gone");
}
