//! The waist: everything known of one target at one moment.
//!
//! Nothing before this file knows of screens, nothing after it knows of kernels. The doc comment of each field is its
//! description in `docs/schema.json` and `docs/fields.md`; the unit stands in the name. A number that is not known is
//! `null`, and [`Snapshot::unknown`] says why under its dotted key.

mod gathered;
mod job;
mod listed;
mod memory;
mod steps;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use gathered::{Gathered, GatheredKind, NodeAnswer, Totals};
pub use job::{Gres, Job, NodePart, Requested};
pub use listed::{Entry, JobState, Listing, ListingKind};
pub use memory::{Gap, High, Level, Memory, Peak, SampledPeak, Timeline, TopProcess};
pub use steps::{Step, StepTask, Usage};

/// Version of this layout: raised when a key changes its meaning or goes.
pub const SCHEMA_VERSION: u32 = 1;

/// Where a number comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Counted in the kernel, event by event.
    Kernel,
    /// Read from files of the kernel at intervals; what happened between two readings is not seen.
    Sampled,
    /// Not to be had here; `unknown` says why.
    Unavailable,
}

/// Everything known of one target at one moment: one line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// Version of this layout.
    pub schema_version: u32,
    /// Version of sw-bpf.
    pub tool_version: String,
    /// What this line is.
    pub kind: Kind,
    /// Moment of the reading, RFC 3339, UTC.
    pub timestamp: String,
    /// Name of this host.
    pub hostname: String,
    /// Slurm job id, as Slurm shows it: `123`, `123_4`, `123+1`; the raw id where Slurm was not asked.
    pub job_id: Option<String>,
    /// Slurm step id, where the target is one step.
    pub step_id: Option<String>,
    /// The Slurm job, as Slurm itself describes it.
    pub job: Option<Job>,
    /// What is measured.
    pub target: Target,
    /// Source of the headline numbers: `kernel`, or `sampled` where the kernel programs could not be used.
    pub source: Source,
    /// Length of the window that rates and maxima of this line cover.
    pub window_seconds: f64,
    /// Time since the target began, where its begin is known.
    pub elapsed_seconds: Option<f64>,
    /// From when to when the target was measured.
    pub coverage: Coverage,
    /// Memory.
    pub memory: Memory,
    /// Processors.
    pub cpu: Cpu,
    /// Processes.
    pub processes: Processes,
    /// Steps of the Slurm job with their tasks: in a progress line those that run and those that have ended since the one
    /// before, else all.
    pub steps: Option<Vec<Step>>,
    /// Ended steps and tasks that are left out of `steps`: of very many, those with the lowest peaks.
    pub steps_left_out: Option<u64>,
    /// Kills for want of memory, oldest first.
    pub oom_kills: Vec<OomKill>,
    /// Kills that were counted and are not in `oom_kills`, since their notices found the ring buffer full.
    pub oom_kills_untold: Option<u64>,
    /// Graphics processors of the target.
    pub gpus: Option<Vec<serde_json::Value>>,
    /// How the command ended; only in the summary of `run`.
    pub exit: Option<Exit>,
    /// How the numbers were obtained.
    pub probes: Probes,
    /// What was lost; only where the kernel programs count.
    pub loss: Option<Loss>,
    /// What measuring cost.
    pub overhead: Overhead,
    /// For each `null` above: its dotted key and the reason; `[]` stands for the elements of a list.
    pub unknown: BTreeMap<String, String>,
}

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The answer of `--once`.
    Once,
    /// A reading on the way; maxima are those since the begin of the measurement.
    Progress,
    /// The last line of a record.
    Summary,
}

/// What is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// How the target was named.
    pub kind: TargetKind,
    /// Directory of its cgroup in the hierarchy that counts memory, else in the one that is measured.
    pub cgroup: String,
    /// Inode number of that directory, which is the kernel's cgroup id.
    pub cgroup_id: u64,
    /// Version of the hierarchy that counts memory: 1 or 2.
    pub cgroup_version: Option<u8>,
    /// The process given by `--pid`, or the command's own.
    pub pid: Option<u32>,
    /// Whether processes of sw-bpf itself are among the numbers.
    pub own_processes: OwnProcesses,
    /// The command of `run` with its arguments; bytes that are not UTF-8 are replaced.
    pub command: Option<Vec<String>>,
}

/// Where sw-bpf itself ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OwnProcesses {
    /// Outside of the target.
    Elsewhere,
    /// It was started inside of the target and moved out before it measured: it is not among the numbers.
    Left,
    /// Inside of the target: its own memory and CPU time were read and taken off each reading.
    TakenOff,
    /// Inside of the target: its own memory and CPU time are among the numbers.
    Counted,
}

/// How the target was named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// By `run -- COMMAND`.
    Command,
    /// By the id of a Slurm job or step.
    Job,
    /// By `--cgroup PATH`.
    Cgroup,
    /// By `--pid PID`: the cgroup of that process.
    Pid,
}

/// From when to when the target was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Coverage {
    /// First moment covered, RFC 3339, UTC.
    pub from: String,
    /// Last moment covered, RFC 3339, UTC.
    pub to: String,
    /// Length of the covered span.
    pub seconds: f64,
    /// Whether the target was measured from its first instruction.
    pub from_start: bool,
    /// Why from that moment on.
    #[serde(default)]
    pub reason: String,
}

/// Processors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cpu {
    /// Source of `busy_cores`, `busy_seconds`, `per_cpu_busy_seconds` and `concurrency`.
    pub source: Source,
    /// CPU time by wall time, within the window.
    pub busy_cores: Option<f64>,
    /// CPU time within the coverage.
    pub busy_seconds: Option<f64>,
    /// Processors that the target may use, by its cpuset and quota.
    pub cores_allocated: Option<f64>,
    /// `busy_cores` in percent of `cores_allocated`.
    pub usage_percent: Option<f64>,
    /// CPU time since the cgroup was made, by the kernel's own accounting: `cpuacct.usage`, `cpu.stat`.
    pub usage_ns: Option<u64>,
    /// The same as `busy_cores`, under the name that other tools use.
    pub effective_cores: Option<f64>,
    /// Highest `busy_cores` between two looks a second apart. Where the second look came later than 2 s after the first, as after a
    /// restart of the agent, that time is left out.
    pub peak_effective_cores: Option<f64>,
    /// CPU time on each processor that the target used, by processor number.
    pub per_cpu_busy_seconds: Option<BTreeMap<u32, f64>>,
    /// How many of its threads were on a processor at once.
    pub concurrency: Option<Concurrency>,
}

/// How many threads of the target were on a processor at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Concurrency {
    /// Half of the time at most this many.
    pub p50: u32,
    /// 95 % of the time at most this many.
    pub p95: u32,
    /// The most at any instant.
    pub max: u32,
    /// Time at each number, from 0; numbers never reached are left out.
    pub seconds: BTreeMap<u32, f64>,
}

/// Processes of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Processes {
    /// Processes begun within the coverage, the command itself among them.
    pub started: Option<u64>,
    /// Threads begun within the coverage, main threads not among them.
    pub threads_started: Option<u64>,
    /// Processes ended within the coverage.
    pub ended: Option<u64>,
    /// Tasks moved into one of its cgroups within the coverage, from wherever.
    pub moved_in: Option<u64>,
    /// Processes alive when they were last looked at: at this moment, or before where a look takes long, since all looks at processes
    /// together may take 2 % of the time; sampled.
    pub alive: Option<u64>,
}

/// A task as the kernel names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// Process id in the host's namespace.
    pub pid: u32,
    /// Name of the task, at most 15 bytes; bytes that are not UTF-8 are replaced.
    pub comm: String,
}

/// A process killed for want of memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OomKill {
    /// When, RFC 3339, UTC.
    pub at: String,
    /// The same, since the begin of the coverage.
    pub at_seconds: f64,
    /// The killed process.
    pub victim: Task,
    /// The task whose request could not be met.
    pub trigger: Task,
    /// Step of the victim.
    pub step_id: Option<String>,
    /// Task of the victim within the step.
    pub task_id: Option<u32>,
    /// Whether the victim was the first process of its task, which has ended with it; else a process that its parent may survive.
    pub victim_is_main: bool,
    /// How long its step (where there is none, the target) was seen to go on after the kill.
    pub went_on_seconds: f64,
    /// Needed memory at the kill, of the cgroup whose limit was hit: where that has no row of its own, of the nearest above it
    /// that has, where it is not known or lies above the target, of the target.
    pub needed_bytes: u64,
    /// Needed peak until then, of the same.
    pub needed_peak_bytes: u64,
    /// How far these two can be from the truth, either way.
    pub error_bound_bytes: Option<u64>,
    /// Whose limit was hit.
    pub limit_of: LimitOf,
    /// That limit, page cache among what it holds.
    pub limit_bytes: Option<u64>,
    /// What was charged at that limit then, page cache among it: more than the limit, where the kernel had let a charge pass that
    /// must not fail.
    pub limit_charged_bytes: Option<u64>,
    /// Directory of the cgroup whose limit was hit.
    pub limit_cgroup: Option<String>,
}

/// Whose limit was hit at a kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitOf {
    /// A task of the job.
    Task,
    /// A step of the job.
    Step,
    /// The job.
    Job,
    /// The target, which is none of these.
    Target,
    /// A cgroup below the target that is none of these.
    Below,
    /// A cgroup above the target.
    Above,
    /// No limit was near: the machine ran out of memory, or it cannot be told.
    Unknown,
}

/// How the command of `run` ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exit {
    /// Exit code, where it exited.
    pub code: Option<i32>,
    /// Signal number, where a signal ended it.
    pub signal: Option<i32>,
}

/// How the numbers were obtained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Probes {
    /// Kind of hook that tells changes of memory: `btf_tracepoint`, `fentry`, `kprobe`, or `none` where everything is sampled.
    pub rung: String,
    /// Why not a better rung; `null` on the best.
    pub reason: Option<String>,
    /// Who holds the programs in the kernel.
    #[serde(default)]
    pub held_by: HeldBy,
    /// Kernel release.
    pub kernel: String,
    /// Programs in the kernel, with the hook of each.
    pub programs: Vec<Program>,
}

/// Who holds the programs in the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HeldBy {
    /// The agent of this node, for all jobs.
    Agent,
    /// This command, for its target alone.
    #[default]
    Command,
    /// There are none: everything is sampled.
    Nobody,
}

/// One program in the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// Name of the program.
    pub name: String,
    /// The hook that it is on.
    pub hook: String,
    /// Whether it is attached.
    pub attached: bool,
    /// What cannot be seen without it, where it is not.
    pub reason: Option<String>,
}

/// What was lost within the coverage. All 0: nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Loss {
    /// Changes of kernel memory that the kernel did not show to the program because it was running on that CPU;
    /// `error_bound_bytes` holds what they could hide. `null` where no one counts them: then each reading is held against the
    /// kernel's files, and the bound is what these cannot tell.
    pub kernel_memory_misses: Option<u64>,
    /// The same of the other statistics. By tracepoints no needed memory is among them. `page_tables_bytes` is not told then.
    pub lru_misses: Option<u64>,
    /// The same of all other programs.
    pub other_misses: u64,
    /// Notices (births, deaths, kills, new peaks) that found the ring buffer full; no number depends on them, and kills that
    /// were not told are counted as `oom_kills_untold`.
    pub notices_dropped: u64,
    /// Maxima given up after too many collisions between CPUs.
    pub collisions: u64,
    /// Switches to or from a tracked cgroup, of the whole host, that the kernel did not tell and that the next event showed:
    /// the time on the CPU before it is the scheduler's own, and a task that had left again meanwhile is missing.
    pub unseen_switches: u64,
    /// Cgroups below the target, of steps or tasks, that found the table full: they count for the one above them, and have no row.
    pub without_row: u64,
    /// Look-ups, of the whole host, of a cgroup nested deeper than 128: if it lies below the target, what it uses is missing.
    pub too_deep: u64,
    /// How often the base had to be taken anew.
    pub rebased: u64,
}

/// What measuring cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overhead {
    /// CPU time of sw-bpf itself by wall time, in percent of one CPU.
    pub agent_cpu_percent: Option<f64>,
    /// Time of one run of a kernel program, mean over the calibration windows.
    pub ns_per_event: Option<f64>,
    /// Time of all kernel programs on this host by wall time, in percent of one CPU, within the calibration windows.
    pub programs_cpu_percent: Option<f64>,
    /// Length of the calibration windows together: the kernel's own statistics are on in them alone.
    pub calibrated_seconds: f64,
}
