//! What is said of one run of a job.

/// What everyone says of it.
#[derive(Debug, Clone)]
pub struct Figures {
    /// By sw-bpf.
    pub ours: Seen,
    /// By the kernel's own counter, page cache among it, in bytes.
    pub counter_bytes: u64,
    /// By Slurm, the highest of the job's steps, in bytes; none where it stored none.
    pub max_rss_bytes: Option<u64>,
}

/// What sw-bpf says of it.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The highest needed memory, in bytes.
    pub needed_peak_bytes: u64,
    /// How far that can be off, in bytes; none where too much was lost to know.
    pub error_bound_bytes: Option<u64>,
    /// Whether all of the job was under watch.
    pub from_start: bool,
}
