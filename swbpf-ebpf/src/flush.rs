//! When the kernel last brought its statistics files up to date.

use aya_ebpf::{helpers::bpf_ktime_get_ns, macros::btf_tracepoint, programs::BtfTracePointContext};

use crate::{kernel::Css, maps::FLUSHED};

/// `memcg_flush_stats(struct mem_cgroup *memcg, s64 stats_updates, bool force, bool needs_flush)`: a forced flush of the
/// root brings every `memory.stat` up to date.
#[btf_tracepoint(function = "memcg_flush_stats")]
pub fn memcg_flush_stats(ctx: BtfTracePointContext) -> i32 {
    let forced = ctx.arg::<u32>(2) & 0xff != 0;
    if forced
        && Css(ctx.arg(0)).parent().is_none()
        && let Some(flushed) = FLUSHED.get_ptr_mut(0)
    {
        // SAFETY: a word of a map; reads a clock.
        unsafe { flushed.write_volatile(bpf_ktime_get_ns()) };
    }
    0
}
