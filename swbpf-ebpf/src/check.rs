//! What the reader compares with what it knows of itself before any number is told, and the root of the hierarchy that it is in.

use aya_ebpf::{helpers::bpf_get_current_task_btf, macros::raw_tracepoint, programs::RawTracePointContext};

use crate::{
    kernel::{Task, Typed},
    maps::{CHECK, set_root},
};

/// Run once by the reader in its own context, never attached: tells what it sees through the offsets.
#[raw_tracepoint]
pub fn check(_ctx: RawTracePointContext) -> i32 {
    // SAFETY: the current task.
    let task = Task::<Typed>::new(unsafe { bpf_get_current_task_btf() } as *const u8);
    set_root(task.css().cgroup().root());
    if let Some(check) = CHECK.get_ptr_mut(0) {
        // SAFETY: the only value of its map.
        unsafe {
            (*check).pid = u64::from(task.pid());
            (*check).tgid = u64::from(task.tgid());
            (*check).cgroup_id = task.css().cgroup_id();
            (*check).comm = task.comm();
        }
    }
    0
}
