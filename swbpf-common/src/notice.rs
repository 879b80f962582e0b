//! Notices: the few things that are told at once instead of being read at the next drain. No number depends on them.

/// A cgroup was made below a tracked one.
pub const BORN: u32 = 1;
/// A cgroup at or below a tracked one was removed.
pub const GONE: u32 = 2;
/// A task was moved, into a tracked cgroup or into another.
pub const MOVED: u32 = 3;
/// The needed peak rose by 1 % since it was last told.
pub const PEAK: u32 = 4;
/// A task was chosen to be killed for want of memory.
pub const VICTIM: u32 = 5;

/// The last process has left a tracked cgroup and all below it.
pub const EMPTIED: u32 = 6;
/// A process has come into a tracked cgroup that had none.
pub const POPULATED: u32 = 7;

/// In place of a slot's number: the notice concerns none.
pub const NO_SLOT: u32 = u32::MAX;

/// Length of a task's name in the kernel.
pub const COMM_LEN: usize = 16;

/// One notice. Which fields are set depends on `kind`; the others are 0.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notice {
    /// One of the constants of this file.
    pub kind: u32,
    /// The slot that it concerns.
    pub slot: u32,
    /// Monotonic clock.
    pub ns: u64,
    /// Cgroup id: of the born, removed, emptied or populated one, where the task was moved to, or of the victim.
    pub cgroup_id: u64,
    /// Biased level of needed memory at the notice.
    pub level: u64,
    /// Biased level of the needed peak until then.
    pub peak: u64,
    /// Cgroup id of the limit that was nearest to its end at a kill; 0 where none is known.
    pub limit_cgroup_id: u64,
    /// That limit in pages.
    pub limit_pages: u64,
    /// Pages that were left below it; negative where it was exceeded.
    pub limit_left: i64,
    /// Slot of the victim's own cgroup, or the nearest above it.
    pub victim_slot: u64,
    /// 1 where the parent of the victim belongs to another cgroup: it was the first process of its own.
    pub victim_is_first: u64,
    /// Process that caused the notice.
    pub pid: u32,
    /// Process that the notice is about: the victim.
    pub victim_pid: u32,
    /// Name of the task that caused the notice.
    pub comm: [u8; COMM_LEN],
    /// Name of the victim.
    pub victim_comm: [u8; COMM_LEN],
}

/// Length of a notice in the ring buffer.
pub const NOTICE_LEN: usize = 120;
const _: () = assert!(size_of::<Notice>() == NOTICE_LEN);
