//! Rights that are missing.

use std::process::Command;

use support::command::{answer, output};
use support::measure::program;
use support::need_bpf;

use super::{ANY, falls_back};

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
