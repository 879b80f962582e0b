//! `sw-bpf agent` on a node of a real Slurm: every job recorded, with no action by its user and no Prolog.

mod agent;
mod troubles;
mod users;

use std::fs;
use std::path::Path;
use std::process::Command;

use support::measure::{MIB, wait_until};
use support::slurm::{Config, Slurm};
use support::{need_bpf, need_slurm};

use agent::{Agent, BESIDE, assert_whole};

/// Whether this user can read a file.
fn can_read(uid: u32, path: &Path) -> bool {
    let uid = uid.to_string();
    let options = ["--reuid", &uid, "--regid", &uid, "--clear-groups", "cat"];
    let output = Command::new("setpriv").args(options).arg(path).output();
    output.expect("setpriv starts").status.success()
}

/// A spike of a few milliseconds in the first instruction of a job; its user can read the record, and no other user can.
#[test]
fn a_job_is_recorded_with_no_action_by_its_user() {
    if !need_slurm() || !need_bpf() {
        return;
    }
    let slurm = Slurm::start(&Config::default());
    let agent = Agent::start(&slurm);
    let script = "#!/bin/sh\nworkload anon --size 300M --hold-ms 5\nexec until-let-go\n";
    let job = slurm.sbatch(script, &["--mem=600M"]);
    agent.wait_for_words(job);
    slurm.let_go(job);
    assert_eq!(slurm.wait_end(job), "COMPLETED");
    let summary = agent.summary(job);
    assert_whole(&summary, 300);
    assert_eq!(summary["job_id"], job.to_string());
    assert_eq!(
        summary["job"]["user"],
        slurm.user().name,
        "{}",
        summary["unknown"]
    );
    let steps = summary["steps"].as_array().expect("steps");
    let batch = steps.iter().find(|step| step["step_id"] == "batch");
    let peak = batch.and_then(|step| step["needed_peak_bytes"].as_u64());
    assert!(peak >= Some(300 * MIB), "{steps:#?}");
    let record = agent.record(job);
    assert!(can_read(slurm.user().uid, &record), "{}", agent.told());
    assert!(!can_read(12_345, &record));
    let rights = fs::read_to_string(agent.path("rights")).expect("scontrol was asked");
    for line in rights.lines() {
        let (what, value) = line.split_once(":\t").expect("a line of status");
        let none = u64::from(what == "NoNewPrivs");
        assert_eq!(u64::from_str_radix(value, 16), Ok(none), "of scontrol: {rights}");
    }
}

/// Killed while a job runs, and while there is a spike: the summary has both runs of the agent, and the time between.
#[test]
fn a_job_outlives_the_agent() {
    if !need_slurm() || !need_bpf() {
        return;
    }
    let slurm = Slurm::start(&Config::default());
    let mut agent = Agent::start(&slurm);
    let script = "#!/bin/sh\nsrun -n1 workload anon --size 60M --hold-ms 5\necho one\nsleep 3\n\
                  workload anon --size 150M --hold-ms 5\necho two\nsleep 3\n";
    let job = slurm.sbatch(script, &["--mem=300M"]);
    slurm.wait_line(job, "one");
    agent.kill();
    slurm.wait_line(job, "two");
    agent.restart(&slurm);
    assert_eq!(slurm.wait_end(job), "COMPLETED");
    let summary = agent.summary(job);
    assert_whole(&summary, 150);
    let steps = summary["steps"].as_array().expect("steps");
    let first = steps.iter().find(|step| step["step_id"] == "0");
    let first = first.unwrap_or_else(|| panic!("{steps:#?}"));
    assert!(first["ended_at"].is_string(), "{first:#}");
    assert!(first["needed_peak_bytes"].as_u64() >= Some(60 * MIB), "{first:#}");
}

/// A job and its steps have series while they run, and once more when they have ended: with what a step needs now, and the
/// highest that it needed.
#[test]
fn a_job_and_its_steps_have_series() {
    if !need_slurm() || !need_bpf() {
        return;
    }
    let slurm = Slurm::start(&Config::default());
    let agent = Agent::start(&slurm);
    let script = "#!/bin/sh\nsrun -n1 workload anon --size 90M --hold-ms 5\n\
                  srun -n1 workload anon --size 40M --hold-ms 60000\n";
    let job = slurm.sbatch(script, &["--mem=300M"]);
    let text = || fs::read_to_string(agent.path("sw-bpf.prom")).unwrap_or_default();
    let number = |name: &str, step: Option<&str>| {
        let step = step.map_or(String::new(), |step| format!(",step=\"{step}\""));
        let series = format!("{name}{{jobid=\"{job}\"{step}}} ");
        let text = text();
        let line = text.lines().find_map(|line| line.strip_prefix(&series))?;
        Some(line.parse::<f64>().expect("a number") as u64)
    };
    let about = |found: Option<u64>, mib: u64| {
        let found = found.expect("a number");
        assert!(
            (mib * MIB..=mib * MIB + BESIDE).contains(&found),
            "{found} for {mib} MiB"
        );
    };
    let (now, peak) = ("swbpf_step_needed_bytes", "swbpf_step_needed_peak_bytes");
    wait_until("the second step", || number(now, Some("1")) >= Some(40 * MIB));
    about(number(now, Some("1")), 40);
    about(number(peak, Some("0")), 90);
    assert_eq!(number(now, Some("0")), None, "it has ended");
    about(number("swbpf_job_needed_window_peak_bytes", None), 90);
    assert!(number("swbpf_step_processes_started_total", Some("batch")) > Some(0));
    assert_eq!(number("swbpf_job_limit_bytes", None), Some(300 * MIB));
    slurm.scancel(job);
    wait_until("the end of the job", || text().contains("\nswbpf_agent_jobs 0\n"));
    about(number(peak, Some("0")), 90);
    about(number(peak, Some("1")), 40);
    about(number("swbpf_job_needed_peak_bytes", None), 90);
}
