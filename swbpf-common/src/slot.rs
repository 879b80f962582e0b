//! The state of one tracked cgroup, kept in the kernel and read as it stands.
//!
//! Slots form trees: that of a target, and those of the cgroups below it that are told on their own. A change counts for the
//! cgroup that it happens in and for all above it.

/// Shared memory: index into the parts.
pub const SHMEM: usize = 0;
/// Kernel memory, sockets among it.
pub const KERNEL: usize = 1;
/// Page cache, shared memory among it.
pub const FILE: usize = 2;
/// Mapped pages of files and of shared memory.
pub const FILE_MAPPED: usize = 3;
/// Anonymous memory in transparent huge pages.
pub const THP: usize = 4;
/// Page tables; among kernel memory.
pub const PAGE_TABLES: usize = 5;
/// Swapped-out memory.
pub const SWAP: usize = 6;
/// Number of parts. Anonymous memory is not one: it is the level less shared and kernel memory, and so costs nothing.
pub const PARTS: usize = 7;

/// A peak: when it was reached and what it was made of.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Peak {
    /// The kernel's tick (jiffies) in which it was reached.
    pub reached_tick: u64,
    /// Parts in pages, when the level fell from it.
    pub parts: [i64; PARTS],
}

/// One tracked cgroup with all below it. Levels are biased ([`crate::level`]), counts are pages.
///
/// The highest level of all is the highest of `now`, `high` and `max`: `high` is raised when the level falls, and `max`
/// when a bucket is closed.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    // The first cache line holds all that an ordinary change of memory touches.
    /// Needed memory now.
    pub now: u64,
    /// Bucket of time and the highest level that was fallen from in it, or that it began with.
    pub high: u64,
    /// Bucket of time and the lowest level that was risen from in it, or that it began with.
    pub low: u64,
    /// Band of the level and the time since when.
    pub band: u64,
    /// The kernel's tick in which the level last rose.
    pub rise_tick: u64,
    /// Level above which the next peak is told.
    pub tell_above: u64,
    /// Number of threads on a CPU and the time since when ([`crate::running`]).
    pub running: u64,
    /// Number of the slot of the cgroup above + 1; 0 where that is not tracked. What counts here counts there too.
    pub parent: u64,

    // Written seldom.
    /// Parts now, in pages.
    pub parts: [i64; PARTS],
    /// The highest level of all buckets before the one of `high`.
    pub max: u64,
    /// The peak at `high`.
    pub high_peak: Peak,
    /// The peak at `max`.
    pub max_peak: Peak,
    /// Processes begun.
    pub started: u64,
    /// Threads begun, main threads not among them.
    pub threads_started: u64,
    /// Processes ended.
    pub ended: u64,
    /// Tasks moved in.
    pub moved_in: u64,
    /// Processes killed for want of memory.
    pub oom_kills: u64,

    // Where it comes from.
    /// Levels of cgroups below that get slots of their own as they are made.
    pub follow: u64,
    /// Id of its cgroup; 0 where the slot is free. It is entered last.
    pub cgroup_id: u64,
    /// When the cgroup was made, on the monotonic clock; 0 where that was before it was tracked.
    pub born_ns: u64,
    /// When the cgroup was removed; 0 while it is there.
    pub gone_ns: u64,
    /// When the last process left it and all below it; 0 while one is there, and before the first one came.
    pub emptied_ns: u64,
    /// Name of its directory, cut off at the end, of a cgroup whose birth was seen.
    pub name: [u8; NAME_LEN],
    /// Id of the cgroup right above it, of a cgroup whose birth was seen.
    pub above_id: u64,
    /// To the next cache line.
    pub spare: u64,
}

/// A cgroup below which targets are born, such as that of all jobs of a user.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watched {
    /// How many levels below it; 1: its children are targets.
    pub levels: u32,
    /// What a target begins with as [`Slot::follow`].
    pub follow: u32,
    /// Whether only those below a child whose name begins with `slurm` are: 0 is no.
    pub slurm_alone: u64,
}

/// The begin of that name, and which bytes of a word it is.
pub const SLURM: u64 = u64::from_le_bytes(*b"slurm\0\0\0");
/// Selects them.
pub const SLURM_MASK: u64 = (1 << 40) - 1;

/// Bytes of a name that are kept, the end mark among them.
pub const NAME_LEN: usize = 32;

const _: () = assert!(size_of::<Slot>() == 384);
const _: () = assert!(core::mem::offset_of!(Slot, parts) == 64);

/// Number of buckets kept: two seconds, so that a reader once a second misses none.
pub const CELLS: usize = 256;

/// The highest and lowest level of each of the last buckets, each word with its bucket number.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Timeline {
    /// Bucket number and highest level.
    pub high: [u64; CELLS],
    /// Bucket number and lowest level.
    pub low: [u64; CELLS],
}
