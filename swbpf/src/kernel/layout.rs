//! Where this kernel keeps what the programs follow, as [`Offsets`].

use swbpf_common::offsets::{NO_ITEM, Offsets};

use super::btf::{Btf, BtfError};
use crate::job::cgroup::{Controller, Version};

/// The hierarchy by which the scheduler's programs tell jobs apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hierarchy {
    /// That of this controller: memory where a job has it, so that memory and CPU time go to the same slot.
    Of(Controller),
    /// The unified hierarchy itself, where it has no memory controller.
    Unified,
}

/// Reads all offsets and numbers. Members are required; an item that this kernel does not count is [`NO_ITEM`].
pub fn offsets(
    btf: &Btf,
    hierarchy: Hierarchy,
    version: Version,
    batch_pages: u64,
) -> Result<Offsets, BtfError> {
    for (outer, member) in [("mem_cgroup", "css"), ("cgroup", "self")] {
        if btf.member(outer, member)? != 0 {
            return Err(BtfError::Missing(format!("{outer}.{member} at its begin")));
        }
    }
    let node_item = |name| btf.enumerator("node_stat_item", name).unwrap_or(NO_ITEM);
    let memcg_item = |name| btf.enumerator("memcg_stat_item", name).unwrap_or(NO_ITEM);
    let entity = btf.member("task_struct", "se")?;
    let mut offsets = Offsets {
        css_cgroup: btf.member("cgroup_subsys_state", "cgroup")?,
        css_parent: btf.member("cgroup_subsys_state", "parent")?,
        css_serial: btf.member("cgroup_subsys_state", "serial_nr")?,
        cgroup_kn: btf.member("cgroup", "kn")?,
        kn_id: btf.member("kernfs_node", "id")?,
        task_cgroups: btf.member("task_struct", "cgroups")?,
        css_set_css: css_of(btf, hierarchy)?,
        cgroup_root: btf.member("cgroup", "root")?,
        kn_name: btf.member("kernfs_node", "name")?,
        task_parent: btf.member("task_struct", "real_parent")?,
        exit_tells_last: u32::from(btf.tracepoint_arguments("sched_process_exit") >= 2),
        task_pid: btf.member("task_struct", "pid")?,
        task_tgid: btf.member("task_struct", "tgid")?,
        task_comm: btf.member("task_struct", "comm")?,
        task_ran: entity + btf.member("sched_entity", "sum_exec_runtime")?,
        task_ran_before: entity + btf.member("sched_entity", "prev_sum_exec_runtime")?,
        item_anon: btf.enumerator("node_stat_item", "NR_ANON_MAPPED")?,
        item_shmem: btf.enumerator("node_stat_item", "NR_SHMEM")?,
        item_file: node_item("NR_FILE_PAGES"),
        item_file_mapped: node_item("NR_FILE_MAPPED"),
        item_anon_thps: node_item("NR_ANON_THPS"),
        item_page_tables: node_item("NR_PAGETABLE"),
        item_kmem: btf.enumerator("memcg_stat_item", "MEMCG_KMEM")?,
        item_sock: memcg_item("MEMCG_SOCK"),
        item_swap: memcg_item("MEMCG_SWAP"),
        bucket_shift: bucket_shift(tick_ns()),
        batch_pages,
        ..Offsets::default()
    };
    offsets.lruvec_items = lruvec_items(&offsets);
    // Without these the hooks that need them are not used.
    offsets.lruvec_memcg = lruvec_memcg(btf).unwrap_or(0);
    (offsets.task_signal, offsets.signal_oom_mm) = victims(btf).unwrap_or((0, 0));
    if hierarchy == Hierarchy::Of(Controller::Memory) {
        add_counters(btf, version, &mut offsets)?;
    }
    Ok(offsets)
}

/// The page counters of a memory cgroup. On version 2 the place of `memsw` is that of a counter of swap alone.
fn add_counters(btf: &Btf, version: Version, offsets: &mut Offsets) -> Result<(), BtfError> {
    let usage = btf.member("page_counter", "usage")?;
    let max = btf.member("page_counter", "max")?;
    let memory = btf.member("mem_cgroup", "memory")?;
    (offsets.memcg_usage, offsets.memcg_max) = (memory + usage, memory + max);
    if version == Version::V1 {
        let memsw = btf.member("mem_cgroup", "memsw")?;
        (offsets.memsw_usage, offsets.memsw_max) = (memsw + usage, memsw + max);
    }
    Ok(())
}

/// From a `struct lruvec` to the pointer to its memory cgroup, both members of one structure.
pub fn lruvec_memcg(btf: &Btf) -> Result<i32, BtfError> {
    let memcg = btf.member("mem_cgroup_per_node", "memcg")?;
    let lruvec = btf.member("mem_cgroup_per_node", "lruvec")?;
    Ok(memcg.wrapping_sub(lruvec).cast_signed())
}

/// By what a process is known that was chosen to be killed before.
pub fn victims(btf: &Btf) -> Result<(u32, u32), BtfError> {
    Ok((
        btf.member("task_struct", "signal")?,
        btf.member("signal_struct", "oom_mm")?,
    ))
}

/// Offset of a controller's pointer in an array of one for each.
fn index(btf: &Btf, controller: Controller) -> Result<u32, BtfError> {
    let number = btf.enumerator("cgroup_subsys_id", &format!("{}_cgrp_id", controller.name()))?;
    number
        .checked_mul(size_of::<usize>() as u32)
        .ok_or(BtfError::Malformed(
            "a controller has a number that none can have",
        ))
}

/// Length of the kernel's tick in nanoseconds: the resolution of its coarse clock (`clock_getres(2)`).
pub fn tick_ns() -> u64 {
    let resolution = rustix::time::clock_getres(rustix::time::ClockId::MonotonicCoarse);
    (resolution.tv_nsec as u64).max(1)
}

/// The most ticks, as a power of 2, that stay within 10 ms.
fn bucket_shift(tick_ns: u64) -> u32 {
    (10_000_000 / tick_ns).max(1).ilog2()
}

fn css_of(btf: &Btf, hierarchy: Hierarchy) -> Result<u32, BtfError> {
    match hierarchy {
        Hierarchy::Of(controller) => btf
            .member("css_set", "subsys")?
            .checked_add(index(btf, controller)?)
            .ok_or(BtfError::Malformed("css_set.subsys lies beyond the end")),
        Hierarchy::Unified => btf.member("css_set", "dfl_cgrp"),
    }
}

fn lruvec_items(offsets: &Offsets) -> u64 {
    [
        offsets.item_anon,
        offsets.item_shmem,
        offsets.item_file,
        offsets.item_file_mapped,
        offsets.item_anon_thps,
        offsets.item_page_tables,
    ]
    .into_iter()
    .filter(|item| *item < NO_ITEM)
    .fold(0, |set, item| set | 1 << item)
}
