//! An agent of its own, and the cgroups that it watches.

use std::fs;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use support::command::sw_bpf;
use support::measure::{MIB, Process, cgroup_below, own_cgroup, program, wait_until};
use swbpf::job::cgroup::{Cgroup, Hierarchies, OwnCgroup};
use swbpf::sampled::cgroupfs::CpuFiles;
use swbpf::snapshot::{Kind, Snapshot};
use tempfile::TempDir;

/// Memory of a process besides what it is to have, and page tables.
const FOOTPRINT: u64 = 2 * MIB;

/// What `sw-bpf agent` works with here. Dropped, all of it is gone.
pub struct Node {
    dir: TempDir,
    root: OwnCgroup,
    agent: Option<Child>,
}

/// A cgroup that the agent records.
pub struct Job {
    pub cgroup: Cgroup,
}

impl Node {
    /// With a BPF file system of its own.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let pins = dir.path().join("bpf");
        fs::create_dir(&pins).expect("a directory");
        run("mount", &["-t", "bpf", "bpf"], &pins);
        Self {
            dir,
            root: own_cgroup(),
            agent: None,
        }
    }

    /// A directory of the node.
    pub fn dir(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The command of the agent.
    pub fn command(&self) -> Command {
        let mut command = sw_bpf(&["agent"]);
        command
            .arg("--socket")
            .arg(self.dir("run/agent.sock"))
            .arg("--records")
            .arg(self.dir("jobs"))
            .arg("--pin-dir")
            .arg(self.dir("bpf/pins"))
            .arg("--watch")
            .arg(self.root.cgroup().path());
        command
    }

    /// Starts the agent, and waits until it records.
    pub fn start(&mut self) {
        self.start_as(&mut self.command());
    }

    /// The same, by this command.
    pub fn start_as(&mut self, command: &mut Command) {
        let before = self.told().matches("records the jobs").count();
        self.spawn_as(command);
        wait_until("the agent", || {
            self.told().matches("records the jobs").count() > before
        });
    }

    /// Starts the agent.
    pub fn spawn(&mut self) {
        self.spawn_as(&mut self.command());
    }

    /// Starts the agent by this command.
    pub fn spawn_as(&mut self, command: &mut Command) {
        let told = fs::File::options()
            .create(true)
            .append(true)
            .open(self.dir("told"))
            .expect("a file");
        let agent = command.stderr(told).stdin(Stdio::null()).spawn();
        self.agent = Some(agent.expect("sw-bpf starts"));
    }

    /// The directory of the cgroup that it watches.
    pub fn root(&self) -> PathBuf {
        self.root.cgroup().path().to_owned()
    }

    /// `sw-bpf` as a user of this id types it, where the agent is met here.
    pub fn client(&self, uid: u32, arguments: &[&str]) -> Command {
        let mut command = sw_bpf(arguments);
        command
            .env("SWBPF_SOCKET", self.dir("run/agent.sock"))
            .uid(uid)
            .gid(uid);
        command
    }

    /// The process id of the agent.
    pub fn pid(&self) -> u32 {
        self.agent.as_ref().expect("an agent").id()
    }

    /// CPU time that the agent has taken so far.
    pub fn cpu_seconds(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).expect("a live process");
        let fields = stat.rsplit_once(") ").expect("a name").1.split(' ');
        let ticks: u64 = { fields.skip(11).take(2) }
            .map(|field| field.parse::<u64>().expect("a number"))
            .sum();
        ticks as f64 / rustix::param::clock_ticks_per_second() as f64
    }

    /// Kills the agent in whatever it does.
    pub fn kill(&mut self) {
        if let Some(mut agent) = self.agent.take() {
            agent.kill().expect("a process of its own");
            agent.wait().expect("an end");
        }
    }

    /// Asks the agent to end.
    pub fn end(&mut self) -> Option<i32> {
        let mut agent = self.agent.take().expect("an agent");
        let pid = Pid::from_raw(agent.id().cast_signed()).expect("a process id");
        kill_process(pid, Signal::TERM).expect("a live process");
        agent.wait().expect("an end").code()
    }

    /// What the agents said so far.
    pub fn told(&self) -> String {
        fs::read_to_string(self.dir("told")).unwrap_or_default()
    }

    /// How many jobs the last agent took over, and how many of them had ended; `None` where it took over nothing. Jobs of Slurm on
    /// this host are among them.
    pub fn taken_over(&self) -> Option<(u64, u64)> {
        let told = self.told();
        let (_, told) = told.rsplit_once("took over ")?;
        let (line, _) = told.split_once('\n')?;
        let number = |text: &str| text.split(' ').next().and_then(|number| number.parse().ok());
        let (jobs, rest) = line.split_once(" from the agent before")?;
        let ended = match rest.strip_prefix(", ") {
            Some(ended) => number(ended.strip_suffix(" ended meanwhile")?)?,
            None => 0,
        };
        Some((number(jobs)?, ended))
    }

    /// Makes a cgroup that is to be recorded.
    pub fn job(&self, name: &str) -> Job {
        let path = cgroup_below(self.root.cgroup().path(), name);
        let hierarchies = Hierarchies::detect().expect("a hierarchy");
        Job {
            cgroup: hierarchies.cgroup_at(&path).expect("a cgroup"),
        }
    }

    /// The lines of a record; one that is torn is left out.
    pub fn lines(&self, name: &str) -> Vec<Snapshot> {
        let mut text = String::new();
        let file = fs::File::open(self.dir("jobs").join(format!("{name}.jsonl")));
        if let Ok(mut file) = file {
            file.read_to_string(&mut text).expect("text");
        }
        text.lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// Waits until a record has a line.
    pub fn wait_for_line(&self, name: &str) {
        wait_until("a line of the record", || !self.lines(name).is_empty());
    }

    /// Waits until what the next agent is to go on from is kept: it comes after the line.
    pub fn wait_for_state(&self, job: &Job) {
        let file = format!("run/left/{}.json", job.cgroup.id());
        wait_until("the state of a job", || self.dir(&file).exists());
    }

    /// The last line of a record, once it is the summary.
    pub fn summary(&self, name: &str) -> Snapshot {
        let last = || self.lines(name).pop().filter(|last| last.kind == Kind::Summary);
        wait_until(&format!("the summary of {name} ({})", self.told()), || {
            last().is_some()
        });
        last().expect("it was there")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
        run("umount", &["-l"], &self.dir("bpf"));
    }
}

impl Job {
    /// Starts a workload in it.
    pub fn start(&self, arguments: &[&str]) -> Process {
        let procs = self.cgroup.path().join("cgroup.procs");
        let mut command = Command::new(program("workload"));
        command.args(arguments);
        // SAFETY: opening and writing to a file, in the only thread of the child.
        unsafe { command.pre_exec(move || fs::write(&procs, "0")) };
        Process::start(&mut command)
    }

    /// Runs one to its end.
    pub fn run(&self, arguments: &[&str]) {
        let (status, _) = self.start(arguments).finish();
        assert!(status.success(), "{status}");
    }

    /// CPU time by the kernel's own accounting; `None` where no hierarchy that has the cgroup counts it.
    pub fn used_ns(&self) -> Option<u64> {
        CpuFiles::read(&self.cgroup).usage_ns
    }

    /// Removes it.
    pub fn remove(&self) {
        let path = self.cgroup.path();
        wait_until("the end of the cgroup", || fs::remove_dir(path).is_ok());
    }
}

/// That the peak is `size`, that of the process about it, and the bound that is told. There is none only where events were lost
/// and the cgroup was gone before its files could be compared.
pub fn check_peak(summary: &Snapshot, size: u64) {
    let peak = summary.memory.needed_peak_bytes.expect("a peak");
    let bound = summary.memory.error_bound_bytes.unwrap_or_else(|| {
        let loss = summary.loss.expect("what was lost");
        assert_ne!(loss.kernel_memory_misses, Some(0), "{:?}", summary.unknown);
        0
    });
    assert!(
        (size - bound.min(size)..=size + FOOTPRINT + bound).contains(&peak),
        "{peak} +- {bound}, not {size}"
    );
}

/// That the time on CPUs is that of the kernel's own accounting, where that is known of the cgroup.
pub fn check_busy(summary: &Snapshot, used_ns: Option<u64>) {
    let busy = summary.cpu.busy_seconds.expect("a time");
    if let Some(used_ns) = used_ns {
        let used = used_ns as f64 / 1e9;
        assert!(
            (busy - used).abs() <= 0.02 + used * 0.05,
            "{busy} s, not {used} s"
        );
    }
}

fn run(program: &str, arguments: &[&str], path: &Path) {
    let status = Command::new(program).args(arguments).arg(path).status();
    assert!(status.expect("the program starts").success(), "{program}");
}
