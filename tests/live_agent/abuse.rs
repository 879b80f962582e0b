//! What ill-meaning clients and jobs do to the agent: the others are served throughout.

use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, setrlimit};
use serde_json::Value;
use support::command::{output, record};
use support::measure::{MIB, Process, program, wait_until};
use support::need_bpf;
use support::pace::fewer;

use super::node::{Job, Node, check_peak};
use super::socket::{ROOT, SOME_USER, as_user, connect, once, open_node};

pub const OTHER_USER: u32 = 23_456;
const ONCE: &[u8] = b"{\"version\":1,\"ask\":\"once\",\"job\":\"1\"}\n";

/// The reason why a user is refused, as the first line has it: who is not let in is not listened to.
fn refusal(node: &Node, uid: u32) -> String {
    let reply: Value = as_user(uid, || {
        let mut stream = connect(node);
        // It may be closed by now.
        let _ = stream.write_all(ONCE);
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).expect("a line");
        serde_json::from_str(&line).expect("JSON")
    });
    let reason = reply["refused"]["reason"].as_str();
    reason.expect("a reason").to_owned()
}

/// Asserts that a job that runs beside is told by the agent, and that one that comes is recorded whole.
pub fn check_service(node: &Node, held: &Job, name: &str) {
    assert_eq!(once(node, ROOT, held, &[])["probes"]["held_by"], "agent");
    let job = node.job(name);
    job.run(&["anon", "--size", "40M", "--hold-ms", "5"]);
    job.remove();
    let summary = node.summary(&format!("cgroup-{name}"));
    check_peak(&summary, 40 * MIB);
    assert!(summary.coverage.from_start);
}

/// A job that does nothing, beside those that do.
pub fn quiet(node: &Node) -> (Job, Process) {
    let job = node.job("quiet");
    let mut held = job.start(&["hold", "--size", "20M"]);
    held.ready();
    node.wait_for_line("cgroup-quiet");
    (job, held)
}

/// Says how much of one CPU the agent took since `begin`.
fn say_share(node: &Node, of: &str, begin: (Instant, f64)) {
    let share = (node.cpu_seconds() - begin.1) / begin.0.elapsed().as_secs_f64();
    eprintln!("{of}: the agent took {:.1} % of one CPU", share * 100.0);
}

/// Lets this process, and the agents that it starts, have many connections.
fn open_many_files() {
    let limit = Rlimit {
        current: Some(4096),
        maximum: Some(4096),
    };
    setrlimit(Resource::Nofile, limit).expect("root");
}

/// An agent beside a quiet job, and room in this process for very many connections to it.
fn many_meet_it() -> Option<(Node, Job, Process)> {
    if !need_bpf() {
        return None;
    }
    open_many_files();
    let mut node = open_node();
    node.start();
    let (job, held) = quiet(&node);
    Some((node, job, held))
}

/// Seventeen users with all the connections that one may have, which say nothing: users who come then have a place, and an answer.
#[test]
fn idle_connections_of_many_users_keep_nobody_out() {
    let Some((node, job, _held)) = many_meet_it() else {
        return;
    };
    let idle: Vec<UnixStream> = (1..=17)
        .flat_map(|number| {
            as_user(SOME_USER + number, || {
                (0..64).map(|_| connect(&node)).collect::<Vec<_>>()
            })
        })
        .collect();
    for uid in [OTHER_USER, OTHER_USER + 1, SOME_USER] {
        assert_eq!(refusal(&node, uid), "absent");
    }
    check_service(&node, &job, "beside-many");
    drop(idle);
}

/// A thousand connections of one user that say nothing: that user is told that there are too many, others are served, and when
/// the agent has waited long enough, that user is too.
#[test]
fn idle_connections_keep_nobody_else_out() {
    let Some((node, job, _held)) = many_meet_it() else {
        return;
    };
    let idle: Vec<UnixStream> = as_user(SOME_USER, || (0..1000).map(|_| connect(&node)).collect());
    assert_eq!(refusal(&node, SOME_USER), "busy");
    assert_eq!(refusal(&node, OTHER_USER), "absent");
    check_service(&node, &job, "beside-idle");
    wait_until("the end of their time", || refusal(&node, SOME_USER) == "absent");
    drop(idle);
}

/// Clients that follow a job and never read, and one that sends a byte a second.
#[test]
fn slow_clients_hinder_nobody() {
    if !need_bpf() {
        return;
    }
    let mut node = open_node();
    node.start();
    let (job, _held) = quiet(&node);
    let ask = format!(
        "{{\"version\":1,\"ask\":\"follow\",\"cgroup_id\":{}}}\n",
        job.cgroup.id()
    );
    let deaf: Vec<UnixStream> = (0..40)
        .map(|_| {
            let mut stream = connect(&node);
            stream.write_all(ask.as_bytes()).expect("taken");
            stream
        })
        .collect();
    let sent = scope(|scope| {
        let slow = scope.spawn(|| trickle(&node));
        check_service(&node, &job, "beside-slow");
        let path = node.dir("followed.jsonl");
        let mut follower = node.client(ROOT, &["attach", "--cgroup"]);
        follower
            .arg(job.cgroup.path())
            .arg("--json")
            .arg(&path)
            .stdout(Stdio::null());
        let mut follower = follower.spawn().expect("sw-bpf starts");
        wait_until("some lines", || {
            fs::read_to_string(&path).is_ok_and(|text| text.lines().count() >= 5)
        });
        let pid = rustix::process::Pid::from_child(&follower);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a live process");
        assert!(follower.wait().expect("an end").success());
        assert!(record(&path).len() > 5);
        slow.join().expect("no panic")
    });
    // It was cut off within its request, which takes 37 s.
    assert!(sent < ONCE.len(), "{sent}");
    drop(deaf);
}

/// Sends a request, one byte a second, until the connection ends; how many bytes were taken.
fn trickle(node: &Node) -> usize {
    let mut stream = connect(node);
    stream
        .set_read_timeout(Some(Duration::from_secs(1)))
        .expect("a limit");
    for (sent, byte) in ONCE.iter().enumerate() {
        if stream.write_all(&[*byte]).is_err() {
            return sent;
        }
        match stream.read(&mut [0; 4096]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            // The end of the connection.
            Ok(0) | Err(_) => return sent + 1,
            Ok(_) => panic!("an answer to nothing"),
        }
    }
    ONCE.len()
}

/// Requests with bytes that are changed, missing or added.
#[test]
fn broken_requests_are_refused_and_nothing_else() {
    if !need_bpf() {
        return;
    }
    let mut node = open_node();
    node.start();
    let (job, _held) = quiet(&node);
    let whole = format!(
        "{{\"version\":1,\"ask\":\"once\",\"cgroup_id\":{},\"window_seconds\":0.01}}\n",
        job.cgroup.id()
    );
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below as u64) as usize
    };
    let (mut answered, mut refused, mut silent) = (0, 0, 0);
    for _ in 0..2000 {
        let mut frame = whole.clone().into_bytes();
        for _ in 0..=next(3) {
            let at = next(frame.len());
            match next(4) {
                0 => frame[at] = next(256) as u8,
                1 => frame.truncate(at + 1),
                2 => frame.insert(at, b"{}[]\",:\n\0\\"[next(10)]),
                _ => {
                    let more = frame[at..].to_vec();
                    frame.extend(more);
                }
            }
        }
        let mut stream = connect(&node);
        // It may have had enough before the end.
        let _ = stream.write_all(&frame);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).expect("an end");
        let reply = String::from_utf8(reply).expect("text");
        if reply.starts_with("{\"version\":1,\"snapshot\":") {
            answered += 1;
        } else if reply.starts_with("{\"version\":1,\"refused\":") {
            refused += 1;
        } else {
            assert_eq!(reply, "");
            silent += 1;
        }
    }
    eprintln!("{answered} answered, {refused} refused, {silent} ended");
    assert!(refused > 1000, "{refused}");
    check_service(&node, &job, "beside-broken");
}

/// Names of cgroups and programs that would act on a terminal, or break a line or a string.
#[test]
fn hostile_names_are_told_as_text() {
    if !need_bpf() {
        return;
    }
    let mut node = open_node();
    node.start();
    let names: [&[u8]; 4] = [
        b"\x1b[2J\x1b]0;x\x07",
        b"quote\"'\\",
        b"\xff\xfe\xc3(",
        b"..%2e{}[]",
    ];
    let hierarchies = swbpf::job::cgroup::Hierarchies::detect().expect("a hierarchy");
    for (number, name) in names.into_iter().enumerate() {
        let path = node.root().join(std::ffi::OsStr::from_bytes(name));
        support::measure::count_memory_below(&node.root());
        fs::create_dir(&path).expect("a cgroup");
        let cgroup = hierarchies.cgroup_at(&path).expect("a cgroup");
        let job = Job { cgroup };
        let link = node.dir("").join(std::ffi::OsStr::from_bytes(name));
        std::os::unix::fs::symlink(program("workload"), &link).expect("a link");
        let procs = path.join("cgroup.procs");
        let mut command = Command::new(&link);
        command.args(["anon", "--size", "40M", "--hold-ms", "5"]);
        // SAFETY: opening and writing to a file, in the only thread of the child.
        unsafe { command.pre_exec(move || fs::write(&procs, "0")) };
        assert!(command.status().expect("it starts").success());
        let arguments = ["--once", "--cgroup"];
        let mut client = node.client(ROOT, &arguments);
        let text = output(client.arg(&path));
        assert!(text.status.success());
        let text = String::from_utf8(text.stdout).expect("text");
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        job.remove();
        let files = || fs::read_dir(node.dir("jobs")).expect("records").count();
        wait_until("a record", || files() == number + 1);
    }
    for file in fs::read_dir(node.dir("jobs")).expect("records") {
        let path = file.expect("a file").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("text");
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        assert!(
            name.starts_with("cgroup-") && name.chars().all(is_plain),
            "{name}"
        );
        wait_until("the summary", || {
            fs::read_to_string(&path).is_ok_and(|text| text.contains("\"kind\":\"summary\""))
        });
        let lines = record(&path);
        let last = lines.last().expect("a summary").clone();
        check_peak(&serde_json::from_value(last).expect("a snapshot"), 40 * MIB);
    }
}

/// What somebody has put in the place of a record is set aside as it is: not followed, not opened, not written to.
#[test]
fn what_is_in_the_place_of_a_record_is_set_aside() {
    if !need_bpf() {
        return;
    }
    let mut node = open_node();
    node.start();
    let jobs = node.dir("jobs");
    let target = node.dir("target");
    fs::write(&target, "kept").expect("written");
    std::os::unix::fs::symlink(&target, jobs.join("cgroup-link.jsonl")).expect("a link");
    fs::create_dir(jobs.join("cgroup-directory.jsonl")).expect("a directory");
    let made = Command::new("mkfifo")
        .arg(jobs.join("cgroup-fifo.jsonl"))
        .status();
    assert!(made.expect("mkfifo starts").success());
    for name in ["link", "directory", "fifo"] {
        let job = node.job(name);
        job.run(&["anon", "--size", "40M", "--hold-ms", "5"]);
        job.remove();
        check_peak(&node.summary(&format!("cgroup-{name}")), 40 * MIB);
    }
    assert_eq!(fs::read_to_string(&target).expect("there"), "kept");
}

/// A job that makes and removes a hundred thousand cgroups, fewer where all takes longer.
#[test]
fn a_job_of_a_hundred_thousand_cgroups_hinders_nobody() {
    if !need_bpf() {
        return;
    }
    let mut node = open_node();
    node.start();
    let (quiet, _held) = quiet(&node);
    let job = node.job("cgroups");
    let begin = (Instant::now(), node.cpu_seconds());
    let count = fewer("cgroups", 100_000);
    scope(|scope| {
        let maker = scope.spawn(|| make_cgroups(job.cgroup.path(), count));
        for number in 0..3 {
            check_service(&node, &quiet, &format!("beside-cgroups-{number}"));
        }
        maker.join().expect("no panic");
    });
    say_share(&node, &format!("{count} cgroups"), begin);
    job.remove();
    assert!(node.summary("cgroup-cgroups").coverage.from_start);
    check_service(&node, &quiet, "after-cgroups");
}

fn make_cgroups(above: &Path, number: u64) {
    for number in 0..number {
        let path = above.join(number.to_string());
        fs::create_dir(&path).expect("a cgroup");
        fs::remove_dir(&path).expect("an empty cgroup");
    }
}

/// A job that forks without end.
#[test]
fn a_job_that_forks_without_end_hinders_nobody() {
    if !need_bpf() {
        return;
    }
    let mut node = open_node();
    node.start();
    let (quiet, _held) = quiet(&node);
    let job = node.job("forks");
    let procs = job.cgroup.path().join("cgroup.procs");
    let mut storm = Command::new("sh");
    storm.args(["-c", "while :; do : & : & : & : & wait; done"]);
    // SAFETY: opening and writing to a file, in the only thread of the child.
    unsafe { storm.pre_exec(move || fs::write(&procs, "0")) };
    let mut storm = storm.spawn().expect("sh starts");
    let begin = (Instant::now(), node.cpu_seconds());
    for number in 0..3 {
        check_service(&node, &quiet, &format!("beside-forks-{number}"));
    }
    sleep(Duration::from_secs(3));
    say_share(&node, "forks without end", begin);
    let told = once(&node, ROOT, &job, &[]);
    let started = told["processes"]["started"].as_u64().expect("a number");
    eprintln!("{started} processes");
    assert!(started > 1000, "{started}");
    storm.kill().expect("a process of its own");
    storm.wait().expect("an end");
    job.remove();
    assert!(node.summary("cgroup-forks").processes.ended >= Some(started));
}
