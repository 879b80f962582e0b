//! The files for systemd. Here none runs as the first process: it reads them, and the agent is started with the rights that they
//! give it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::measure::{MIB, program, wait_until};
use support::{need_bpf, skipped};
use tempfile::TempDir;

use super::node::{Node, check_peak};

const UNIT: &str = "sw-bpf-agent.service";
/// Highest exposure by `systemd-analyze security`, in tenths, of 100 at most: docs/agent.md says what it is made of.
const EXPOSURE: &str = "--threshold=32";

fn file(name: &str) -> PathBuf {
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/systemd");
    packaging.join(name)
}

/// What a program says, which must be good.
fn said(command: &mut Command) -> String {
    let output = command.output().expect("the program starts");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{command:?}: {text}");
    text
}

/// Whether a program of systemd is here; where not, the test counts as skipped.
fn need(program: &str) -> bool {
    let is_here = ["/usr/bin", "/bin"]
        .iter()
        .any(|dir| Path::new(dir).join(program).exists());
    if !is_here {
        skipped("the files for systemd need its programs");
    }
    is_here
}

#[test]
fn the_unit_is_understood_and_hardened() {
    if !need("systemd-analyze") {
        return;
    }
    let dir = TempDir::new().expect("a directory");
    let unit = dir.path().join(UNIT);
    let text = fs::read_to_string(file(UNIT)).expect("the unit");
    let installed = text.replace("/usr/bin/sw-bpf", program("sw-bpf").to_str().expect("a path"));
    assert_ne!(installed, text);
    fs::write(&unit, installed).expect("written");
    let analyze = || Command::new("systemd-analyze");
    assert_eq!(said(analyze().arg("verify").arg(&unit)), "");
    said(
        analyze()
            .args(["security", "--offline=true", "--no-pager", EXPOSURE])
            .arg(&unit),
    );
}

#[test]
fn the_directories_and_the_group_are_made() {
    if !need("systemd-tmpfiles") || !need("systemd-sysusers") {
        return;
    }
    let dir = TempDir::new().expect("a directory");
    let etc = dir.path().join("etc");
    fs::create_dir(&etc).expect("a directory");
    fs::write(etc.join("passwd"), "root:x:0:0::/:/bin/sh\n").expect("written");
    fs::write(etc.join("group"), "root:x:0:\n").expect("written");
    let mut root = std::ffi::OsString::from("--root=");
    root.push(dir.path());
    said(
        Command::new("systemd-sysusers")
            .arg(&root)
            .arg(file("sw-bpf.sysusers.conf")),
    );
    let groups = fs::read_to_string(etc.join("group")).expect("groups");
    assert!(groups.lines().any(|line| line.starts_with("sw-bpf:")), "{groups}");
    let create = ["--create"];
    said(
        Command::new("systemd-tmpfiles")
            .args(create)
            .arg(&root)
            .arg(file("sw-bpf.tmpfiles.conf")),
    );
    for (path, mode) in [("run/sw-bpf", 0o755), ("var/lib/sw-bpf/jobs", 0o711)] {
        let found = fs::metadata(dir.path().join(path)).expect("made");
        assert_eq!(found.permissions().mode() & 0o7777, mode, "{path}");
    }
}

/// The capabilities of the unit are enough to start, and those that the agent keeps are among them.
#[test]
fn the_capabilities_of_the_unit_are_enough() {
    if !need_bpf() {
        return;
    }
    let text = fs::read_to_string(file(UNIT)).expect("the unit");
    let set = text
        .lines()
        .find_map(|line| line.strip_prefix("CapabilityBoundingSet="));
    let set: Vec<_> = { set.expect("a bounding set").split(' ') }
        .map(|name| name.replace("CAP_", "+").to_lowercase())
        .collect();
    let bounding = format!("-all,{}", set.join(","));
    let options = ["--bounding-set", &bounding, "--inh-caps=-all", "--no-new-privs"];
    let mut node = Node::new();
    let plain = node.command();
    let mut command = Command::new("setpriv");
    command.args(options).arg(plain.get_program());
    node.spawn_as(command.args(plain.get_args()));
    wait_until("the agent", || node.told().contains("records the jobs"));
    let job = node.job("bound");
    job.run(&["anon", "--size", "30M", "--hold-ms", "5"]);
    wait_until("a time of an event", || {
        let last = node.lines("cgroup-bound").pop();
        last.is_some_and(|line| line.overhead.ns_per_event > Some(0.0))
    });
    job.remove();
    let summary = node.summary("cgroup-bound");
    assert!(summary.coverage.from_start);
    check_peak(&summary, 30 * MIB);
}
