//! The files of `packaging/systemd`, set up as docs/agent.md says and run by systemd, with a Slurm beside them. They change the
//! machine: it has to be one of their own (`cargo xtask vm --systemd`).

mod service;

use std::fs;
use std::process::Command;

use serde_json::Value;
use support::command::{output, snapshot};
use support::measure::{MIB, wait_until};
use support::slurm::{Config, JobId, Slurm};
use support::{need_bpf, need_slurm, skipped};

use service::Service;

const OTHER_USER: u32 = 12_345;
/// Highest exposure by `systemd-analyze security`, in tenths: what docs/agent.md says.
const EXPOSURE: &str = "--threshold=31";
/// What the agent keeps, and what the process that times its programs has: numbers of capability.h.
const CAP_DAC_READ_SEARCH: u32 = 2;
const CAP_SYS_ADMIN: u32 = 21;
/// What a job has beside its workload: page tables, shells, a daemon for each step.
const BESIDE: u64 = 6 * MIB;

/// Whether this machine is the test's own, with systemd.
fn need() -> bool {
    let is_own = std::env::var_os("SWBPF_TESTS_OWN_SYSTEMD").is_some();
    if !is_own {
        skipped("the service is tested where nothing else runs: `cargo xtask vm --systemd`");
    }
    is_own && need_bpf() && need_slurm()
}

/// The jobs that `list` tells to a user, with these groups beside the own one.
fn listed(uid: u32, groups: &[&str]) -> Vec<Value> {
    let uid = uid.to_string();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &uid, "--regid", &uid]);
    match groups {
        [] => command.arg("--clear-groups"),
        _ => command.args(["--groups", &groups.join(",")]),
    };
    let output = output(command.arg("/usr/bin/sw-bpf").args(["list", "--json"]));
    assert!(output.status.success(), "{output:?}");
    let listing: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    listing["jobs"].as_array().expect("jobs").clone()
}

/// The last line of the record of a job, once it is the summary.
fn summary(job: JobId) -> Value {
    let path = format!("/var/lib/sw-bpf/jobs/{job}.jsonl");
    let last = || {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let last = text.lines().last().map(str::to_owned);
        last.filter(|line| line.contains("\"kind\":\"summary\""))
    };
    wait_until("the summary", || last().is_some());
    snapshot(&last().expect("it was there"))
}

/// A job is recorded whole by a service that is started anew, killed, and hangs meanwhile; its user sees it, and so does the group
/// of administrators.
#[test]
fn the_service_records_whatever_becomes_of_it() {
    if !need() {
        return;
    }
    let slurm = Slurm::start(&Config {
        own_network: false,
        ..Config::default()
    });
    let _service = Service::set_up(&slurm);
    assert_eq!(service::value("ActiveState"), "active");
    assert_eq!(service::value("StatusText"), "Recording 0 jobs");
    check_rights();
    check_hardening();

    let script = "#!/bin/sh\nworkload anon --size 60M --hold-ms 5\necho one\nexec until-let-go\n";
    let job = slurm.sbatch(script, &["--mem=300M"]);
    slurm.wait_line(job, "one");
    wait_until("a status", || service::value("StatusText") == "Recording 1 jobs");
    // Slurm has told whose it is.
    let owner = slurm.user().uid;
    wait_until("the job in its user's list", || listed(owner, &[]).len() == 1);
    assert_eq!(listed(OTHER_USER, &[]), [] as [Value; 0]);
    assert_eq!(listed(OTHER_USER, &["sw-bpf"]).len(), 1);

    service::restarts_by("a restart", || service::systemctl(&["restart"]));
    service::restarts_by("SIGKILL", || service::systemctl(&["kill", "--signal=KILL"]));
    let signs = || {
        service::value("WatchdogTimestampMonotonic")
            .parse::<u64>()
            .expect("a time")
    };
    let before = signs();
    wait_until("a sign of life", || signs() > before);
    service::restarts_by("the watchdog", || {
        service::systemctl(&["kill", "--kill-whom=main", "--signal=STOP"]);
    });
    check_rights();

    slurm.let_go(job);
    assert_eq!(slurm.wait_end(job), "COMPLETED");
    let summary = summary(job);
    assert_eq!(summary["coverage"]["from_start"], true, "{}", summary["coverage"]);
    assert_eq!(summary["source"], "kernel");
    assert_eq!(
        summary["job"]["user"],
        slurm.user().name,
        "{}",
        summary["unknown"]
    );
    let peak = summary["memory"]["needed_peak_bytes"].as_u64().expect("a peak");
    assert!((60 * MIB..=60 * MIB + BESIDE).contains(&peak), "{peak}");
    assert_eq!(listed(owner, &[])[0]["state"], "ended");

    service::systemctl(&["stop"]);
    assert_eq!(service::value("ActiveState"), "inactive");
    assert_eq!(service::value("Result"), "success");
    assert!(
        fs::exists("/sys/fs/bpf/sw-bpf").expect("a directory"),
        "counting goes on"
    );
    println!("{}", service::told());
}

/// The agent and the process that times its programs have what docs/agent.md says, and nothing else.
fn check_rights() {
    let agent = service::value("MainPID");
    let path = format!("/proc/{agent}/task/{agent}/children");
    let children = || fs::read_to_string(&path).unwrap_or_default();
    // A `scontrol` may be among them.
    let helper = || {
        let named = |pid: &&str| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sw-bpf-timer\n")
        };
        children().split_ascii_whitespace().find(named).map(str::to_owned)
    };
    wait_until("its helper", || helper().is_some());
    for (pid, capability) in [
        (agent.clone(), CAP_DAC_READ_SEARCH),
        (helper().expect("there"), CAP_SYS_ADMIN),
    ] {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a live process");
        let line = |name: &str| {
            let value = status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .expect("a line");
            u64::from_str_radix(value.trim(), 16).expect("a number")
        };
        let sets = ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"].map(line);
        assert_eq!(sets, [0, 1 << capability, 1 << capability, 0, 0], "{status}");
        assert_eq!(line("NoNewPrivs:"), 1);
        assert_eq!(line("Seccomp:"), 2, "a filter");
    }
}

/// By systemd's own word on the service that it runs.
fn check_hardening() {
    let mut analyze = Command::new("systemd-analyze");
    analyze.args(["security", "--no-pager", EXPOSURE, service::UNIT]);
    let output = output(&mut analyze);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
}
