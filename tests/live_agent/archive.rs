//! Users who ask for records without end.

use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::command::{output, told};
use support::need_bpf;
use support::pace::fewer;
use swbpf::record::{Dir, Run, Writer};
use swbpf::snapshot::{JobState, Listing, Snapshot};

use super::abuse::{OTHER_USER, check_service, quiet};
use super::node::Node;
use super::socket::{ROOT, SOME_USER, as_user, connect, open_node};

/// What the agent promises: answers about records take this part of one CPU at most, after so many seconds of it at once.
const SHARE: f64 = 0.2;
const BURST_SECONDS: f64 = 2.0;
/// Looks, the jobs beside, and what sending answers takes, of a build that is not optimised.
const BESIDE: f64 = 0.1;

/// The record of a job of this raw id, as that of `like` is, which a user may read.
fn copy(dir: &Dir, like: &Snapshot, id: u32, uid: u32) {
    let mut writer = Writer::begin(dir, &id.to_string(), Run::Latest).expect("a record");
    writer.append(like).expect("written");
    writer.let_read(uid).expect("an access control list");
}

/// Asks for the same again and again; how often there was an answer.
fn ask_without_end(node: &Node, request: &[u8], is_over: &AtomicBool, answers: &AtomicUsize) {
    while !is_over.load(Ordering::Relaxed) {
        let mut stream = connect(node);
        let _ = stream.set_read_timeout(None);
        stream.write_all(request).expect("taken");
        let mut line = Vec::new();
        stream.read_to_end(&mut line).expect("an answer");
        let answer: Value = serde_json::from_slice(&line).expect("JSON");
        assert!(answer["refused"]["reason"] != "failed", "{answer}");
        answers.fetch_add(1, Ordering::Relaxed);
    }
}

/// Ends those who ask, whatever becomes of the test.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The records that a user is told of by the agent.
fn listed(node: &Node, uid: u32) -> usize {
    let output = output(&mut node.client(uid, &["list", "--json", "--state", "ended"]));
    assert!(output.status.success(), "{output:?}");
    // By the agent, which may be long in coming where others ask too, and not without it.
    let said = told(&output);
    assert!(
        said.lines().all(|line| line.contains("it is waited for")),
        "{said}"
    );
    let listing: Listing = serde_json::from_slice(&output.stdout).expect("a list");
    assert!(listing.jobs.iter().all(|job| job.state == JobState::Ended));
    listing.jobs.len()
}

/// Four users ask without end for thousands of records, by ways that need all of them. Others have their answers, the jobs are told
/// and recorded, and the agent takes no more of the CPU than it promises.
#[test]
fn who_asks_for_records_without_end_takes_his_share_alone() {
    if !need_bpf() {
        return;
    }
    let mut node = open_node();
    node.start();
    let (job, _held) = quiet(&node);
    let like = node.job("like");
    like.run(&["anon", "--size", "20M", "--hold-ms", "5"]);
    like.remove();
    let like = node.summary("cgroup-like");
    let dir = Dir::open(&node.dir("jobs")).expect("there");
    let number = fewer("records", 4000) as u32;
    for id in 1..=number {
        let uid = if id % 100 == 0 { OTHER_USER } else { SOME_USER };
        copy(&dir, &like, id, uid);
    }
    let requests: [&[u8]; 2] = [
        b"{\"version\":1,\"ask\":\"list\"}\n",
        b"{\"version\":1,\"ask\":\"show\",\"job\":\"1_2\"}\n",
    ];
    let (is_over, answers) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (node, is_over, answers) = (&node, &is_over, &answers);
    let begin = (Instant::now(), node.cpu_seconds());
    scope(|scope| {
        let _end = End(is_over);
        for (asker, request) in (0..4).zip(requests.into_iter().cycle()) {
            let ask = move || ask_without_end(node, request, is_over, answers);
            scope.spawn(move || as_user(SOME_USER + asker, ask));
        }
        for number in 0..2 {
            check_service(node, &job, &format!("beside-asking-{number}"));
        }
        assert_eq!(listed(node, OTHER_USER), (number / 100) as usize);
        assert!(listed(node, ROOT) > number as usize);
        sleep(Duration::from_secs(10));
        let (seconds, used) = (begin.0.elapsed().as_secs_f64(), node.cpu_seconds() - begin.1);
        eprintln!("{used:.1} s of CPU time in {seconds:.1} s, {answers:?} answers");
        assert!(
            used <= BURST_SECONDS + (SHARE + BESIDE) * seconds,
            "{used} s of CPU time in {seconds} s"
        );
    });
    assert!(answers.load(Ordering::Relaxed) > 4, "{answers:?}");
}
