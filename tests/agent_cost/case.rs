//! One number of jobs, measured.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::node::Node;
use crate::tree::Tree;
use crate::usage::Usage;

/// How long births may take.
const PATIENCE: Duration = Duration::from_mins(3);
/// What is under way when the last record begins is over after this.
const REST: Duration = Duration::from_secs(3);

/// So many jobs.
pub struct Case {
    /// Jobs.
    pub jobs: usize,
    /// Tasks of the one step of each.
    pub tasks: usize,
}

/// The floor, and then as many cgroups as the aims name.
pub const CASES: [Case; 4] = [
    Case { jobs: 0, tasks: 0 },
    Case { jobs: 1, tasks: 8 },
    Case { jobs: 100, tasks: 8 },
    Case {
        jobs: 1_000,
        tasks: 8,
    },
];

/// What was measured of one.
pub struct Measured {
    /// Jobs.
    pub jobs: usize,
    /// Cgroups of all jobs, themselves among them.
    pub cgroups: usize,
    /// Of one CPU, from the birth of the jobs on.
    pub young: f64,
    /// The same when they are older.
    pub old: f64,
    /// Bytes of records a minute, in the two windows.
    pub record_bytes: [f64; 2],
    /// What is kept for the next agent, in bytes, at the end.
    pub saved_bytes: u64,
    /// At the end.
    pub memory: Usage,
}

impl Case {
    /// Starts the agent and the jobs, and measures.
    pub fn measure(&self, window: Duration, age: Duration) -> Result<Measured> {
        eprintln!("{} jobs", self.jobs);
        let mut node = Node::start()?;
        let tree = Tree::make(self.jobs, self.tasks)?;
        let begin = Instant::now();
        while node.records()? < self.jobs {
            ensure!(
                begin.elapsed() < PATIENCE,
                "the agent records {} of {} jobs: {}",
                node.records()?,
                self.jobs,
                node.told()
            );
            node.check()?;
            sleep(Duration::from_millis(100));
        }
        sleep(REST);
        let young = spent(&mut node, window)?;
        sleep(age.saturating_sub(begin.elapsed()));
        let old = spent(&mut node, window)?;
        Ok(Measured {
            jobs: self.jobs,
            cgroups: tree.cgroups(),
            young: young.0,
            old: old.0,
            record_bytes: [young.1, old.1],
            saved_bytes: node.saved_bytes()?,
            memory: node.usage()?,
        })
    }
}

/// Part of one CPU, and bytes of records a minute, in a window.
fn spent(node: &mut Node, window: Duration) -> Result<(f64, f64)> {
    let (cpu_before, bytes_before) = (node.usage()?.cpu, node.record_bytes()?);
    let begin = Instant::now();
    sleep(window);
    node.check()?;
    let (cpu, bytes) = (node.usage()?.cpu, node.record_bytes()?);
    let seconds = begin.elapsed().as_secs_f64();
    Ok((
        cpu.saturating_sub(cpu_before).as_secs_f64() / seconds,
        (bytes - bytes_before) as f64 / seconds * 60.0,
    ))
}
