//! A user who may not load programs into the kernel.

use std::fs;
use std::io::BufReader;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use support::command::{answer, failure, output};
use support::measure::program;
use support::need_bpf;
use tempfile::TempDir;

use super::{held, next_line, rest};

/// `sw-bpf` as it is for a user without any right, from a place where that user can read it.
fn as_nobody(dir: &TempDir) -> Command {
    let copy = dir.path().join("sw-bpf");
    fs::copy(program("sw-bpf"), &copy).expect("a copy");
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("a directory");
    let mut command = Command::new("setpriv");
    command
        .args([
            "--reuid",
            "65534",
            "--regid",
            "65534",
            "--clear-groups",
            "--inh-caps=-all",
        ])
        .arg(copy);
    command
}

#[test]
fn the_answer_is_sampled_and_says_why() {
    if !need_bpf() {
        return;
    }
    let (own, mut process) = held();
    let dir = TempDir::new().expect("a directory");
    let mut command = as_nobody(&dir);
    command
        .args(["--once", "--json", "--window", "200ms", "--cgroup"])
        .arg(own.cgroup().path());
    let answer = answer(&output(&mut command));
    assert_eq!(answer["source"], "sampled");
    let reason = answer["probes"]["reason"].as_str().expect("a reason");
    assert!(
        reason.contains("CAP_BPF is missing") && reason.contains("setcap"),
        "{reason}"
    );
    assert!(
        answer["memory"]["needed_peak_bytes"].as_u64() > Some(20 << 20),
        "{}",
        answer["memory"]
    );
    assert!(answer["memory"]["needed_peak_samples"].as_u64() >= Some(2));
    assert!(process.finish().0.success());
}

#[test]
fn attach_samples_as_well() {
    if !need_bpf() {
        return;
    }
    let (own, mut process) = held();
    let dir = TempDir::new().expect("a directory");
    let mut command = as_nobody(&dir);
    command
        .args(["attach", "--cgroup"])
        .arg(own.cgroup().path())
        .stdout(Stdio::piped());
    let mut following = command.spawn().expect("sw-bpf starts");
    let mut lines = BufReader::new(following.stdout.take().expect("a pipe"));
    // Not the peak: the highest that was seen.
    let first = next_line(&mut lines);
    assert!(first.contains("seen"), "{first}");
    assert!(process.finish().0.success());
    let text = rest(lines).join("\n");
    assert!(following.wait().expect("an end").success(), "{text}");
    assert!(text.contains("sampled"), "{text}");
}

#[test]
fn a_cgroup_of_its_own_needs_the_right_to_make_one() {
    if !need_bpf() {
        return;
    }
    let dir = TempDir::new().expect("a directory");
    let (code, line) = failure(&output(as_nobody(&dir).args(["run", "--", "true"])));
    assert_eq!(code, Some(77), "{line}");
}

#[test]
fn a_cgroup_that_may_not_be_looked_into_is_unknown() {
    if !need_bpf() {
        return;
    }
    let (own, mut process) = held();
    fs::set_permissions(own.cgroup().path(), fs::Permissions::from_mode(0o700)).expect("a directory");
    let dir = TempDir::new().expect("a directory");
    let mut command = as_nobody(&dir);
    command
        .args(["--once", "--json", "--window", "100ms", "--cgroup"])
        .arg(own.cgroup().path());
    let answer = answer(&output(&mut command));
    assert_eq!(answer["memory"]["source"], "unavailable");
    let reason = answer["unknown"]["memory.current_bytes"]
        .as_str()
        .expect("a reason");
    assert!(reason.contains("ermission denied"), "{reason}");
    assert!(process.finish().0.success());
}
