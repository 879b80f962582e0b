//! `sw-bpf agent` on a node of a real Slurm: every job recorded, with no action by its user and no Prolog.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use support::command::snapshot;
use support::measure::{MIB, program, wait_until};
use support::slurm::{Config, JobId, PROGRAM_DIRS, Slurm};
use support::{need_bpf, need_slurm};
use tempfile::TempDir;

/// What a job has beside a workload: page tables, the workload's own footprint, shells, and a daemon for each step.
const BESIDE: u64 = 6 * MIB;

/// An agent beside a Slurm. Dropped, it and its programs are gone.
struct Agent {
    dir: TempDir,
    child: Option<Child>,
}

impl Agent {
    fn start(slurm: &Slurm) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("open to all");
        let mut agent = Self { dir, child: None };
        for name in ["bin", "bpf"] {
            fs::create_dir(agent.path(name)).expect("a directory");
        }
        agent.wrap_scontrol();
        run("mount", &["-t", "bpf", "bpf"], &agent.path("bpf"));
        agent.restart(slurm);
        agent
    }

    /// Has each `scontrol` of the agent tell the rights with which it was started.
    fn wrap_scontrol(&self) {
        let scontrol = PROGRAM_DIRS.iter().map(|dir| Path::new(dir).join("scontrol"));
        let scontrol = { scontrol }.find(|path| path.exists()).expect("scontrol");
        let script = format!(
            "#!/bin/sh\n/bin/grep -E '^(Cap|NoNewPrivs)' /proc/self/status >>{}\nexec {} \"$@\"\n",
            self.path("rights").display(),
            scontrol.display()
        );
        let wrapper = self.path("bin/scontrol");
        fs::write(&wrapper, script).expect("a script");
        fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).expect("a script");
    }

    /// Kills the one that runs, and starts another.
    fn restart(&mut self, slurm: &Slurm) {
        self.kill();
        let before = self.ready();
        let told = fs::File::options()
            .create(true)
            .append(true)
            .open(self.path("told"))
            .expect("a file");
        let mut command = slurm.as_root(program("sw-bpf"));
        command
            .arg("agent")
            .arg("--socket")
            .arg(self.path("run/agent.sock"));
        command.env("PATH", self.path("bin"));
        command.arg("--records").arg(self.path("jobs"));
        command.arg("--pin-dir").arg(self.path("bpf/pins"));
        let child = command.stdin(Stdio::null()).stderr(told).spawn();
        self.child = Some(child.expect("sw-bpf starts"));
        wait_until("the agent", || self.ready() > before);
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("a process of its own");
            child.wait().expect("an end");
        }
    }

    fn told(&self) -> String {
        fs::read_to_string(self.path("told")).unwrap_or_default()
    }

    fn ready(&self) -> usize {
        self.told().matches("records the jobs").count()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn record(&self, job: JobId) -> PathBuf {
        self.path("jobs").join(format!("{job}.jsonl"))
    }

    /// The last line of the record of a job, once it is the summary.
    fn summary(&self, job: JobId) -> Value {
        let last = || {
            let text = fs::read_to_string(self.record(job)).unwrap_or_default();
            let last = text.lines().last().map(str::to_owned);
            last.filter(|line| line.contains("\"kind\":\"summary\""))
        };
        wait_until(&format!("the summary ({})", self.told()), || last().is_some());
        snapshot(&last().expect("it was there"))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.kill();
        run("umount", &["-l"], &self.path("bpf"));
    }
}

fn run(program: &str, arguments: &[&str], path: &Path) {
    let status = Command::new(program).args(arguments).arg(path).status();
    assert!(status.expect("the program starts").success(), "{program}");
}

/// Whether this user can read a file.
fn can_read(uid: u32, path: &Path) -> bool {
    let uid = uid.to_string();
    let options = ["--reuid", &uid, "--regid", &uid, "--clear-groups", "cat"];
    let output = Command::new("setpriv").args(options).arg(path).output();
    output.expect("setpriv starts").status.success()
}

/// Asserts that a whole run was counted, and its peak.
fn assert_whole(summary: &Value, mib: u64) {
    assert_eq!(summary["coverage"]["from_start"], true, "{}", summary["coverage"]);
    assert_eq!(summary["source"], "kernel");
    let memory = &summary["memory"];
    let peak = memory["needed_peak_bytes"].as_u64().expect("a peak");
    let bound = memory["error_bound_bytes"].as_u64();
    let is_lossy = summary["loss"]["kernel_memory_misses"] != 0;
    assert!(bound == Some(0) || is_lossy, "{bound:?}: {}", summary["loss"]);
    let bound = bound.unwrap_or(0);
    assert!(
        peak + bound >= mib * MIB && peak <= mib * MIB + BESIDE + bound,
        "{peak} +- {bound} for {mib} MiB"
    );
}

/// A spike of a few milliseconds in the first instruction of a job; its user can read the record, and no other user can.
#[test]
fn a_job_is_recorded_with_no_action_by_its_user() {
    if !need_slurm() || !need_bpf() {
        return;
    }
    let slurm = Slurm::start(&Config::default());
    let agent = Agent::start(&slurm);
    let script = "#!/bin/sh\nexec workload anon --size 300M --hold-ms 5\n";
    let (job, state) = slurm.run_job(script, &["--mem=600M"]);
    assert_eq!(state, "COMPLETED");
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
