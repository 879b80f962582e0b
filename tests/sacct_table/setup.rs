//! Ways of gathering, and a cluster for each.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use support::command::sw_bpf;
use support::measure::Process;
use support::slurm::{Config, Gather, JobId, Row, Slurm, cgroups};
use swbpf::snapshot::{Kind, Snapshot, Source};

use crate::figures::{Figures, Seen};
use crate::hooks::Hooks;
use crate::jobs::Job;

/// A way in which Slurm looks at the memory of jobs.
#[derive(Debug, PartialEq, Eq)]
pub struct Setup {
    gather: Gather,
    seconds: u32,
}

/// All that are compared; 30 s is the default of Slurm.
pub static SETUPS: [Setup; 4] = [
    Setup::new(Gather::Linux, 30),
    Setup::new(Gather::Linux, 1),
    Setup::new(Gather::Cgroup, 30),
    Setup::new(Gather::Cgroup, 1),
];

/// A cluster that runs.
pub struct Cluster {
    // Before the scripts that it may still run.
    pub slurm: Slurm,
    hooks: Hooks,
}

impl Setup {
    const fn new(gather: Gather, seconds: u32) -> Self {
        Self { gather, seconds }
    }

    /// As the table names it.
    pub fn name(&self) -> String {
        format!("{}, {} s", self.gather.name(), self.seconds)
    }

    /// Starts a cluster that gathers in this way.
    pub fn start(&self) -> Result<Cluster> {
        let hooks = Hooks::write()?;
        let slurm = Slurm::start(&Config {
            accounting: true,
            gather: self.gather,
            gather_seconds: self.seconds,
            prolog: Some(hooks.path("prolog")),
            epilog: Some(hooks.path("epilog")),
            ..Config::default()
        });
        Ok(Cluster { slurm, hooks })
    }
}

impl Cluster {
    /// Runs a job to its end, and gives what everyone says of it.
    pub fn measure(&self, job: &Job) -> Result<Figures> {
        let id = self
            .slurm
            .sbatch(&format!("#!/bin/sh\n{}\n", job.script), job.options);
        self.hooks.wait_made(id)?;
        let path = self.hooks.path(&format!("record.{id}"));
        let dir = self.slurm.job_cgroup(id);
        let mut command = sw_bpf(&["attach", "--cgroup"]);
        command.arg(&dir).arg("--json").arg(&path);
        let mut attached = Process::start(&mut command);
        attached.line();
        let early: Vec<_> = cgroups::tree(&dir)
            .iter()
            .flat_map(|dir| cgroups::processes(dir))
            .collect();
        ensure!(early.is_empty(), "the job began before it was watched: {early:?}");
        self.hooks.let_start(id)?;
        let state = self.slurm.wait_end(id);
        ensure!(state == job.state, "{state}: {}", self.slurm.output(id));
        let (status, told) = attached.finish();
        ensure!(status.success(), "sw-bpf attach: {status}: {told}");
        Ok(Figures {
            ours: seen(&path)?,
            counter_bytes: self.hooks.counter_bytes(id)?,
            max_rss_bytes: self.max_rss_bytes(id),
        })
    }

    /// The highest of the job's steps.
    fn max_rss_bytes(&self, job: JobId) -> Option<u64> {
        let rows = self.slurm.sacct(job, &["MaxRSS"]);
        rows.iter().filter_map(Row::max_rss_bytes).max()
    }
}

/// What the last line of a record says.
fn seen(path: &Path) -> Result<Seen> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let last = text.lines().last().context("an empty record")?;
    let summary: Snapshot = serde_json::from_str(last)?;
    let memory = &summary.memory;
    ensure!(
        summary.kind == Kind::Summary && memory.source == Source::Kernel,
        "{:?} by {:?}",
        summary.kind,
        memory.source
    );
    Ok(Seen {
        needed_peak_bytes: memory.needed_peak_bytes.context("no peak")?,
        error_bound_bytes: memory.error_bound_bytes,
        from_start: summary.coverage.from_start,
    })
}
