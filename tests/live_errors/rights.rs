//! Rights that are missing.

use std::process::Command;

use support::command::{answer, failure, output, sw_bpf};
use support::measure::{own_cgroup, program};
use support::need_bpf;

use super::{ANY, KERNEL, falls_back, in_other_mounts};

/// `sw-bpf` for root with these capabilities alone.
fn with_capabilities(bounding: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--bounding-set", bounding])
        .arg(program("sw-bpf"))
        .args(arguments);
    command
}

#[test]
fn each_missing_capability_is_named() {
    if !need_bpf() {
        return;
    }
    for (bounding, name) in [
        ("-bpf,-perfmon,-sys_admin", "CAP_BPF is missing"),
        ("-bpf,-sys_admin", "CAP_BPF is missing"),
        ("-perfmon,-sys_admin", "CAP_PERFMON is missing"),
    ] {
        falls_back(|arguments| with_capabilities(bounding, arguments), 78, name);
    }
}

#[test]
fn root_that_was_stripped_is_told_how_it_gets_them_back() {
    if !need_bpf() {
        return;
    }
    falls_back(
        |arguments| with_capabilities("-bpf,-perfmon,-sys_admin", arguments),
        78,
        "--cap-add BPF",
    );
}

#[test]
fn capabilities_of_a_user_namespace_are_78() {
    if !need_bpf() {
        return;
    }
    let inside = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command
            .args(["--user", "--map-root-user"])
            .arg(program("sw-bpf"))
            .args(arguments);
        command
    };
    falls_back(inside, 78, "in a user namespace the kernel does not accept");
}

#[test]
fn bpf_and_perfmon_are_enough_to_count() {
    if !need_bpf() {
        return;
    }
    for bounding in ["-all,+bpf,+perfmon", "-all,+sys_admin"] {
        let answer = answer(&output(&mut with_capabilities(bounding, &ANY)));
        assert_eq!(answer["source"], "kernel", "{bounding}: {}", answer["probes"]);
    }
}

/// `sw-bpf` by a shell's script.
fn by_script(script: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-e", "-c", script]);
    command.arg(program("sw-bpf")).args(arguments);
    command
}

/// A script that joins the cgroup at `path`, where the root can be told from, and goes on with `then`.
fn within(path: &str, then: &str) -> String {
    format!("echo 0 >'{path}/cgroup.procs'; {then} \"$0\" \"$@\"")
}

/// There its own id is that of another process.
#[test]
fn in_a_pid_namespace_with_the_hosts_proc_it_still_finds_itself() {
    if !need_bpf() {
        return;
    }
    let source = answer(&output(&mut sw_bpf(&ANY)))["source"].clone();
    let own = own_cgroup();
    let path = own.cgroup().path().to_str().expect("text");
    let script = within(path, "exec unshare --pid --fork");
    let inside = answer(&output(&mut by_script(&script, &ANY)));
    assert_eq!(inside["target"]["cgroup"], path);
    assert_eq!(inside["source"], source, "{inside}");
}

#[test]
fn an_own_cgroup_that_cannot_be_seen_is_told_with_what_works() {
    if !need_bpf() {
        return;
    }
    let own = own_cgroup();
    let path = own.cgroup().path().to_str().expect("text");
    let script = within(path, "exec unshare --cgroup");
    let inside = |arguments: &[&str]| output(&mut by_script(&script, arguments));
    for arguments in [&ANY[..], &["run", "--", "true"]] {
        let (code, line) = failure(&inside(arguments));
        assert_eq!(code, Some(1), "{line}");
        assert!(
            line.contains("cannot be seen here") && line.contains("--once --cgroup PATH"),
            "{line}"
        );
    }
    let named = answer(&inside(&[&ANY[..], &["--cgroup", path]].concat()));
    assert_eq!(named["target"]["cgroup"], path);
}

/// Whatever it is that cannot be opened.
#[test]
fn too_many_open_files_are_told_once_with_the_limit() {
    if !need_bpf() {
        return;
    }
    for limit in [40, 36, 25, 15, 10, 7] {
        let script = format!("ulimit -n {limit}; exec \"$0\" \"$@\"");
        let (code, line) = failure(&output(&mut by_script(&script, &KERNEL)));
        assert_eq!(code, Some(1), "{line}");
        assert_eq!(
            line,
            format!(
                "sw-bpf: too many open files: this process may have {limit}: raise that, as `ulimit -n 1024`, or start \
                 sw-bpf with fewer open"
            )
        );
    }
}

#[test]
fn without_proc_it_is_told_that_it_is_not_mounted() {
    if !need_bpf() {
        return;
    }
    let script = "umount -l /proc; exec \"$0\" \"$@\"";
    for arguments in [&ANY[..], &["run", "--", "true"]] {
        let (code, line) = failure(&output(&mut in_other_mounts(script, arguments)));
        assert_eq!(code, Some(1), "{line}");
        assert_eq!(line, "sw-bpf: /proc is not mounted: mount -t proc proc /proc");
    }
}
