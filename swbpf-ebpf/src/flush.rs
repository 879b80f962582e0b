//! When the kernel last brought its statistics files up to date.

use aya_ebpf::{
    helpers::bpf_ktime_get_ns,
    macros::{btf_tracepoint, fentry},
    programs::{BtfTracePointContext, FEntryContext},
};

use crate::{
    kernel::{Cgroup, Css, Typed},
    maps::{FLUSHED, root},
};

/// `memcg_flush_stats(struct mem_cgroup *memcg, s64 stats_updates, bool force, bool needs_flush)`: a forced flush of the
/// root brings every `memory.stat` up to date.
#[btf_tracepoint(function = "memcg_flush_stats")]
pub fn memcg_flush_stats(ctx: BtfTracePointContext) -> i32 {
    let forced = ctx.arg::<u32>(2) & 0xff != 0;
    if forced && Css::<Typed>::new(ctx.arg(0)).parent().is_none() {
        flushes_all();
    }
    0
}

/// `cgroup_rstat_flush(struct cgroup *cgrp)`: what that one does, on kernels without it.
#[fentry]
pub fn fentry_flush(ctx: FEntryContext) -> u32 {
    let cgroup = Cgroup(ctx.arg(0));
    if cgroup.root() == root() && cgroup.css().parent().is_none() {
        flushes_all();
    }
    0
}

#[inline(always)]
fn flushes_all() {
    if let Some(flushed) = FLUSHED.get_ptr_mut(0) {
        // SAFETY: a word of a map; reads a clock.
        unsafe { flushed.write_volatile(bpf_ktime_get_ns()) };
    }
}
