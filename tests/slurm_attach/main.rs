//! `sw-bpf JOB` on a real Slurm, as a user of the cluster types it.

mod ids;
mod kills;
mod refusals;
mod rows;
mod whose;

use std::fs;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use support::command::record;
use support::measure::{MIB, Process, program};
use support::slurm::{Answer, Config, JobId, Slurm, run};
use support::{need_bpf, need_slurm};
use tempfile::TempDir;

/// How long a command of sw-bpf may take that does not follow a job.
const LIMIT: Duration = Duration::from_secs(30);

/// Whether a cluster can run here whose jobs the kernel programs can count.
fn need() -> bool {
    need_slurm() && need_bpf()
}

/// A cluster, on whose hosts sw-bpf is installed.
fn cluster(config: &Config) -> Slurm {
    let slurm = Slurm::start(config);
    fs::copy(program("sw-bpf"), slurm.dir("bin").join("sw-bpf")).expect("a program");
    slurm
}

/// `sw-bpf` as root types it on a host of the cluster.
fn root(slurm: &Slurm, arguments: &[&str]) -> Command {
    let mut command = slurm.as_root("sw-bpf");
    command.args(arguments);
    command
}

/// The same as the user whose jobs they are.
fn user(slurm: &Slurm, arguments: &[&str]) -> Command {
    let mut command = slurm.as_user("sw-bpf");
    command.args(arguments);
    command
}

/// The one line in which it refused, and its exit code.
fn refused(mut command: Command) -> (Option<i32>, String) {
    let Answer { status, stderr, .. } = run(&mut command, LIMIT);
    let line = stderr.strip_suffix('\n').unwrap_or(&stderr);
    assert!(line.starts_with("sw-bpf: ") && !line.contains('\n'), "{stderr}");
    (status.code(), line.to_owned())
}

/// The answer of `--once --json`.
fn answered(mut command: Command) -> Value {
    support::command::snapshot(&run(&mut command, LIMIT).good())
}

/// `sw-bpf attach` that has begun to measure.
struct Attached {
    process: Process,
    dir: TempDir,
}

impl Attached {
    /// Starts it, and waits for its first line, after which nothing is missed.
    fn start(slurm: &Slurm, job: JobId) -> Self {
        let dir = TempDir::new().expect("a directory");
        let path = dir.path().join("record");
        let mut command = root(slurm, &["attach", &job.to_string(), "--json"]);
        let mut process = Process::start(command.arg(&path));
        process.line();
        Self { process, dir }
    }

    /// Waits for its end, which is that of the job, and gives what it printed and the last line of its record.
    fn summary(mut self) -> (String, Value) {
        let (status, told) = self.process.finish();
        assert!(status.success(), "{told}");
        let summary = record(&self.dir.path().join("record")).pop().expect("a line");
        (told, summary)
    }
}

/// The row of a step.
fn step<'a>(summary: &'a Value, step_id: &str) -> &'a Value {
    let steps = summary["steps"].as_array().expect("steps");
    steps
        .iter()
        .find(|step| step["step_id"] == step_id)
        .unwrap_or_else(|| panic!("no step {step_id} in {steps:#?}"))
}

fn bytes(row: &Value, key: &str) -> u64 {
    row[key].as_u64().unwrap_or_else(|| panic!("no {key}: {row}"))
}

/// What a job has beside a workload: page tables, the workload's own footprint, shells, and a daemon for each step.
const BESIDE: u64 = 6 * MIB;

fn assert_holds(row: &Value, mib: u64) {
    let peak = bytes(row, "needed_peak_bytes");
    let bound = row["error_bound_bytes"].as_u64().unwrap_or(0);
    let most = mib * MIB + BESIDE + bound;
    assert!(
        peak + bound >= mib * MIB && peak <= most,
        "{peak} +- {bound} for {mib} MiB: {row}"
    );
}
