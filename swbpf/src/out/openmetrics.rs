//! Metrics of all jobs and of the agent itself, as Prometheus and its kin read them.
//!
//! `prometheus-client` writes one of the two formats, and its metrics are cells that are counted up, each there from then on. Here
//! every number comes from a snapshot and is left out where it is not known, and the documentation is made from the same tables.

mod families;
mod text;

use std::collections::BTreeSet;

pub use families::{Described, Kind, described};
use text::Text;

use super::escape;
use crate::snapshot::{Loss, Snapshot, Step};

/// Steps by number that have series: those below this one, beside `batch`, `extern` and `interactive`. A job can start any
/// number of steps, and each would be a series for ever.
pub const NUMBERED_STEPS: u32 = 32;
/// Longest value of a label, in characters.
const MAX_LABEL: usize = 256;

/// How they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus' text format 0.0.4: all that `node_exporter` reads.
    Prometheus,
}

impl Format {
    /// The media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// What the series of a target are told apart by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// The raw id of a Slurm job, as its directory has it: it does not change while the job runs.
    Job(String),
    /// Directory of a cgroup that is no job.
    Cgroup(String),
}

impl Whose {
    fn label(&self) -> (&'static str, String) {
        match self {
            Self::Job(id) => ("jobid", escape::head(id, MAX_LABEL)),
            Self::Cgroup(path) => ("cgroup", escape::tail(path, MAX_LABEL)),
        }
    }
}

/// One target at one moment.
#[derive(Debug, Clone)]
pub struct JobSample {
    label: (&'static str, String),
    /// Without what is large and has no series.
    snapshot: Snapshot,
    steps_left_out: Option<u64>,
    window_peak_bytes: Option<u64>,
}

impl JobSample {
    /// Whose numbers they are, and all that is known of it but for the highest needed memory within a window.
    pub fn new(whose: &Whose, mut snapshot: Snapshot) -> Self {
        snapshot.memory.levels = None;
        snapshot.memory.timeline = None;
        snapshot.cpu.per_cpu_busy_seconds = None;
        snapshot.unknown.clear();
        let mut steps_left_out = None;
        if let Some(steps) = &mut snapshot.steps {
            let all = steps.len();
            // After a requeue one of the same name can be there twice: the last one counts.
            let mut seen = BTreeSet::new();
            steps.reverse();
            steps.retain(|step| has_series(step) && seen.insert(step.step_id.clone()));
            steps.reverse();
            for step in steps.iter_mut() {
                step.tasks = Vec::new();
            }
            steps_left_out = Some((all - steps.len()) as u64);
        }
        Self {
            label: whose.label(),
            snapshot,
            steps_left_out,
            window_peak_bytes: None,
        }
    }

    /// With the highest needed memory within the window of the reader; `None` where that is not known whole.
    #[must_use]
    pub fn with_window_peak(self, window_peak_bytes: Option<u64>) -> Self {
        Self {
            window_peak_bytes,
            ..self
        }
    }

    fn labels<'a>(&'a self, step: Option<&'a Step>) -> Vec<(&'static str, &'a str)> {
        let step = step.map(|step| ("step", step.step_id.as_str()));
        [(self.label.0, self.label.1.as_str())]
            .into_iter()
            .chain(step)
            .collect()
    }
}

/// The agent at one moment.
#[derive(Debug, Clone)]
pub struct AgentSample {
    /// Version of sw-bpf.
    pub version: String,
    /// Kernel release.
    pub kernel: String,
    /// Kind of hook that tells changes of memory.
    pub rung: String,
    /// When the agent started, since 1970.
    pub started_seconds: f64,
    /// Jobs that are measured.
    pub jobs: u64,
    /// Jobs that could not be read, or ended in the window and were too many.
    pub jobs_left_out: u64,
    /// Jobs whose last line could not be written.
    pub records_failing: u64,
    /// How far back the window of this reader reaches at least.
    pub window_seconds: f64,
    /// Places in the kernel's maps, by what they are for.
    pub slots: Vec<SlotUse>,
    /// What was lost since the programs were loaded; `rebased` is of single jobs, and not told.
    pub loss: Loss,
    /// Jobs that found no place.
    pub without_target: u64,
    /// Time in the programs while they were timed.
    pub timed_run_seconds: f64,
    /// Runs of them then.
    pub timed_runs: u64,
    /// How long they were timed.
    pub timed_seconds: f64,
    /// CPU time of the agent.
    pub cpu_seconds: f64,
    /// Resident set of the agent.
    pub resident_bytes: Option<u64>,
}

/// Places in the kernel's maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotUse {
    /// For whom: `job` or `below`, its steps and tasks.
    pub of: &'static str,
    /// How many are in use.
    pub used: u64,
    /// How many there are.
    pub room: u64,
}

/// All of it. Of two targets with the same label the first one is told.
pub fn text(jobs: &[JobSample], agent: &AgentSample, format: Format) -> String {
    let mut text = Text::new(format);
    let mut seen = BTreeSet::new();
    let told: Vec<&JobSample> = jobs.iter().filter(|job| seen.insert(&job.label)).collect();
    let agent = AgentTold {
        agent,
        left_out: agent.jobs_left_out + (jobs.len() - told.len()) as u64,
    };
    for family in &families::agent() {
        text.family(family);
        text.samples(family, &agent, &[]);
    }
    for family in &families::JOB {
        text.family(family);
        for job in &told {
            text.samples(family, job, &job.labels(None));
        }
    }
    for family in &families::STEP {
        text.family(family);
        for job in &told {
            for step in job.snapshot.steps.iter().flatten() {
                text.samples(family, &step.usage, &job.labels(Some(step)));
            }
        }
    }
    text.end()
}

/// The agent as it is told.
struct AgentTold<'a> {
    agent: &'a AgentSample,
    left_out: u64,
}

fn has_series(step: &Step) -> bool {
    match step.step_id.parse::<u32>() {
        Ok(number) => number < NUMBERED_STEPS,
        Err(_) => ["batch", "extern", "interactive"].contains(&step.step_id.as_str()),
    }
}
