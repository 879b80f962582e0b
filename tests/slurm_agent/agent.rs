//! An agent of its own beside a Slurm.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use support::command::snapshot;
use support::measure::{MIB, program, wait_until};
use support::slurm::{JobId, PROGRAM_DIRS, Slurm};
use tempfile::TempDir;

/// What a job has beside a workload: page tables, the workload's own footprint, shells, and a daemon for each step.
pub const BESIDE: u64 = 6 * MIB;

/// An agent beside a Slurm. Dropped, it and its programs are gone.
pub struct Agent {
    dir: TempDir,
    child: Option<Child>,
}

impl Agent {
    pub fn start(slurm: &Slurm) -> Self {
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
    pub fn wrap_scontrol(&self) {
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
    pub fn restart(&mut self, slurm: &Slurm) {
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
        command.arg("--openmetrics").arg(self.path("sw-bpf.prom"));
        let child = command.stdin(Stdio::null()).stderr(told).spawn();
        self.child = Some(child.expect("sw-bpf starts"));
        wait_until("the agent", || self.ready() > before);
    }

    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("a process of its own");
            child.wait().expect("an end");
        }
    }

    pub fn told(&self) -> String {
        fs::read_to_string(self.path("told")).unwrap_or_default()
    }

    fn ready(&self) -> usize {
        self.told().matches("records the jobs").count()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn record(&self, job: JobId) -> PathBuf {
        self.path("jobs").join(format!("{job}.jsonl"))
    }

    /// Waits until the record of a job has Slurm's words of it, which come when `scontrol` has answered.
    pub fn wait_for_words(&self, job: JobId) {
        let has_words = |line: &str| snapshot(line)["job"].is_object();
        wait_until("Slurm's words in a line", || {
            let text = fs::read_to_string(self.record(job)).unwrap_or_default();
            // The last one may be half written.
            let whole = text.rfind('\n').map_or("", |end| &text[..end]);
            whole.lines().last().is_some_and(has_words)
        });
    }

    /// The last line of the record of a job, once it is the summary.
    pub fn summary(&self, job: JobId) -> Value {
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

/// Asserts that a whole run was counted, and its peak.
pub fn assert_whole(summary: &Value, mib: u64) {
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
