//! Kills for want of memory.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use swbpf_common::{level, notice::VICTIM};

use crate::{
    atomic,
    kernel::Task,
    notice::{Cause, tell},
    track::{Tracked, walk},
};

/// `mark_victim(struct task_struct *task, uid_t uid)`, in the context of the task whose request could not be met.
#[btf_tracepoint(function = "mark_victim")]
pub fn mark_victim(ctx: BtfTracePointContext) -> i32 {
    let victim = Task(ctx.arg(0));
    if let Some(tracked) = Tracked::by_key(walk(victim.css())) {
        // SAFETY: words of the slot.
        let (now, high, max) = unsafe {
            (
                atomic::load(&raw const (*tracked.slot).now),
                level::level_of(atomic::load(&raw const (*tracked.slot).high)),
                atomic::load(&raw const (*tracked.slot).max),
            )
        };
        let cause = Cause {
            cgroup_id: victim.css().cgroup_id(),
            level: now,
            peak: highest(now, highest(high, max)),
            victim_pid: victim.tgid(),
            victim_comm: victim.comm(),
        };
        tell(tracked.number, VICTIM, cause);
    }
    0
}

#[inline(always)]
fn highest(a: u64, b: u64) -> u64 {
    if a > b { a } else { b }
}
