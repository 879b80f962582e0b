//! The maps, and the constants that the loader sets.

use aya_ebpf::{
    bindings::BPF_F_MMAPABLE,
    macros::map,
    maps::{Array, HashMap, PerCpuArray, Queue, RingBuf},
};
use swbpf_common::{
    health::{Check, Clocks, Health},
    level::Levels,
    offsets::Offsets,
    running::Concurrency,
    slot::{Slot, Timeline, Watched},
};

use crate::atomic;

/// Layout of this kernel, set by the loader.
#[unsafe(no_mangle)]
pub static OFFSETS: Offsets = Offsets {
    css_cgroup: 0,
    css_parent: 0,
    css_serial: 0,
    cgroup_kn: 0,
    kn_id: 0,
    task_cgroups: 0,
    css_set_css: 0,
    cgroup_root: 0,
    kn_name: 0,
    task_parent: 0,
    memcg_usage: 0,
    memcg_max: 0,
    memsw_usage: 0,
    memsw_max: 0,
    targets: 0,
    exit_tells_last: 0,
    task_pid: 0,
    task_tgid: 0,
    task_comm: 0,
    task_ran: 0,
    task_ran_before: 0,
    item_anon: 0,
    item_shmem: 0,
    item_file: 0,
    item_file_mapped: 0,
    item_anon_thps: 0,
    item_page_tables: 0,
    item_kmem: 0,
    item_sock: 0,
    item_swap: 0,
    bucket_shift: 0,
    lruvec_memcg: 0,
    task_signal: 0,
    signal_oom_mm: 0,
    lruvec_items: 0,
    batch_pages: 0,
};

/// Reads one constant: volatile, since the loader sets it after compilation. The data is frozen before the programs
/// load, so the verifier sees its value.
#[inline(always)]
pub fn constant<T: Copy>(word: &T) -> T {
    // SAFETY: a reference is valid.
    unsafe { core::ptr::from_ref(word).read_volatile() }
}

/// Reads one field of [`OFFSETS`].
macro_rules! offset {
    ($field:ident) => {
        $crate::maps::constant(&$crate::maps::OFFSETS.$field)
    };
}
pub(crate) use offset;

/// Number of the current assignment of cgroups to slots: what a CPU remembers of an older one is void.
#[unsafe(no_mangle)]
static mut EPOCH: u64 = 1;

/// The current epoch.
#[inline(always)]
pub fn epoch() -> u64 {
    // SAFETY: a word of a map.
    unsafe { atomic::load(&raw const EPOCH) }
}

/// Begins a new epoch.
#[inline(always)]
pub fn next_epoch() {
    // SAFETY: a word of a map.
    unsafe { atomic::fetch_add(&raw mut EPOCH, 1) };
}

/// Address of the root of the hierarchy by which jobs are told apart: cgroup ids are unique within one only.
#[unsafe(no_mangle)]
static mut ROOT: u64 = 0;

/// That address.
#[inline(always)]
pub fn root() -> u64 {
    // SAFETY: a word of a map.
    unsafe { atomic::load(&raw const ROOT) }
}

/// Sets it.
#[inline(always)]
pub fn set_root(address: u64) {
    // SAFETY: a word of a map.
    unsafe { atomic::store(&raw mut ROOT, address) };
}

/// Cgroup id -> number of its slot.
#[map]
pub static TRACKED: HashMap<u64, u32> = HashMap::with_max_entries(1024, 0);

/// Cgroup id -> what is born below it.
#[map]
pub static WATCHED: HashMap<u64, Watched> = HashMap::with_max_entries(1024, 0);

/// Slots: first those of targets, then those of cgroups below them. The reader maps them: it looks at all of them each second.
#[map]
pub static SLOTS: Array<Slot> = Array::with_max_entries(1024, BPF_F_MMAPABLE);

/// Numbers of slots that a cgroup born below a target may take.
#[map]
pub static FREE: Queue<u32> = Queue::with_max_entries(1024, 0);

/// Numbers of slots that a target may take.
#[map]
pub static FREE_TARGETS: Queue<u32> = Queue::with_max_entries(1024, 0);

/// By slot of a target: the last two seconds in buckets. The reader maps them too.
#[map]
pub static TIMELINES: Array<Timeline> = Array::with_max_entries(1024, BPF_F_MMAPABLE);

/// By slot of a target: time by level of memory.
#[map]
pub static LEVELS: Array<Levels> = Array::with_max_entries(1024, 0);

/// By slot of a target: time by number of threads on a CPU.
#[map]
pub static CONCURRENCY: Array<Concurrency> = Array::with_max_entries(1024, 0);

/// By slot: nanoseconds that it was on this CPU.
#[map]
pub static BUSY: PerCpuArray<u64> = PerCpuArray::with_max_entries(1024, 0);

/// By slot: anonymous pages that this CPU has not added yet.
#[map]
pub static PENDING: PerCpuArray<u64> = PerCpuArray::with_max_entries(1024, 0);

/// What is on this CPU.
#[repr(C)]
pub struct OnCpu {
    /// Slot + 1, or 0.
    pub slot: u64,
    /// Since when.
    pub since_ns: u64,
    /// 1 while a task that moves itself is accounted for: an interrupt must not.
    pub is_changing: u64,
    /// Address of the task that is on the CPU, as far as was seen; 0 before the first event.
    pub task: u64,
}

/// The slot that is on this CPU.
#[map]
pub static ON_CPU: PerCpuArray<OnCpu> = PerCpuArray::with_max_entries(1, 0);

/// Entries of a [`Memo`].
pub const MEMO_ENTRIES: usize = 16;

/// What this CPU remembers of which subsystem state belongs to which slot.
#[repr(C)]
pub struct Memo {
    pub entries: [MemoEntry; MEMO_ENTRIES],
}

/// One remembered answer.
#[repr(C)]
pub struct MemoEntry {
    /// Serial number of the subsystem state.
    pub serial: u64,
    /// Epoch of the answer.
    pub epoch: u64,
    /// Slot + 1, or 0: not tracked.
    pub slot: u64,
}

/// One memo for each program that uses it: an interrupt between two stores of one program cannot tear another's.
#[map]
pub static MEMOS: PerCpuArray<Memo> = PerCpuArray::with_max_entries(4, 0);

/// 1 while the program on kernel memory runs on this CPU.
#[map]
pub static COUNTING: PerCpuArray<u64> = PerCpuArray::with_max_entries(1, 0);

/// Notices to the reader.
#[map]
pub static NOTICES: RingBuf = RingBuf::with_byte_size(256 * 1024, 0);

/// What this CPU had to give up.
#[map]
pub static HEALTH: PerCpuArray<Health> = PerCpuArray::with_max_entries(1, 0);

/// Counts a compare-exchange loop that ran out of tries.
#[inline(never)]
pub fn count_collision() {
    if let Some(health) = HEALTH.get_ptr_mut(0) {
        // SAFETY: this CPU's own value.
        unsafe { (*health).collisions += 1 };
    }
}

/// Counts a change that the twin of an interrupted program saw.
#[inline(always)]
pub fn count_rescued() {
    if let Some(health) = HEALTH.get_ptr_mut(0) {
        // SAFETY: this CPU's own value.
        unsafe { (*health).rescued += 1 };
    }
}

/// Counts a task that was on the CPU without having been seen to come.
#[inline(always)]
pub fn count_unseen_switch() {
    if let Some(health) = HEALTH.get_ptr_mut(0) {
        // SAFETY: this CPU's own value.
        unsafe { (*health).unseen_switches += 1 };
    }
}

/// Counts a cgroup that found no free slot.
#[inline(always)]
pub fn count_without_slot() {
    if let Some(health) = HEALTH.get_ptr_mut(0) {
        // SAFETY: this CPU's own value.
        unsafe { (*health).without_slot += 1 };
    }
}

/// Counts a target that found no free slot, or what is above one and could not be watched.
#[inline(always)]
pub fn count_without_target() {
    if let Some(health) = HEALTH.get_ptr_mut(0) {
        // SAFETY: this CPU's own value.
        unsafe { (*health).without_target += 1 };
    }
}

/// Counts a look-up that did not come to an end.
#[inline(always)]
pub fn count_too_deep() {
    if let Some(health) = HEALTH.get_ptr_mut(0) {
        // SAFETY: this CPU's own value.
        unsafe { (*health).too_deep += 1 };
    }
}

/// Counts a notice that found no room.
#[inline(always)]
pub fn count_dropped_notice() {
    if let Some(health) = HEALTH.get_ptr_mut(0) {
        // SAFETY: this CPU's own value.
        unsafe { (*health).notices_dropped += 1 };
    }
}

/// When `memory.stat` of every cgroup was last brought up to date: monotonic clock.
#[map]
pub static FLUSHED: Array<u64> = Array::with_max_entries(1, 0);

/// What the reader's own task looks like through the offsets.
#[map]
pub static CHECK: Array<Check> = Array::with_max_entries(1, 0);

/// The kernel's clocks when a CPU was last looked at.
#[map]
pub static CLOCKS: Array<Clocks> = Array::with_max_entries(1, 0);
