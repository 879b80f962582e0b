//! Cgroups and processes that come and go.

use aya_ebpf::{
    helpers::{bpf_get_current_pid_tgid, bpf_ktime_get_ns},
    macros::btf_tracepoint,
    programs::BtfTracePointContext,
};
use swbpf_common::notice::{BORN, EMPTIED, GONE, MOVED, NO_SLOT, POPULATED};

use crate::{
    atomic, birth,
    kernel::{Cgroup, Task, Typed},
    maps::{offset, root},
    notice::{Cause, tell},
    sched::{end_current, move_current},
    track::{Tracked, up, walk},
};

/// `cgroup_mkdir(struct cgroup *cgrp, const char *path)`: no task is in it yet, and nothing is charged to it. It gets a slot of
/// its own where it is to be told on its own.
#[btf_tracepoint(function = "cgroup_mkdir")]
pub fn cgroup_mkdir(ctx: BtfTracePointContext) -> i32 {
    let cgroup = Cgroup(ctx.arg(0));
    if cgroup.root() != root() {
        return 0;
    }
    let own = match Tracked::by_key(walk(cgroup.css())) {
        Some(above) => birth::own_slot(cgroup, above),
        None => birth::target_slot(cgroup),
    };
    // The others count for the one above them: a job that makes very many of them is not to fill the buffer of notices.
    if let Some(own) = own {
        tell_cgroup(cgroup, own, BORN);
    }
    0
}

/// `cgroup_rmdir(struct cgroup *cgrp, const char *path)`: empty; pages may stay charged to it.
#[btf_tracepoint(function = "cgroup_rmdir")]
pub fn cgroup_rmdir(ctx: BtfTracePointContext) -> i32 {
    let cgroup = Cgroup(ctx.arg(0));
    if cgroup.root() != root() {
        return 0;
    }
    birth::unwatch(cgroup);
    if let Some(own) = own(cgroup) {
        // SAFETY: a word of the slot; reads a clock.
        unsafe { atomic::store(&raw mut (*own.slot).gone_ns, bpf_ktime_get_ns()) };
        tell_cgroup(cgroup, own, GONE);
    }
    0
}

/// `cgroup_notify_populated(struct cgroup *cgrp, const char *path, int val)`: the first process came into it or below it, or
/// the last one left.
#[btf_tracepoint(function = "cgroup_notify_populated")]
pub fn cgroup_notify_populated(ctx: BtfTracePointContext) -> i32 {
    let cgroup = Cgroup(ctx.arg(0));
    if cgroup.root() != root() {
        return 0;
    }
    if let Some(tracked) = own(cgroup) {
        let is_populated = ctx.arg::<u32>(2) != 0;
        // SAFETY: a word of the slot; reads a clock.
        unsafe {
            let emptied_ns = if is_populated { 0 } else { bpf_ktime_get_ns() };
            atomic::store(&raw mut (*tracked.slot).emptied_ns, emptied_ns);
        }
        tell_cgroup(cgroup, tracked, if is_populated { POPULATED } else { EMPTIED });
    }
    0
}

/// The slot of this very cgroup.
#[inline(always)]
fn own(cgroup: Cgroup) -> Option<Tracked> {
    let tracked = Tracked::by_key(walk(cgroup.css()))?;
    // SAFETY: a word of the slot.
    let id = unsafe { atomic::load(&raw const (*tracked.slot).cgroup_id) };
    (id == cgroup.css().cgroup_id()).then_some(tracked)
}

#[inline(always)]
fn tell_cgroup(cgroup: Cgroup, tracked: Tracked, kind: u32) {
    let cause = Cause {
        cgroup_id: cgroup.css().cgroup_id(),
        ..Cause::default()
    };
    tell(tracked.number, kind, cause);
}

/// `cgroup_attach_task(struct cgroup *dst_cgrp, const char *path, struct task_struct *task, bool threadgroup)`: the task
/// may be on a CPU, so the reader is asked to look, also where it is moved to a cgroup that is not tracked.
#[btf_tracepoint(function = "cgroup_attach_task")]
pub fn cgroup_attach_task(ctx: BtfTracePointContext) -> i32 {
    let task = Task::<Typed>::new(ctx.arg(2));
    let css = task.css();
    // A move within another hierarchy.
    if css.cgroup().0 != ctx.arg::<*const u8>(0) {
        return 0;
    }
    let key = walk(css);
    // A command of `run` moves itself, and may have ended by the time that the reader looks.
    if task.pid() == bpf_get_current_pid_tgid() as u32 {
        move_current(key);
    }
    let number = Tracked::by_key(key).map_or(NO_SLOT, |tracked| tracked.number);
    // SAFETY: a word of the slot.
    up(key, |tracked| unsafe { count(&raw mut (*tracked.slot).moved_in) });
    let cause = Cause {
        cgroup_id: css.cgroup_id(),
        ..Cause::default()
    };
    tell(number, MOVED, cause);
    0
}

/// `sched_process_fork(struct task_struct *parent, struct task_struct *child)`
#[btf_tracepoint(function = "sched_process_fork")]
pub fn sched_process_fork(ctx: BtfTracePointContext) -> i32 {
    let child = Task::<Typed>::new(ctx.arg(1));
    let is_process = child.pid() == child.tgid();
    // SAFETY: words of the slot.
    up(walk(child.css()), |tracked| unsafe {
        if is_process {
            count(&raw mut (*tracked.slot).started);
        } else {
            count(&raw mut (*tracked.slot).threads_started);
        }
    });
    0
}

/// `sched_process_exit(struct task_struct *p, bool group_dead)`; the second from Linux 6.16 on, before that a process ends
/// with its first thread.
#[btf_tracepoint(function = "sched_process_exit")]
pub fn sched_process_exit(ctx: BtfTracePointContext) -> i32 {
    let task = Task::<Typed>::new(ctx.arg(0));
    end_current(task);
    let is_last = if offset!(exit_tells_last) == 0 {
        task.pid() == task.tgid()
    } else {
        ctx.arg::<u32>(1) & 0xff != 0
    };
    if is_last {
        // SAFETY: a word of the slot.
        up(walk(task.css()), |tracked| unsafe {
            count(&raw mut (*tracked.slot).ended)
        });
    }
    0
}

#[inline(always)]
unsafe fn count(word: *mut u64) {
    // SAFETY: the caller's pointer is to a word of a slot.
    unsafe { atomic::fetch_add(word, 1) };
}
