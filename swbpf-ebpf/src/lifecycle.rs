//! Cgroups and processes that come and go.

use aya_ebpf::{helpers::bpf_get_current_pid_tgid, macros::btf_tracepoint, programs::BtfTracePointContext};
use swbpf_common::notice::{BORN, GONE, MOVED, NO_SLOT};

use crate::{
    atomic,
    kernel::{Cgroup, Task},
    maps::offset,
    notice::{Cause, tell},
    sched::move_current,
    track::{Tracked, walk},
};

/// `cgroup_mkdir(struct cgroup *cgrp, const char *path)`: no task is in it yet, and nothing is charged to it.
#[btf_tracepoint(function = "cgroup_mkdir")]
pub fn cgroup_mkdir(ctx: BtfTracePointContext) -> i32 {
    tell_cgroup(Cgroup(ctx.arg(0)), BORN)
}

/// `cgroup_rmdir(struct cgroup *cgrp, const char *path)`: empty; pages may stay charged to it.
#[btf_tracepoint(function = "cgroup_rmdir")]
pub fn cgroup_rmdir(ctx: BtfTracePointContext) -> i32 {
    tell_cgroup(Cgroup(ctx.arg(0)), GONE)
}

/// Cgroup ids are unique within a hierarchy only: one of another hierarchy is none of ours.
#[inline(always)]
fn tell_cgroup(cgroup: Cgroup, kind: u32) -> i32 {
    if let Some(css) = cgroup.css()
        && let Some(tracked) = Tracked::by_key(walk(css))
    {
        let cause = Cause {
            cgroup_id: css.cgroup_id(),
            ..Cause::default()
        };
        tell(tracked.number, kind, cause);
    }
    0
}

/// `cgroup_attach_task(struct cgroup *dst_cgrp, const char *path, struct task_struct *task, bool threadgroup)`: the task
/// may be on a CPU, so the reader is asked to look, also where it is moved to a cgroup that is not tracked.
#[btf_tracepoint(function = "cgroup_attach_task")]
pub fn cgroup_attach_task(ctx: BtfTracePointContext) -> i32 {
    let task = Task(ctx.arg(2));
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
    let mut number = NO_SLOT;
    if let Some(tracked) = Tracked::by_key(key) {
        number = tracked.number;
        // SAFETY: a word of the slot.
        unsafe { atomic::fetch_add(&raw mut (*tracked.slot).moved_in, 1) };
    }
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
    let child = Task(ctx.arg(1));
    if let Some(tracked) = Tracked::by_key(walk(child.css())) {
        // SAFETY: words of the slot.
        unsafe {
            let process = child.pid() == child.tgid();
            let word = if process {
                &raw mut (*tracked.slot).started
            } else {
                &raw mut (*tracked.slot).threads_started
            };
            atomic::fetch_add(word, 1);
        }
    }
    0
}

/// `sched_process_exit(struct task_struct *p, bool group_dead)`; the second from Linux 6.16 on, before that a process ends
/// with its first thread.
#[btf_tracepoint(function = "sched_process_exit")]
pub fn sched_process_exit(ctx: BtfTracePointContext) -> i32 {
    let task = Task(ctx.arg(0));
    let is_last = if offset!(exit_tells_last) == 0 {
        task.pid() == task.tgid()
    } else {
        ctx.arg::<u32>(1) & 0xff != 0
    };
    if is_last && let Some(tracked) = Tracked::by_key(walk(task.css())) {
        // SAFETY: a word of the slot.
        unsafe { atomic::fetch_add(&raw mut (*tracked.slot).ended, 1) };
    }
    0
}
