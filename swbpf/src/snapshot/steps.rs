//! The steps and tasks of a Slurm job.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Source;

/// One step of a Slurm job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// What stands behind the job id: `batch`, `extern`, `interactive`, or a number.
    pub step_id: String,
    /// The step as its limit counts it, slurmstepd among it.
    #[serde(flatten)]
    pub usage: Usage,
    /// Needed memory at this moment that belongs to none of its running tasks: slurmstepd's own, and what tasks that ended left
    /// behind.
    pub slurmstepd_bytes: Option<u64>,
    /// Its tasks, where they have cgroups of their own.
    pub tasks: Vec<StepTask>,
}

/// One task of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepTask {
    /// Number of the task within the step on this node.
    pub task_id: u32,
    /// What it used.
    #[serde(flatten)]
    pub usage: Usage,
}

/// What a step or a task used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Source of `needed_bytes` and `needed_peak_bytes`.
    pub source: Source,
    /// The kernel's id of its cgroup.
    pub cgroup_id: u64,
    /// When it began, RFC 3339, UTC; `null` where it was there before the measurement.
    pub began_at: Option<String>,
    /// When its last process ended, RFC 3339, UTC; `null` while one is there.
    pub ended_at: Option<String>,
    /// How long it was measured.
    pub seconds: f64,
    /// Needed memory at this moment; `null` once it has ended.
    pub needed_bytes: Option<u64>,
    /// Highest needed memory while it was measured.
    pub needed_peak_bytes: Option<u64>,
    /// When that was reached, RFC 3339, UTC.
    pub needed_peak_at: Option<String>,
    /// How far both can be from the truth, either way.
    pub error_bound_bytes: Option<u64>,
    /// CPU time by wall time: in a progress line within the window, else while it was measured.
    pub busy_cores: Option<f64>,
    /// CPU time while it was measured.
    pub busy_seconds: Option<f64>,
    /// Processes begun while it was measured, those moved in at their start not among them.
    pub processes_started: Option<u64>,
    /// Processes ended while it was measured.
    pub processes_ended: Option<u64>,
    /// Processes killed for want of memory while it was measured.
    pub oom_kills: Option<u64>,
}
