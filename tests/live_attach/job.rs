//! A job's tree as Slurm makes it on version 1, with known programs in it: rows for steps and tasks, kills, the end.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::command::{answer, output, record, sw_bpf};
use support::measure::{MIB, program};
use support::need_bpf;
use swbpf::job::cgroup::{Controller, Hierarchies, Version};

/// Number of a job that no Slurm of this machine gives.
const JOB: u32 = 4_000_000_001;

/// The directory of a job in the hierarchy of a controller; removed with all below it when dropped.
struct Tree {
    root: PathBuf,
    job: PathBuf,
}

impl Tree {
    /// `None` where jobs lie otherwise here; the test counts as skipped.
    fn new(controller: Controller) -> Option<Self> {
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
    fn make(&self, below: &str) -> PathBuf {
        let path = self.job.join(below);
        fs::create_dir_all(&path).expect("a cgroup");
        path
    }

    /// Runs a workload in a cgroup below the job, which is made, to its end.
    fn run(&self, below: &str, arguments: &[&str]) -> ExitStatus {
        start_in(&self.make(below), program("workload").as_os_str(), arguments)
            .wait()
            .expect("an end")
    }

    /// Starts `sw-bpf attach` on the job, and waits for its first line, after which nothing is missed.
    fn attach(&self, record: &Path) -> Child {
        let mut command = sw_bpf(&["attach", "--json"]);
        command.arg(record).arg("--cgroup").arg(&self.job);
        let child = command.stdout(Stdio::null()).spawn().expect("sw-bpf starts");
        support::measure::wait_until("a line of the record", || {
            fs::metadata(record).is_ok_and(|file| file.len() > 0)
        });
        child
    }

    fn remove(&self, below: &str) {
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
fn start_in(cgroup: &Path, program: &OsStr, arguments: &[&str]) -> Child {
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
fn summary(mut child: Child, path: &Path) -> Value {
    assert!(child.wait().expect("an end").success());
    record(path).pop().expect("a line")
}

fn step<'a>(summary: &'a Value, step_id: &str) -> &'a Value {
    let steps = summary["steps"].as_array().expect("steps");
    steps
        .iter()
        .find(|step| step["step_id"] == step_id)
        .unwrap_or_else(|| panic!("no step {step_id} in {steps:#?}"))
}

fn peak(row: &Value) -> u64 {
    row["needed_peak_bytes"]
        .as_u64()
        .unwrap_or_else(|| panic!("no peak: {row}"))
}

fn assert_holds(row: &Value, mib: u64) {
    let peak = peak(row);
    assert!(
        (mib * MIB..(mib + 2) * MIB).contains(&peak),
        "{peak} for {mib} MiB: {row}"
    );
}

/// Whether a row is known to the byte. Where an interrupt gave kernel memory back unseen, none is that was there then.
fn is_exact(row: &Value, summary: &Value) -> bool {
    row["error_bound_bytes"] == 0 || summary["loss"]["kernel_memory_misses"] != 0
}

/// A job whose batch step lives until it is ended.
fn batch(tree: &Tree) -> Child {
    start_in(&tree.make("step_batch/task_0"), OsStr::new("sleep"), &["60"])
}

fn end(mut child: Child) {
    child.kill().expect("a live process");
    assert_eq!(child.wait().expect("an end").signal(), Some(9));
}

/// Four tasks that spike one after the other: each has its own peak, and the job's is that of the fattest, not their sum.
#[test]
fn each_step_and_task_has_its_own_peak() {
    let Some(tree) = Tree::new(Controller::Memory) else {
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("record");
    let script = batch(&tree);
    let attached = tree.attach(&path);
    let sizes = [("task_0", 40), ("task_1", 200), ("task_2", 40), ("task_3", 60)];
    for (task, mib) in sizes {
        let below = format!("step_0/{task}");
        let size = format!("{mib}M");
        assert!(
            tree.run(&below, &["anon", "--size", &size, "--hold-ms", "5"])
                .success()
        );
    }
    for (task, _) in sizes {
        tree.remove(&format!("step_0/{task}"));
    }
    tree.remove("step_0");
    end(script);
    let summary = summary(attached, &path);
    let step_0 = step(&summary, "0");
    let tasks = step_0["tasks"].as_array().expect("tasks");
    assert_eq!(tasks.len(), sizes.len());
    for (task, (_, mib)) in tasks.iter().zip(sizes) {
        assert_holds(task, mib);
        assert!(is_exact(task, &summary), "{task}");
    }
    assert_holds(step_0, 200);
    let job = summary["memory"]["needed_peak_bytes"].as_u64().expect("a peak");
    // The batch script's own is beside it.
    assert!((200 * MIB..203 * MIB).contains(&job), "{job}");
    let spent = |row: &Value| row["busy_seconds"].as_f64().expect("CPU time");
    let of_tasks: f64 = tasks.iter().map(spent).sum();
    assert!(
        (of_tasks - spent(step_0)).abs() < 1e-3,
        "{of_tasks} of {}",
        spent(step_0)
    );
}

/// Steps that begin while sw-bpf attaches, each living some 50 ms: every one that begins after the target was found has a row,
/// and none is in doubt.
#[test]
fn no_step_is_missed_that_begins_while_it_attaches() {
    let Some(tree) = Tree::new(Controller::Memory) else {
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("record");
    let script = batch(&tree);
    let mut command = sw_bpf(&["attach", "--json"]);
    command.arg(&path).arg("--cgroup").arg(&tree.job);
    let attached = command.stdout(Stdio::null()).spawn().expect("sw-bpf starts");
    let mut steps = 0;
    // Until some have begun after the first line, which comes a second after the begin.
    let mut after = 0;
    while after < 20 {
        let name = format!("step_{steps}");
        assert!(
            tree.run(
                &format!("{name}/task_0"),
                &["anon", "--size", "8M", "--hold-ms", "1"]
            )
            .success()
        );
        tree.remove(&format!("{name}/task_0"));
        tree.remove(&name);
        steps += 1;
        after += u32::from(fs::metadata(&path).is_ok_and(|file| file.len() > 0));
    }
    end(script);
    let summary = summary(attached, &path);
    let told = summary["steps"].as_array().expect("steps");
    let first = told
        .iter()
        .filter(|step| !step["began_at"].is_null())
        .filter_map(|step| step["step_id"].as_str()?.parse::<u32>().ok())
        .min()
        .expect("a step that began under watch");
    assert!(first < steps, "{first} of {steps}");
    for number in first..steps {
        let row = step(&summary, &number.to_string());
        assert_holds(row, 8);
        assert_holds(&row["tasks"][0], 8);
        assert!(is_exact(row, &summary) && row["ended_at"].is_string(), "{row}");
    }
    assert_eq!(summary["loss"]["without_row"], 0);
}

/// Nested limits: the level that was hit is named, with what was needed there.
#[test]
fn a_kill_names_whose_limit_was_hit() {
    let Some(tree) = Tree::new(Controller::Memory) else {
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("record");
    let script = batch(&tree);
    let attached = tree.attach(&path);
    let mut expected = Vec::new();
    for (below, limited, of, mib) in [
        ("step_0/task_0", "step_0/task_0", "task", 16),
        ("step_1/task_0", "step_1", "step", 24),
        ("step_2/task_0", "", "job", 48),
    ] {
        tree.make(below);
        let limit = tree.job.join(limited).join("memory.limit_in_bytes");
        fs::write(&limit, format!("{mib}M")).expect("a limit");
        let status = tree.run(below, &["anon", "--size", "200M", "--hold-ms", "1"]);
        assert_eq!(status.signal(), Some(9), "{below}");
        expected.push((of, mib * MIB, tree.job.join(limited)));
    }
    // A child is killed, and its parent goes on.
    let parent = start_in(
        &tree.make("step_0/task_1"),
        OsStr::new("sh"),
        &[
            "-c",
            "\"$0\" anon --size 200M; sleep 0.5",
            program("workload").to_str().expect("text"),
        ],
    );
    assert!(parent.wait_with_output().expect("an end").status.success());
    end(script);
    let summary = summary(attached, &path);
    let kills = summary["oom_kills"].as_array().expect("kills");
    assert_eq!(kills.len(), 4, "{kills:#?}");
    for (kill, (of, limit, dir)) in kills.iter().zip(expected) {
        assert_eq!(kill["limit_of"], of, "{kill}");
        assert_eq!(kill["limit_bytes"], limit);
        assert_eq!(
            kill["limit_cgroup"],
            dir.to_str().expect("text").trim_end_matches('/')
        );
        let needed = kill["needed_bytes"].as_u64().expect("a number");
        assert!((limit - MIB..=limit).contains(&needed), "{kill}");
        assert_eq!(
            (&kill["task_id"], &kill["victim_is_main"]),
            (&0.into(), &true.into())
        );
        assert_eq!(kill["victim"]["comm"], "workload");
    }
    let child = &kills[3];
    assert_eq!(
        (&child["victim_is_main"], &child["limit_of"]),
        (&false.into(), &"job".into())
    );
    assert_eq!((&child["step_id"], &child["task_id"]), (&"0".into(), &1.into()));
    assert!(
        child["went_on_seconds"].as_f64().expect("a span") > 0.4,
        "{child}"
    );
    assert_eq!(step(&summary, "0")["oom_kills"], 2);
}

/// A hundred kills in a row: a hundred records, each within 1 MiB of the limit.
#[test]
fn no_kill_of_a_hundred_is_missed() {
    let Some(tree) = Tree::new(Controller::Memory) else {
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("record");
    let script = batch(&tree);
    let attached = tree.attach(&path);
    let limit = 32 * MIB;
    let task = tree.make("step_0/task_0");
    fs::write(tree.job.join("step_0/memory.limit_in_bytes"), limit.to_string()).expect("a limit");
    for _ in 0..100 {
        let mut killed = start_in(&task, program("workload").as_os_str(), &["anon", "--size", "64M"]);
        assert_eq!(killed.wait().expect("an end").signal(), Some(9));
    }
    end(script);
    let summary = summary(attached, &path);
    let kills = summary["oom_kills"].as_array().expect("kills");
    assert_eq!(kills.len(), 100);
    for kill in kills {
        assert_eq!(
            (&kill["limit_of"], &kill["limit_bytes"]),
            (&"step".into(), &limit.into())
        );
        let needed = kill["needed_bytes"].as_u64().expect("a number");
        assert!((limit - MIB..=limit).contains(&needed), "{kill}");
    }
    assert_eq!(step(&summary, "0")["oom_kills"], 100);
}

/// A directory that a user left behind keeps the job's: the end is that no process is left.
#[test]
fn the_end_is_that_the_last_process_has_left() {
    let Some(tree) = Tree::new(Controller::Memory) else {
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("record");
    let script = batch(&tree);
    tree.make("step_batch/task_0/left/behind");
    let attached = tree.attach(&path);
    end(script);
    let summary = summary(attached, &path);
    assert!(tree.job.exists());
    let row = step(&summary, "batch");
    assert_eq!(row["ended_at"].is_string(), true, "{row}");
    assert!(
        row["tasks"].as_array().expect("tasks").len() == 1,
        "nested ones are no tasks: {row}"
    );
}

/// Started inside of the job, sw-bpf moves out: nothing of it is counted, and nothing of it is left there.
#[test]
fn its_own_memory_is_left_out_where_it_runs_inside() {
    let Some(tree) = Tree::new(Controller::Memory) else {
        return;
    };
    let script = batch(&tree);
    let own = tree.make("step_5/task_0");
    let job = tree.job.to_str().expect("text");
    for (source, most) in [("kernel", MIB), ("sampled", 2 * MIB)] {
        let child = start_in(
            &own,
            program("sw-bpf").as_os_str(),
            &["--once", "--json", "--force-source", source, "--cgroup", job],
        );
        let answer = answer(&child.wait_with_output().expect("an end"));
        assert_eq!(answer["target"]["own_processes"], "left", "{source}");
        let needed = answer["memory"]["needed_bytes"].as_u64().expect("a number");
        // Of sh, sleep, and what the kernel keeps of the cgroups; sw-bpf alone holds several MiB with its programs' maps.
        assert!(needed < most, "{source}: {needed}");
        assert_eq!(answer["processes"]["alive"], 1);
    }
    let left = Path::new("/sys/fs/cgroup/memory");
    let left = fs::read_dir(left).expect("the root").flatten();
    let left: Vec<_> = left
        .map(|entry| entry.file_name())
        .filter(|name| name.to_string_lossy().starts_with("sw-bpf-attach"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    end(script);
}

/// Slurm without memory cgroups: time is exact, memory is that of the processes, and what to set is named.
#[test]
fn without_a_memory_cgroup_the_processes_tell() {
    let Some(tree) = Tree::new(Controller::Freezer) else {
        return;
    };
    let mut holder = start_in(
        &tree.make("step_0"),
        program("workload").as_os_str(),
        &["anon", "--size", "50M", "--hold-ms", "4000"],
    );
    support::measure::wait_until("memory", || {
        let mut command = sw_bpf(&["--once", "--json", "--window", "300ms", "--cgroup"]);
        let answer = answer(&output(command.arg(&tree.job)));
        let memory = &answer["memory"];
        assert_eq!(
            (&answer["source"], &memory["source"]),
            (&"kernel".into(), &"sampled".into())
        );
        assert_eq!(answer["cpu"]["source"], "kernel");
        let reason = answer["unknown"]["memory.error_bound_bytes"]
            .as_str()
            .expect("a reason");
        assert!(reason.contains("ConstrainRAMSpace"), "{reason}");
        let row = &step(&answer, "0")["needed_bytes"];
        let of_job = memory["needed_bytes"].as_u64().unwrap_or(0);
        let of_step = row.as_u64().unwrap_or(0);
        let is_whole = |bytes| (50 * MIB..52 * MIB).contains(&bytes);
        is_whole(of_job) && is_whole(of_step)
    });
    assert!(holder.wait().expect("an end").success());
}
