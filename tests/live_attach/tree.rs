//! A job's tree as Slurm makes it, with known programs in it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::command::{record, sw_bpf};
use support::measure::{MIB, count_memory_below, program};
use support::need_bpf;
use swbpf::job::cgroup::{Controller, Hierarchies, Version};

/// Number of a job that no Slurm of this machine gives.
const JOB: u32 = 4_000_000_001;

/// The directory of a job in the hierarchy of a controller; removed with all below it when dropped. What lies below it is
/// named as on version 1, `step_0/task_0`, and made where this version has it.
pub struct Tree {
    version: Version,
    /// Whether the memory of each directory is counted.
    counts_memory: bool,
    /// Where the hierarchy is mounted.
    pub mount: PathBuf,
    /// What was made for this tree.
    root: PathBuf,
    pub job: PathBuf,
}

impl Tree {
    /// `None` where nothing can be measured here; the test counts as skipped. On version 2 the hierarchy is the same for every
    /// controller, and memory is counted where it is asked for.
    pub fn new(controller: Controller) -> Option<Self> {
        if !need_bpf() {
            return None;
        }
        let hierarchies = Hierarchies::detect().expect("a cgroup hierarchy");
        let root = hierarchies.cgroup_at(Path::new("/")).expect("the root");
        let version = hierarchies.version_of(controller).unwrap_or(Version::V2);
        let mount = root.dir(controller).expect("a mount").path.clone();
        let pid = std::process::id();
        let (root, job) = match version {
            Version::V1 => (format!("slurm_test{pid}"), format!("uid_0/job_{JOB}")),
            Version::V2 => (format!("test{pid}_slurmstepd.scope"), format!("job_{JOB}")),
        };
        let root = mount.join(root);
        let tree = Self {
            version,
            counts_memory: controller == Controller::Memory,
            job: root.join(job),
            mount,
            root,
        };
        tree.make("");
        Some(tree)
    }

    /// Where a cgroup below the job is.
    pub fn path(&self, below: &str) -> PathBuf {
        match (self.version, below.split_once('/')) {
            (Version::V2, Some((step, task))) => self.job.join(step).join("user").join(task),
            _ => self.job.join(below),
        }
    }

    /// Makes a cgroup below the job.
    pub fn make(&self, below: &str) -> PathBuf {
        let path = self.path(below);
        let above: Vec<_> = path.ancestors().skip(1).collect();
        for dir in above.into_iter().rev().filter(|dir| dir.starts_with(&self.root)) {
            fs::create_dir_all(dir).expect("a cgroup");
            let is_above_tasks = !dir.iter().any(|name| name.to_string_lossy().starts_with("task_"));
            if self.counts_memory && is_above_tasks {
                count_memory_below(dir);
            }
        }
        fs::create_dir_all(&path).expect("a cgroup");
        path
    }

    /// Limits the memory of a cgroup below the job.
    pub fn limit(&self, below: &str, bytes: u64) {
        let file = match self.version {
            Version::V1 => "memory.limit_in_bytes",
            Version::V2 => "memory.max",
        };
        fs::write(self.path(below).join(file), bytes.to_string()).expect("a limit");
    }

    /// What is charged to a cgroup below the job.
    pub fn usage(&self, below: &str) -> u64 {
        let file = match self.version {
            Version::V1 => "memory.usage_in_bytes",
            Version::V2 => "memory.current",
        };
        let text = fs::read_to_string(self.path(below).join(file)).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }

    /// Runs a workload in a cgroup below the job, which is made, to its end.
    pub fn run(&self, below: &str, arguments: &[&str]) -> ExitStatus {
        start_in(&self.make(below), program("workload").as_os_str(), arguments)
            .wait()
            .expect("an end")
    }

    /// Starts `sw-bpf attach` on the job, and waits for its first line, after which nothing is missed.
    pub fn attach(&self, record: &Path) -> Child {
        let mut command = sw_bpf(&["attach", "--json"]);
        command.arg(record).arg("--cgroup").arg(&self.job);
        let child = command.stdout(Stdio::null()).spawn().expect("sw-bpf starts");
        support::measure::wait_until("a line of the record", || {
            fs::metadata(record).is_ok_and(|file| file.len() > 0)
        });
        child
    }

    pub fn remove(&self, below: &str) {
        let path = self.path(below);
        let user = path.join("user");
        if user.exists() {
            fs::remove_dir(user).expect("an empty cgroup");
        }
        fs::remove_dir(path).expect("an empty cgroup");
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        remove_all(&self.root);
    }
}

/// Ends what a failed test left running.
fn remove_all(dir: &Path) {
    let left = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
    for pid in left.lines().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)) {
        let _ = kill_process(pid, Signal::KILL);
    }
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_all(&entry.path());
        }
    }
    // A process that has just ended can be in the way for a moment.
    for _ in 0..100 {
        if fs::remove_dir(dir).is_ok() {
            return;
        }
        sleep(Duration::from_millis(10));
    }
}

/// Starts a program in a cgroup.
pub fn start_in(cgroup: &Path, program: &OsStr, arguments: &[&str]) -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", "echo $$ > \"$0/cgroup.procs\" && exec \"$@\""]);
    command.arg(cgroup).arg(program).args(arguments);
    command
        .stdout(Stdio::piped())
        .stdin(Stdio::null())
        .spawn()
        .expect("a shell")
}

/// The last line of the record, after the end of the measurement.
pub fn summary(mut child: Child, path: &Path) -> Value {
    assert!(child.wait().expect("an end").success());
    record(path).pop().expect("a line")
}

pub fn step<'a>(summary: &'a Value, step_id: &str) -> &'a Value {
    let steps = summary["steps"].as_array().expect("steps");
    steps
        .iter()
        .find(|step| step["step_id"] == step_id)
        .unwrap_or_else(|| panic!("no step {step_id} in {steps:#?}"))
}

pub fn peak(row: &Value) -> u64 {
    row["needed_peak_bytes"]
        .as_u64()
        .unwrap_or_else(|| panic!("no peak: {row}"))
}

pub fn assert_holds(row: &Value, mib: u64) {
    let peak = peak(row);
    assert!(
        (mib * MIB..(mib + 2) * MIB).contains(&peak),
        "{peak} for {mib} MiB: {row}"
    );
}

/// Whether a row is known to the byte. Where an interrupt gave kernel memory back unseen, none is that was there then.
pub fn is_exact(row: &Value, summary: &Value) -> bool {
    row["error_bound_bytes"] == 0 || summary["loss"]["kernel_memory_misses"] != 0
}

/// A job whose batch step lives until it is ended.
pub fn batch(tree: &Tree) -> Child {
    start_in(&tree.make("step_batch/task_0"), OsStr::new("sleep"), &["60"])
}

pub fn end(mut child: Child) {
    child.kill().expect("a live process");
    assert_eq!(child.wait().expect("an end").signal(), Some(9));
}
