//! Cgroups and processes that come and go.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use swbpf_common::notice::{BORN, GONE, MOVED};

use crate::{
    atomic,
    kernel::{Css, Task},
    notice::{Cause, tell},
    track::{Tracked, walk},
};

/// `cgroup_mkdir(struct cgroup *cgrp, const char *path)`: no task is in it yet, and nothing is charged to it.
#[btf_tracepoint(function = "cgroup_mkdir")]
pub fn cgroup_mkdir(ctx: BtfTracePointContext) -> i32 {
    tell_cgroup(Css(ctx.arg(0)), BORN)
}

/// `cgroup_rmdir(struct cgroup *cgrp, const char *path)`: empty; pages may stay charged to it.
#[btf_tracepoint(function = "cgroup_rmdir")]
pub fn cgroup_rmdir(ctx: BtfTracePointContext) -> i32 {
    tell_cgroup(Css(ctx.arg(0)), GONE)
}

/// `struct cgroup` begins with its own subsystem state.
#[inline(always)]
fn tell_cgroup(css: Css, kind: u32) -> i32 {
    if let Some(tracked) = Tracked::by_key(walk(css)) {
        tell(
            tracked,
            kind,
            Cause {
                cgroup_id: css.cgroup_id(),
                ..Cause::default()
            },
        );
    }
    0
}

/// `cgroup_attach_task(struct cgroup *dst_cgrp, const char *path, struct task_struct *task, bool threadgroup)`: the task
/// may be on a CPU, so the reader is asked to look.
#[btf_tracepoint(function = "cgroup_attach_task")]
pub fn cgroup_attach_task(ctx: BtfTracePointContext) -> i32 {
    let css = Css(ctx.arg(0));
    if let Some(tracked) = Tracked::by_key(walk(css)) {
        // SAFETY: a word of the slot.
        unsafe { atomic::fetch_add(&raw mut (*tracked.slot).moved_in, 1) };
        tell(
            tracked,
            MOVED,
            Cause {
                cgroup_id: css.cgroup_id(),
                ..Cause::default()
            },
        );
    }
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

/// `sched_process_exit(struct task_struct *p, …)`
#[btf_tracepoint(function = "sched_process_exit")]
pub fn sched_process_exit(ctx: BtfTracePointContext) -> i32 {
    let task = Task(ctx.arg(0));
    if task.pid() == task.tgid()
        && let Some(tracked) = Tracked::by_key(walk(task.css()))
    {
        // SAFETY: a word of the slot.
        unsafe { atomic::fetch_add(&raw mut (*tracked.slot).ended, 1) };
    }
    0
}
