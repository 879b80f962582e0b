//! Busy time of each CPU and the number of threads on a CPU at once.
//!
//! A switch between two threads of one slot changes nothing and costs one look-up; time is read only where a slot comes
//! to a CPU or leaves it.

use aya_ebpf::{
    helpers::{bpf_get_current_task_btf, bpf_jiffies64, bpf_ktime_get_ns},
    macros::{btf_tracepoint, raw_tracepoint},
    programs::{BtfTracePointContext, RawTracePointContext},
};
use swbpf_common::{
    health::Clocks,
    running::{self, COUNTS, Concurrency},
};

use crate::{
    atomic,
    kernel::Task,
    maps::{BUSY, CLOCKS, CONCURRENCY, ON_CPU, OnCpu, count_collision, count_unseen_switch, next_epoch},
    track::{MAX_LEVELS, Tracked, User, resolve},
};

/// Tries of a compare-exchange before it is given up and counted.
const TRIES: u32 = 8;

/// Counts that late news are taken from, one after another.
const RECOUNTED: u64 = 8;

/// `sched_switch(bool preempt, struct task_struct *prev, struct task_struct *next, …)`
#[btf_tracepoint(function = "sched_switch")]
pub fn sched_switch(ctx: BtfTracePointContext) -> i32 {
    let (prev, next) = (Task::new(ctx.arg(1)), Task::new(ctx.arg(2)));
    let Some(cpu) = ON_CPU.get_ptr_mut(0) else {
        return 0;
    };
    let key = slot_of(next);
    // SAFETY: this CPU's own value; switches of one CPU do not overlap.
    unsafe {
        if (*cpu).task != prev.0 as u64 {
            catch_up(cpu, prev);
        }
        (*cpu).task = next.0 as u64;
        if (*cpu).slot != key {
            hand_over(cpu, key, now_ns());
        }
    }
    0
}

/// A task that is on the CPU without having been seen to come: it was there before the programs, or its coming was not
/// told to them. The scheduler knows how long it has been there.
#[inline(never)]
fn catch_up(cpu: *mut OnCpu, task: Task) {
    let key = slot_of(task);
    // SAFETY: this CPU's own values.
    unsafe {
        let since = (*cpu).since_ns;
        if (*cpu).slot != key {
            if (*cpu).task != 0 {
                count_unseen_switch();
            }
            let came = now_ns().saturating_sub(task.stint_ns());
            hand_over(cpu, key, if came > since { came } else { since });
        }
        (*cpu).task = task.0 as u64;
    }
}

/// Run on each CPU by the reader, never attached: begins a new epoch, looks at what is on the CPU now, and closes the
/// span of what was. So a task that never switches is seen at attach, and all time until now is charged at each drain.
#[raw_tracepoint]
pub fn look(_ctx: RawTracePointContext) -> i32 {
    next_epoch();
    // SAFETY: the current task.
    let task = Task::new(unsafe { bpf_get_current_task_btf() } as *const u8);
    let key = slot_of(task);
    // SAFETY: this CPU's own value.
    if let Some(cpu) = ON_CPU.get_ptr_mut(0)
        && unsafe { (*cpu).is_changing } == 0
    {
        // SAFETY: as above.
        if unsafe { (*cpu).task } != task.0 as u64 {
            catch_up(cpu, task);
        }
        hand_over(cpu, key, now_ns());
    }
    if let Some(clocks) = CLOCKS.get_ptr_mut(0) {
        // SAFETY: the reader runs this on one CPU after another.
        unsafe {
            *clocks = Clocks {
                tick: bpf_jiffies64(),
                ns: bpf_ktime_get_ns(),
            }
        };
    }
    0
}

/// The task on this CPU has moved itself to the slot of `key`.
#[inline(always)]
pub fn move_current(key: u64) {
    let Some(cpu) = ON_CPU.get_ptr_mut(0) else {
        return;
    };
    // SAFETY: this CPU's own value; no switch can come between, and an interrupt keeps off.
    unsafe {
        if (*cpu).slot != key {
            atomic::store(&raw mut (*cpu).is_changing, 1);
            hand_over(cpu, key, now_ns());
            atomic::store(&raw mut (*cpu).is_changing, 0);
        }
    }
}

/// The task on this CPU begins to end. The scheduler takes it for newly picked when it then leaves its group
/// (`sched_autogroup_exit_task`), so where it came unseen this is the last moment that knows since when it has been there.
#[inline(always)]
pub fn end_current(task: Task) {
    let Some(cpu) = ON_CPU.get_ptr_mut(0) else {
        return;
    };
    // SAFETY: this CPU's own value; no switch can come between, and an interrupt keeps off.
    unsafe {
        if (*cpu).task != task.0 as u64 {
            atomic::store(&raw mut (*cpu).is_changing, 1);
            catch_up(cpu, task);
            atomic::store(&raw mut (*cpu).is_changing, 0);
        }
    }
}

#[inline(always)]
fn now_ns() -> u64 {
    // SAFETY: no arguments.
    unsafe { bpf_ktime_get_ns() }
}

/// The idle task belongs to no slot.
#[inline(always)]
fn slot_of(task: Task) -> u64 {
    if task.pid() == 0 {
        0
    } else {
        resolve(task.css(), User::Switch as u32)
    }
}

/// Charges the slot that was on the CPU, whatever the task belongs to by now, and puts `key` there.
#[inline(never)]
fn hand_over(cpu: *mut OnCpu, key: u64, now: u64) {
    // SAFETY: this CPU's own values.
    unsafe {
        let old = (*cpu).slot;
        let span = now - (*cpu).since_ns;
        let mut above = old;
        for _ in 0..MAX_LEVELS {
            if above == 0 {
                break;
            }
            above = leave(above, span, if old == key { 0 } else { u64::MAX }, now);
        }
        (*cpu).slot = key;
        (*cpu).since_ns = now;
        if old != key {
            let mut above = key;
            for _ in 0..MAX_LEVELS {
                if above == 0 {
                    break;
                }
                above = leave(above, 0, 1, now);
            }
        }
    }
}

/// Charges a slot, and changes its number of threads on a CPU. The key of the slot above is returned. Like `account`, it is
/// checked once.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn leave(key: u64, span: u64, change: u64, now: u64) -> u64 {
    let Some(tracked) = Tracked::by_key(key) else {
        return 0;
    };
    if let Some(busy) = BUSY.get_ptr_mut(tracked.number) {
        // SAFETY: this CPU's own value.
        unsafe { *busy += span };
    }
    if change != 0 {
        change_running(tracked, change, now);
    }
    tracked.parent()
}

/// Adds `change` (1, or -1 as a wrapped number) to the count of threads on a CPU of a target.
#[inline(always)]
fn change_running(tracked: Tracked, change: u64, now: u64) {
    if !tracked.is_target() {
        return;
    }
    let Some(concurrency) = CONCURRENCY.get_ptr_mut(tracked.number) else {
        return;
    };
    // SAFETY: words of the slot and its histogram.
    unsafe {
        let word = &raw mut (*tracked.slot).running;
        for _ in 0..TRIES {
            let old = atomic::load(word);
            let count = running::count_of(old);
            let span = running::span(old, now);
            let since = old.wrapping_add(span);
            if atomic::compare_exchange(word, old, running::pack(count.wrapping_add(change), since)) {
                if span != 0 {
                    add(concurrency, count, span);
                }
                // What was counted since then was counted without this change.
                let late = running::lateness(old, now);
                if late != 0 {
                    recount(concurrency, count, change, late);
                }
                return;
            }
        }
    }
    count_collision();
}

/// Adds to the time with `count` threads on a CPU.
#[inline(never)]
fn add(concurrency: *mut Concurrency, count: u64, span: u64) {
    let index = index(count);
    // SAFETY: the index is masked.
    unsafe { atomic::fetch_add(&raw mut (*concurrency).ns[index & (COUNTS - 1)], span) };
}

/// Moves `late` nanoseconds to one thread more or less (`change`): from `count` what there is, then from the counts above,
/// which it had while others ran too. So the histogram keeps its sum, and tells the same CPU time as the processors do.
#[inline(never)]
fn recount(concurrency: *mut Concurrency, count: u64, change: u64, late: u64) {
    let mut left = late;
    for more in 0..RECOUNTED {
        let from = count + more;
        let taken = take(concurrency, from, left);
        add(concurrency, from.wrapping_add(change), taken);
        left -= taken;
        if left == 0 {
            return;
        }
    }
}

/// Takes from that time what there is of it, `span` at most.
#[inline(never)]
fn take(concurrency: *mut Concurrency, count: u64, span: u64) -> u64 {
    let index = index(count);
    // SAFETY: the index is masked.
    unsafe {
        let word = &raw mut (*concurrency).ns[index & (COUNTS - 1)];
        let there = atomic::load(word);
        let taken = if there < span { there } else { span };
        atomic::fetch_add(word, taken.wrapping_neg());
        taken
    }
}

/// The last number stands for all above it.
#[inline(always)]
fn index(count: u64) -> usize {
    if count < COUNTS as u64 {
        count as usize
    } else {
        COUNTS - 1
    }
}
