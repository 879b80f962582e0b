//! The functions of the kernel through which the same changes go, for kernels without the tracepoints.
//!
//! fentry gives typed arguments and is told when it was skipped; kprobe needs less of the kernel, and costs more.

use aya_ebpf::{
    EbpfContext,
    cty::c_void,
    macros::{fentry, kprobe},
    programs::{FEntryContext, ProbeContext},
};

use crate::{
    kernel::{Checked, Css, Load, Task, Typed},
    memory::{count_lruvec, count_state, is_followed},
    oom::killed,
    track::User,
};

/// `__mod_memcg_lruvec_state(struct lruvec *lruvec, enum node_stat_item idx, int val)`
#[fentry]
pub fn fentry_lruvec(ctx: FEntryContext) -> u32 {
    if is_followed(ctx.arg(1)) {
        lruvec(ctx.as_ptr());
    }
    0
}

/// A function of its own, as for the tracepoint. The memory cgroup lies outside of the type that the verifier knows.
#[inline(never)]
fn lruvec(ctx: *mut c_void) {
    let ctx = FEntryContext::new(ctx);
    count_lruvec(Css::of_lruvec(ctx.arg(0)), ctx.arg(1), ctx.arg(2));
}

/// `__mod_memcg_state(struct mem_cgroup *memcg, int idx, int val)`
#[fentry]
pub fn fentry_state(ctx: FEntryContext) -> u32 {
    let memcg = Css::<Typed>::new(ctx.arg(0));
    count_state(memcg, ctx.arg(1), ctx.arg(2), User::State as u32);
    0
}

/// `mark_oom_victim(struct task_struct *tsk)`
#[fentry]
pub fn fentry_victim(ctx: FEntryContext) -> u32 {
    victim(Task::<Typed>::new(ctx.arg(0)));
    0
}

/// `__mod_memcg_lruvec_state(struct lruvec *lruvec, enum node_stat_item idx, int val)`
#[kprobe]
pub fn kprobe_lruvec(ctx: ProbeContext) -> u32 {
    if let (Some(lruvec), Some(item), Some(change)) = (ctx.arg(0), ctx.arg(1), ctx.arg(2))
        && is_followed(item)
    {
        count_lruvec(Css::of_lruvec(lruvec), item, change);
    }
    0
}

/// `__mod_memcg_state(struct mem_cgroup *memcg, int idx, int val)`
#[kprobe]
pub fn kprobe_state(ctx: ProbeContext) -> u32 {
    if let (Some(memcg), Some(item), Some(change)) = (ctx.arg(0), ctx.arg(1), ctx.arg(2)) {
        count_state(Css::<Checked>::new(memcg), item, change, User::State as u32);
    }
    0
}

/// `mark_oom_victim(struct task_struct *tsk)`
#[kprobe]
pub fn kprobe_victim(ctx: ProbeContext) -> u32 {
    if let Some(task) = ctx.arg(0) {
        victim(Task::<Checked>::new(task));
    }
    0
}

/// The function is called again for a victim that takes its time.
#[inline(always)]
fn victim<L: Load>(task: Task<L>) {
    if !task.is_victim() {
        killed(task);
    }
}
