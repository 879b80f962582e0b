//! Jobs as Slurm makes them on version 1: `slurm_NODE/uid_U/job_J/step_0/task_T`, with a process in each job.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};
use support::measure::program;
use swbpf::job::cgroup::{Controller, Hierarchies};

/// Users of the jobs.
const USERS: usize = 10;
/// One job in so many changes its memory all the time; the others sleep.
const BUSY: usize = 10;
/// Spikes of memory, each held for up to 200 ms.
const SPIKES: [&str; 9] = [
    "spikes",
    "--count",
    "1000000",
    "--min",
    "64K",
    "--max",
    "4M",
    "--max-hold-ms",
    "200",
];

/// All jobs. Dropped, they are gone.
pub struct Tree {
    /// In the hierarchies that count memory and CPU time.
    roots: Vec<PathBuf>,
    processes: Vec<Child>,
    cgroups: usize,
}

impl Tree {
    /// Makes `jobs` with so many `tasks` each.
    pub fn make(jobs: usize, tasks: usize) -> Result<Self> {
        let hierarchies = Hierarchies::detect()?;
        let name = format!("slurm_cost{}", std::process::id());
        let roots = [Controller::Memory, Controller::Cpuacct]
            .into_iter()
            .filter_map(|controller| hierarchies.mount_point_of(controller))
            .map(|mount| mount.join(&name))
            .collect();
        let mut tree = Self {
            roots,
            processes: Vec::new(),
            cgroups: 0,
        };
        for number in 0..jobs {
            tree.add(number, tasks)?;
        }
        Ok(tree)
    }

    /// Cgroups of all jobs.
    pub fn cgroups(&self) -> usize {
        self.cgroups
    }

    fn add(&mut self, number: usize, tasks: usize) -> Result<()> {
        let job = format!("uid_{}/job_{}", 50_000 + number % USERS, 1 + number);
        let step = format!("{job}/step_0");
        for root in &self.roots {
            for task in 0..tasks {
                make(&root.join(format!("{step}/task_{task}")))?;
            }
        }
        self.cgroups += 2 + tasks;
        let leaf = format!("{step}/task_0/cgroup.procs");
        let procs: Vec<PathBuf> = self.roots.iter().map(|root| root.join(&leaf)).collect();
        let mut command = if number.is_multiple_of(BUSY) {
            let mut busy = Command::new(program("workload"));
            busy.args(SPIKES);
            busy
        } else {
            let mut idle = Command::new("sleep");
            idle.arg("infinity");
            idle
        };
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let join = move || procs.iter().try_for_each(|procs| fs::write(procs, "0"));
        // SAFETY: opening and writing to files, in the only thread of the child.
        unsafe { command.pre_exec(join) };
        self.processes.push(command.spawn().context("start a process")?);
        Ok(())
    }
}

fn make(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("make {}", dir.display()))
}

impl Drop for Tree {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
        }
        for process in &mut self.processes {
            let _ = process.wait();
        }
        for root in &self.roots {
            if let Err(error) = remove(root) {
                eprintln!("agent_cost: remove {}: {error}", root.display());
            }
        }
    }
}

/// Removes a cgroup with all below it.
fn remove(dir: &Path) -> io::Result<()> {
    if !dir.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove(&entry.path())?;
        }
    }
    fs::remove_dir(dir)
}
