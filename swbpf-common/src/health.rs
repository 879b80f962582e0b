//! Counters of what went wrong, one set a CPU, and the self-check.

/// What this CPU had to give up.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Health {
    /// Notices that found the ring buffer full.
    pub notices_dropped: u64,
    /// Compare-exchange loops that ran out of tries: a maximum or a span of time that was not recorded.
    pub collisions: u64,
    /// Changes of kernel memory by an interrupt of the program that counts them, counted by its twin.
    pub rescued: u64,
    /// Tasks that were on this CPU without having been seen to come, in place of another slot than the last one seen.
    pub unseen_switches: u64,
    /// Cgroups born below a tracked one that found no free slot: they count for the one above them alone.
    pub without_slot: u64,
    /// Cgroups born below a watched one that found no free slot of a target, or no room to be watched.
    pub without_target: u64,
    /// Look-ups of a cgroup so deep that it is not known which slot it belongs to.
    pub too_deep: u64,
}

/// The reader's own task as the programs see it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Check {
    /// Thread id.
    pub pid: u64,
    /// Process id.
    pub tgid: u64,
    /// Id of its cgroup.
    pub cgroup_id: u64,
    /// Its name.
    pub comm: [u8; 16],
}

/// The kernel's tick and its monotonic clock at one moment.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Clocks {
    /// jiffies
    pub tick: u64,
    /// Monotonic clock.
    pub ns: u64,
}
