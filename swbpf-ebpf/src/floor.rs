//! Programs that do nothing: the floor against which the overhead benchmark holds the others.

use aya_ebpf::{
    macros::{btf_tracepoint, fentry, kprobe},
    programs::{BtfTracePointContext, FEntryContext, ProbeContext},
};

/// On `mod_memcg_lruvec_state`.
#[btf_tracepoint(function = "mod_memcg_lruvec_state")]
pub fn floor_memory(_ctx: BtfTracePointContext) -> i32 {
    0
}

/// On `__mod_memcg_lruvec_state`.
#[fentry]
pub fn floor_fentry(_ctx: FEntryContext) -> u32 {
    0
}

/// On `__mod_memcg_lruvec_state`.
#[kprobe]
pub fn floor_kprobe(_ctx: ProbeContext) -> u32 {
    0
}

/// On `sched_switch`.
#[btf_tracepoint(function = "sched_switch")]
pub fn floor_switch(_ctx: BtfTracePointContext) -> i32 {
    0
}
