//! Sends the few notices that are told at once.

use aya_ebpf::helpers::{bpf_get_current_comm, bpf_get_current_pid_tgid, bpf_ktime_get_ns};
use swbpf_common::notice::{COMM_LEN, Notice};

use crate::maps::{NOTICES, count_dropped_notice};

/// What a notice tells beside its kind, its moment and who caused it.
#[derive(Default)]
pub struct Cause {
    pub cgroup_id: u64,
    pub level: u64,
    pub peak: u64,
    pub limit_cgroup_id: u64,
    pub limit_pages: u64,
    pub limit_left: i64,
    pub victim_slot: u64,
    pub victim_is_first: u64,
    pub victim_pid: u32,
    pub victim_comm: [u8; COMM_LEN],
}

/// Sends a notice, or counts that there was no room.
#[inline(always)]
pub fn tell(slot: u32, kind: u32, cause: Cause) {
    let Some(mut entry) = NOTICES.reserve::<Notice>(0) else {
        return count_dropped_notice();
    };
    let notice = entry.as_mut_ptr();
    // SAFETY: the entry is a notice's size; every field is written.
    unsafe {
        (*notice).kind = kind;
        (*notice).slot = slot;
        (*notice).ns = bpf_ktime_get_ns();
        (*notice).cgroup_id = cause.cgroup_id;
        (*notice).level = cause.level;
        (*notice).peak = cause.peak;
        (*notice).limit_cgroup_id = cause.limit_cgroup_id;
        (*notice).limit_pages = cause.limit_pages;
        (*notice).limit_left = cause.limit_left;
        (*notice).victim_slot = cause.victim_slot;
        (*notice).victim_is_first = cause.victim_is_first;
        (*notice).pid = (bpf_get_current_pid_tgid() >> 32) as u32;
        (*notice).victim_pid = cause.victim_pid;
        (*notice).comm = bpf_get_current_comm().unwrap_or_default();
        (*notice).victim_comm = cause.victim_comm;
    }
    entry.submit(0);
}
