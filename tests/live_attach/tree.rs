//! A job's tree as Slurm makes it on version 1, with known programs in it.

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
use support::measure::{MIB, program};
use support::need_bpf;
use swbpf::job::cgroup::{Controller, Hierarchies, Version};

/// Number of a job that no Slurm of this machine gives.
const JOB: u32 = 4_000_000_001;

/// The directory of a job in the hierarchy of a controller; removed with all below it when dropped.
pub struct Tree {
    root: PathBuf,
    pub job: PathBuf,
}

impl Tree {
    /// `None` where jobs lie otherwise here; the test counts as skipped.
    pub fn new(controller: Controller) -> Option<Self> {
        if !need_bpf() {
            return None;
        }
        let hierarchies = Hierarchies::detect().expect("a cgroup hierarchy");
        if hierarchies.version_of(controller) != Some(Version::V1) {
            support::skipped("a tree of version 1 needs that version");
            return None;
        }
        let root = hierarchies.cgroup_at(Path::new("/")).expect("the root");
        let root = root.dir(controller).expect("a mount").path.clone();
        let root = root.join(format!("slurm_test{}", std::process::id()));
        let job = root.join(format!("uid_0/job_{JOB}"));
        fs::create_dir_all(&job).expect("a cgroup");
        Some(Self { root, job })
    }

    /// Makes a cgroup below the job.
    pub fn make(&self, below: &str) -> PathBuf {
        let path = self.job.join(below);
        fs::create_dir_all(&path).expect("a cgroup");
        path
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
        fs::remove_dir(self.job.join(below)).expect("an empty cgroup");
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
