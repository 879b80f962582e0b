//! The section on memory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Source, Task};

/// Memory of the target, all its cgroups together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// Source of `needed_bytes`, `needed_peak_bytes`, `peak`, `high` and `levels`.
    pub source: Source,
    /// What the kernel could not hand back at this moment: anonymous + shared (shmem, tmpfs) + kernel memory.
    pub needed_bytes: Option<u64>,
    /// The highest needed memory within the coverage: of the sum over all cgroups, at one instant.
    pub needed_peak_bytes: Option<u64>,
    /// How many readings `needed_peak_bytes` rests on; `null` where every change was counted.
    pub needed_peak_samples: Option<u64>,
    /// How far `needed_bytes` and `needed_peak_bytes` can be from the truth, either way. Sampled: how much more can have been
    /// needed than was seen, up to the kernel's own high-water with file cache, `peak_bytes`.
    pub error_bound_bytes: Option<u64>,
    /// Anonymous memory at this moment.
    pub anon_bytes: Option<u64>,
    /// Shared memory at this moment: shmem, tmpfs, shared anonymous mappings.
    pub shmem_bytes: Option<u64>,
    /// Kernel memory charged to the target at this moment: page tables, stacks, slab, pipes, sockets.
    pub kernel_bytes: Option<u64>,
    /// Page cache at this moment, shared memory not among it.
    pub file_bytes: Option<u64>,
    /// Swapped-out memory at this moment; not part of needed memory.
    pub swap_bytes: Option<u64>,
    /// Memory in huge pages of hugetlbfs, read from its processes; not part of needed memory.
    pub hugetlb_bytes: Option<u64>,
    /// Highest reading of `hugetlb_bytes`; sampled.
    pub hugetlb_peak_bytes: Option<u64>,
    /// The moment of the needed peak.
    pub peak: Option<Peak>,
    /// How long the target was near its peak.
    pub high: Option<High>,
    /// Time spent at each level of needed memory, lowest first; levels never visited are left out.
    pub levels: Option<Vec<Level>>,
    /// Highest and lowest needed memory in short buckets of time: those of the window, or of the whole coverage in a
    /// summary.
    pub timeline: Option<Timeline>,
    /// The kernel's own counter of charged memory, page cache among it: `memory.usage_in_bytes`, `memory.current`.
    pub current_bytes: Option<u64>,
    /// The kernel's own high-water counter, page cache among it, since the cgroup was made:
    /// `memory.max_usage_in_bytes`, `memory.peak`.
    pub peak_bytes: Option<u64>,
    /// Limit of the target's memory; `null` where there is none.
    pub limit_bytes: Option<u64>,
    /// `current_bytes` in percent of `limit_bytes`.
    pub usage_percent: Option<f64>,
    /// `current_bytes` less the page cache that is not in active use; sampled.
    pub working_set_bytes: Option<u64>,
    /// Page cache by `memory.stat`, shared memory among it on version 1; sampled.
    pub cache_bytes: Option<u64>,
    /// Highest reading of `working_set_bytes`; sampled.
    pub peak_working_set_bytes: Option<u64>,
    /// `working_set_bytes` in percent of `limit_bytes`.
    pub working_set_percent: Option<f64>,
    /// Sum of the resident sets of its processes when they were last looked at (`processes.alive`), as Slurm's
    /// `jobacct_gather/linux` takes them; sampled.
    pub rss_sum_bytes: Option<u64>,
    /// Highest reading of `rss_sum_bytes`, taken once a second and at new peaks; sampled.
    pub rss_sum_peak_bytes: Option<u64>,
    /// `rss_sum_peak_bytes` by `needed_peak_bytes`: how far shared pages counted per process inflate.
    pub rss_inflation: Option<f64>,
    /// `peak_bytes` by `needed_peak_bytes`: how far page cache inflates.
    pub cache_inflation: Option<f64>,
    /// The highest needed memory that looking once a second saw.
    pub sampled_1s: SampledPeak,
    /// The highest needed memory that looking every 30 s saw.
    pub sampled_30s: SampledPeak,
}

/// What a sampler that looks at fixed intervals saw of the same target, counted from the begin of the coverage.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampledPeak {
    /// Time between two looks.
    pub interval_seconds: f64,
    /// How often it looked.
    pub samples: u64,
    /// The highest needed memory that it saw; `null` where there was no look: it was over before the first, or none was due yet.
    pub peak_bytes: Option<u64>,
    /// How much of the needed peak it missed, in percent.
    pub missed_percent: Option<f64>,
}

/// The moment of the needed peak.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Peak {
    /// When the peak was reached, RFC 3339, UTC; the begin of the coverage where it was there before.
    pub at: String,
    /// The same, since the begin of the coverage.
    pub at_seconds: f64,
    /// How far `at` can be late or early: the kernel's tick.
    pub at_error_seconds: f64,
    /// Anonymous memory then.
    pub anon_bytes: u64,
    /// Shared memory then.
    pub shmem_bytes: u64,
    /// Kernel memory then.
    pub kernel_bytes: u64,
    /// Page tables then; part of `kernel_bytes`.
    pub page_tables_bytes: Option<u64>,
    /// Page cache then, shared memory not among it; not part of the peak.
    pub file_bytes: Option<u64>,
    /// Mapped pages of files then; part of `file_bytes`, and of shared memory that is mapped.
    pub file_mapped_bytes: Option<u64>,
    /// Anonymous memory in transparent huge pages then; part of `anon_bytes`.
    pub thp_bytes: Option<u64>,
    /// Swapped-out memory then; not part of the peak.
    pub swap_bytes: Option<u64>,
    /// Processes alive then.
    pub process_count: Option<u64>,
    /// Threads alive then, main threads among them.
    pub thread_count: Option<u64>,
    /// Who raised the level to within 1 % of the peak.
    pub raised_by: Option<Task>,
    /// The largest processes as `/proc` showed them near the peak, largest first; sampled.
    pub top_processes: Vec<TopProcess>,
}

/// A large process near the peak.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TopProcess {
    /// Process id in the host's namespace.
    pub pid: u32,
    /// Name of the process, at most 15 bytes; bytes that are not UTF-8 are replaced.
    pub comm: String,
    /// Resident set: anonymous, shared and file pages, shared ones counted for each process.
    pub rss_bytes: u64,
}

/// How long the target was near its peak.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct High {
    /// Edge of the level band at or just below 90 % of the peak.
    pub threshold_bytes: u64,
    /// Time at or above `threshold_bytes`, all visits together.
    pub seconds: f64,
}

/// Needed memory in buckets of time, each with its exact highest and lowest level, so that a spike of any length keeps its
/// height. A bucket in which nothing changed is left out: the level stays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Timeline {
    /// Length of a bucket.
    pub bucket_seconds: f64,
    /// Begin of each bucket, since the begin of the coverage.
    pub at_seconds: Vec<f64>,
    /// Highest level in each bucket.
    pub max_bytes: Vec<u64>,
    /// Lowest level in each bucket.
    pub min_bytes: Vec<u64>,
    /// Spans whose buckets were gone before they were read, as where there was no agent: what the level was then is not told. The
    /// peak and the time by level have them all the same.
    #[serde(default)]
    pub gaps: Vec<Gap>,
}

/// A span of a timeline of which no bucket is known, since the begin of the coverage.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gap {
    /// Its begin.
    pub from_seconds: f64,
    /// Its end.
    pub to_seconds: f64,
}

/// Time spent at one level of needed memory.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Level {
    /// Lower edge, among it.
    pub from_bytes: u64,
    /// Upper edge, not among it.
    pub to_bytes: u64,
    /// Time at this level.
    pub seconds: f64,
}
