//! What the programs must know of this kernel, read from its BTF before they are loaded and constant from then on.

/// Item number that no kernel uses: the item is not counted there.
pub const NO_ITEM: u32 = 63;

/// Byte offsets of structure members and numbers of items. Rust cannot emit relocatable field accesses, so these stand
/// in the programs' read-only data, where the verifier treats them as constants.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offsets {
    /// `cgroup_subsys_state.cgroup`
    pub css_cgroup: u32,
    /// `cgroup_subsys_state.parent`
    pub css_parent: u32,
    /// `cgroup_subsys_state.serial_nr`
    pub css_serial: u32,
    /// `cgroup.kn`
    pub cgroup_kn: u32,
    /// `kernfs_node.id`
    pub kn_id: u32,
    /// `task_struct.cgroups`
    pub task_cgroups: u32,
    /// `css_set.subsys[memory]`, or of the controller whose hierarchy tells jobs apart, or `css_set.dfl_cgrp`
    pub css_set_css: u32,
    /// `cgroup.root`
    pub cgroup_root: u32,
    /// `kernfs_node.name`
    pub kn_name: u32,
    /// `task_struct.real_parent`
    pub task_parent: u32,
    /// `mem_cgroup.memory.usage`; 0 where jobs are not told apart by the hierarchy that counts memory
    pub memcg_usage: u32,
    /// `mem_cgroup.memory.max`
    pub memcg_max: u32,
    /// `mem_cgroup.memsw.usage`; 0 on version 2, where memory and swap have no limit together
    pub memsw_usage: u32,
    /// `mem_cgroup.memsw.max`
    pub memsw_max: u32,
    /// Number of slots of targets: they come first, and they alone have a timeline and histograms.
    pub targets: u32,
    /// 1 where `sched_process_exit` tells whether the last thread of the process ends
    pub exit_tells_last: u32,
    /// `task_struct.pid`
    pub task_pid: u32,
    /// `task_struct.tgid`
    pub task_tgid: u32,
    /// `task_struct.comm`
    pub task_comm: u32,
    /// `task_struct.se.sum_exec_runtime`
    pub task_ran: u32,
    /// `task_struct.se.prev_sum_exec_runtime`
    pub task_ran_before: u32,
    /// `node_stat_item.NR_ANON_MAPPED`, pages
    pub item_anon: u32,
    /// `node_stat_item.NR_SHMEM`, pages
    pub item_shmem: u32,
    /// `node_stat_item.NR_FILE_PAGES`, pages, shared memory among them
    pub item_file: u32,
    /// `node_stat_item.NR_FILE_MAPPED`, pages
    pub item_file_mapped: u32,
    /// `node_stat_item.NR_ANON_THPS`, pages
    pub item_anon_thps: u32,
    /// `node_stat_item.NR_PAGETABLE`, pages
    pub item_page_tables: u32,
    /// `memcg_stat_item.MEMCG_KMEM`, pages
    pub item_kmem: u32,
    /// `memcg_stat_item.MEMCG_SOCK`, pages
    pub item_sock: u32,
    /// `memcg_stat_item.MEMCG_SWAP`, pages
    pub item_swap: u32,
    /// A bucket of time is 2^n of the kernel's ticks.
    pub bucket_shift: u32,
    /// `mem_cgroup_per_node.memcg` less `mem_cgroup_per_node.lruvec`
    pub lruvec_memcg: i32,
    /// `task_struct.signal`
    pub task_signal: u32,
    /// `signal_struct.oom_mm`
    pub signal_oom_mm: u32,
    /// The first six of these items, one bit each.
    pub lruvec_items: u64,
    /// Anonymous pages that a CPU may keep to itself before it adds them to the slot; 0: none, and every peak is exact.
    pub batch_pages: u64,
}

const _: () = assert!(size_of::<Offsets>() == 152);
