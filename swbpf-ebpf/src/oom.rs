//! Kills for want of memory.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use swbpf_common::{level, notice::VICTIM};

use crate::{
    atomic,
    kernel::{Counter, Css, Load, Task, Typed},
    notice::{Cause, tell},
    track::{Tracked, up, walk},
};

/// Levels of limits that are looked at.
const MAX_LIMITS: u32 = 32;
/// More pages than any limit has, and not more than `PAGE_COUNTER_MAX` is with pages of 64 KiB.
const UNLIMITED: u64 = 1 << 46;

/// `mark_victim(struct task_struct *task, uid_t uid)`, in the context of the task whose request could not be met.
#[btf_tracepoint(function = "mark_victim")]
pub fn mark_victim(ctx: BtfTracePointContext) -> i32 {
    killed(Task::<Typed>::new(ctx.arg(0)));
    0
}

/// Counts a kill and tells of it, in the context of the task whose request could not be met.
#[inline(always)]
pub fn killed<L: Load>(victim: Task<L>) {
    let css = victim.css();
    let key = walk(css);
    if key == 0 {
        return;
    }
    // SAFETY: a word of the slot.
    up(key, |tracked| unsafe {
        atomic::fetch_add(&raw mut (*tracked.slot).oom_kills, 1);
    });
    let limit = tightest(css);
    let Some(tracked) = measured(key, limit.css) else {
        return;
    };
    // SAFETY: words of the slot.
    let (now, high, max) = unsafe {
        (
            atomic::load(&raw const (*tracked.slot).now),
            level::level_of(atomic::load(&raw const (*tracked.slot).high)),
            atomic::load(&raw const (*tracked.slot).max),
        )
    };
    let cause = Cause {
        cgroup_id: css.cgroup_id(),
        level: now,
        peak: highest(now, highest(high, max)),
        limit_cgroup_id: limit.css.map_or(0, Css::cgroup_id),
        limit_pages: limit.pages,
        limit_left: limit.left,
        victim_slot: key - 1,
        victim_is_first: u64::from(victim.parent().css().cgroup_id() != css.cgroup_id()),
        victim_pid: victim.tgid(),
        victim_comm: victim.comm(),
    };
    tell(tracked.number, VICTIM, cause);
}

/// The limit that is nearest to its end.
struct Limit<L> {
    css: Option<Css<L>>,
    pages: u64,
    left: i64,
}

/// Of the limits that hold for `css`, its own and those above, the one with the least left: a charge has just failed at it. Of
/// equal ones it is the lowest, which the kernel tries first (`page_counter_try_charge`).
#[inline(never)]
fn tightest<L: Load>(mut css: Css<L>) -> Limit<L> {
    let mut found = Limit {
        css: None,
        pages: 0,
        left: i64::MAX,
    };
    for _ in 0..MAX_LIMITS {
        for counter in [Counter::Memory, Counter::MemoryAndSwap] {
            if let Some((usage, max)) = css.charged(counter)
                && max < UNLIMITED
            {
                let left = max.wrapping_sub(usage) as i64;
                if left < found.left {
                    found = Limit {
                        css: Some(css),
                        pages: max,
                        left,
                    };
                }
            }
        }
        let Some(parent) = css.parent() else { break };
        css = parent;
    }
    found
}

/// The slot that measures the cgroup of the limit: its own, or that of its nearest tracked ancestor; where it lies above all
/// that is tracked, the target's.
#[inline(always)]
fn measured<L: Load>(victim: u64, limit: Option<Css<L>>) -> Option<Tracked> {
    if let Some(limit) = limit
        && let Some(tracked) = Tracked::by_key(walk(limit))
    {
        return Some(tracked);
    }
    let mut top = None;
    up(victim, |tracked| top = Some(tracked));
    top
}

#[inline(always)]
fn highest(a: u64, b: u64) -> u64 {
    if a > b { a } else { b }
}
