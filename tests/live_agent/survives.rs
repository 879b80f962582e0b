//! What goes wrong on a node, one thing at a time: survived, told, and nothing that was told before is lost.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use support::command::{output, told};
use support::measure::{MIB, wait_until};
use support::{need_bpf, need_fake_time};

use super::node::{Job, Node, check_peak};

/// A few looks of the agent.
const LOOKS: Duration = Duration::from_millis(2500);

/// A disk of a quarter of a megabyte in the place of the directory of records.
struct Disk(PathBuf);

impl Disk {
    fn mount(node: &Node) -> Self {
        let path = node.dir("jobs");
        fs::create_dir(&path).expect("a directory");
        mount(&["-t", "tmpfs", "-o", "size=256k,mode=711", "none"], &path);
        Self(path)
    }

    fn fill(&self) {
        fs::write(self.0.join("ballast"), vec![1_u8; 1 << 20]).expect_err("a full disk");
    }

    fn empty(&self) {
        fs::remove_file(self.0.join("ballast")).expect("room");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn mount(arguments: &[&str], at: &Path) {
    let status = Command::new("mount").args(arguments).arg(at).status();
    assert!(status.expect("mount starts").success(), "{arguments:?}");
}

/// A job with a spike of this size, from its birth to its end.
fn spike(node: &Node, name: &str, size: &str) {
    let job: Job = node.job(name);
    job.run(&["anon", "--size", size, "--hold-ms", "5"]);
    job.remove();
}

/// Jobs that end while nothing can be written have their summaries when there is room again, whoever the agent is then; one whose
/// record could not even be begun has it too.
#[test]
fn jobs_that_end_on_a_full_disk_have_their_summaries_later() {
    if !need_bpf() {
        return;
    }
    let mut node = Node::new();
    let disk = Disk::mount(&node);
    node.start();
    let early = node.job("early");
    node.wait_for_line("cgroup-early");
    disk.fill();
    early.run(&["anon", "--size", "40M", "--hold-ms", "5"]);
    early.remove();
    spike(&node, "late", "30M");
    sleep(LOOKS);
    node.kill();
    node.start();
    spike(&node, "later", "20M");
    sleep(LOOKS);
    disk.empty();
    for (name, size) in [("early", 40), ("late", 30), ("later", 20)] {
        let summary = node.summary(&format!("cgroup-{name}"));
        check_peak(&summary, size * MIB);
        assert!(summary.coverage.from_start, "{name}");
    }
    for name in ["early", "late", "later"] {
        let lines = node.lines(&format!("cgroup-{name}"));
        let summaries = lines
            .iter()
            .filter(|line| line.kind == swbpf::snapshot::Kind::Summary);
        assert_eq!(summaries.count(), 1, "{name}");
    }
    drop(node);
}

/// A disk that can only be read is told, and got over: a record that was begun before goes on in the same file.
#[test]
fn a_read_only_disk_is_told_and_got_over() {
    if !need_bpf() {
        return;
    }
    let mut node = Node::new();
    let disk = Disk::mount(&node);
    node.start();
    let [ended, running] = ["ended", "running"].map(|name| node.job(name));
    node.wait_for_line("cgroup-ended");
    node.wait_for_line("cgroup-running");
    // Nothing that has a file open for writing may be there.
    node.kill();
    mount(&["-o", "remount,ro"], &disk.0);
    node.start();
    ended.run(&["anon", "--size", "40M", "--hold-ms", "5"]);
    ended.remove();
    spike(&node, "meanwhile", "30M");
    wait_until("a note", || node.told().contains("Read-only file system"));
    sleep(LOOKS);
    mount(&["-o", "remount,rw"], &disk.0);
    running.run(&["anon", "--size", "20M", "--hold-ms", "5"]);
    running.remove();
    for (name, size) in [("ended", 40), ("meanwhile", 30), ("running", 20)] {
        let record = format!("cgroup-{name}");
        let summary = node.summary(&record);
        check_peak(&summary, size * MIB);
        assert!(summary.coverage.from_start, "{name}");
        assert_eq!(node.lines(&format!("{record}.1")), [], "one file");
    }
    drop(node);
}

/// The watched cgroup is removed and made anew: what is made in it then is recorded, and what is there already when the agent
/// sees it.
#[test]
fn a_tree_that_is_removed_and_made_anew_is_watched_again() {
    if !need_bpf() {
        return;
    }
    let mut node = Node::new();
    node.start();
    spike(&node, "first", "20M");
    node.summary("cgroup-first");
    let root = node.root();
    wait_until("its end", || fs::remove_dir(&root).is_ok());
    sleep(LOOKS);
    fs::create_dir(&root).expect("a cgroup");
    let mut held = node.job("early").start(&["hold", "--size", "20M"]);
    held.ready();
    node.wait_for_line("cgroup-early");
    spike(&node, "second", "30M");
    let summary = node.summary("cgroup-second");
    check_peak(&summary, 30 * MIB);
    assert!(summary.coverage.from_start);
    held.finish();
}

/// A watched cgroup that is not there at the start is waited for; where none can come to be, that is refused.
#[test]
fn a_tree_that_comes_after_the_agent_is_watched() {
    if !need_bpf() {
        return;
    }
    let mut node = Node::new();
    let root = node.root();
    wait_until("its end", || fs::remove_dir(&root).is_ok());
    let mut nowhere = node.command();
    nowhere.arg("--watch").arg(node.dir("nowhere"));
    let refused = output(&mut nowhere);
    assert_eq!(refused.status.code(), Some(66), "{}", told(&refused));
    node.start();
    let waits = || node.told().matches("it is waited for").count();
    let comes = || node.told().matches("is there: what is made in it").count();
    let before = (waits(), comes());
    assert!(before.0 > 0, "{}", node.told());
    for (number, name) in (1..).zip(["one", "two"]) {
        fs::create_dir(&root).expect("a cgroup");
        wait_until("a word", || comes() == before.1 + number);
        let name_of_job = format!("{name}-spike");
        spike(&node, &name_of_job, "30M");
        let summary = node.summary(&format!("cgroup-{name_of_job}"));
        check_peak(&summary, 30 * MIB);
        assert!(summary.coverage.from_start);
        wait_until("its end", || fs::remove_dir(&root).is_ok());
        wait_until("a word", || waits() == before.0 + number);
    }
    fs::create_dir(&root).expect("a cgroup");
}

/// More jobs than there is room for: those that found room are recorded, and it is told that others did not; there is room again
/// for those that come after them.
#[test]
fn more_jobs_than_there_is_room_for_are_told() {
    if !need_bpf() {
        return;
    }
    let mut node = Node::new();
    node.start();
    let jobs: Vec<Job> = (0..1040).map(|number| node.job(&number.to_string())).collect();
    wait_until("a note", || node.told().contains("more than 1024 at one time"));
    let first = &jobs[0];
    first.run(&["anon", "--size", "20M", "--hold-ms", "5"]);
    for job in &jobs {
        job.remove();
    }
    check_peak(&node.summary("cgroup-0"), 20 * MIB);
    node.summary("cgroup-1000");
    spike(&node, "after", "30M");
    let summary = node.summary("cgroup-after");
    check_peak(&summary, 30 * MIB);
    assert!(summary.coverage.from_start);
}

/// The clock of the host is set back while a job runs: times within the job stay right.
#[test]
fn a_clock_that_is_set_back_changes_no_number() {
    if !need_bpf() {
        return;
    }
    let Some(library) = need_fake_time() else {
        return;
    };
    let mut node = Node::new();
    let clock = node.dir("clock");
    fs::write(&clock, "+0").expect("written");
    let mut command = node.command();
    command
        .env("LD_PRELOAD", library)
        .env("FAKETIME_TIMESTAMP_FILE", &clock)
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    node.start_as(&mut command);
    let job = node.job("clock");
    job.run(&["anon", "--size", "40M", "--hold-ms", "5"]);
    node.wait_for_line("cgroup-clock");
    fs::write(&clock, "-7200").expect("written");
    sleep(LOOKS);
    spike(&node, "after", "20M");
    let after = node.summary("cgroup-after");
    job.remove();
    let summary = node.summary("cgroup-clock");
    check_peak(&summary, 40 * MIB);
    check_peak(&after, 20 * MIB);
    assert!(summary.coverage.from_start);
    let seconds = summary.coverage.seconds;
    assert!((2.0..60.0).contains(&seconds), "{seconds}");
    // The clock was believed where a job began, and is set back for those that begin after it.
    let at = |moment: &str| moment.parse::<jiff::Timestamp>().expect("a time").as_second();
    let (first, second) = (at(&summary.coverage.from), at(&after.coverage.from));
    assert!((7100..7300).contains(&(first - second)), "{first} {second}");
}

/// Some pins are removed while the agent runs: they are made again, so the next agent goes on, and the program whose link that was
/// has counted all the while.
#[test]
fn pins_that_are_removed_are_made_again() {
    if !need_bpf() {
        return;
    }
    let mut node = Node::new();
    node.start();
    let job = node.job("pins");
    let mut loadings = fs::read_dir(node.dir("bpf/pins")).expect("pins");
    let dir = loadings.next().expect("a loading").expect("an entry").path();
    let names: Vec<String> = { fs::read_dir(&dir).expect("pins") }
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .filter(|name| name.starts_with("link_") || ["map_LEVELS", "prog_look"].contains(&name.as_str()))
        .collect();
    assert!(names.len() > 2, "{names:?}");
    for name in &names {
        fs::remove_file(dir.join(name)).expect("a pin");
    }
    job.run(&["anon", "--size", "40M", "--hold-ms", "5"]);
    wait_until("a word", || node.told().contains("are made again"));
    assert!(names.iter().all(|name| dir.join(name).exists()));
    node.kill();
    node.start();
    job.remove();
    let summary = node.summary("cgroup-pins");
    check_peak(&summary, 40 * MIB);
    assert!(summary.coverage.from_start);
}

/// A watched cgroup below another is refused, before anything is made.
#[test]
fn a_nested_watch_is_refused() {
    if !need_bpf() {
        return;
    }
    let node = Node::new();
    let mut nested = node.command();
    nested.arg("--watch").arg(node.root().join("below"));
    let refused = output(&mut nested);
    assert!(!refused.status.success());
    assert!(
        told(&refused).contains("lies below --watch"),
        "{}",
        told(&refused)
    );
    for made in ["run", "jobs", "bpf/pins"] {
        assert!(!node.dir(made).exists(), "{made}");
    }
}
