//! Notices of the ring buffer.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd, OwnedFd},
};

use bytes::{Buf, Bytes};
use serde::{Deserialize, Serialize};
use swbpf_common::{
    level::BIAS,
    notice::{self, COMM_LEN, NOTICE_LEN},
};

use super::{Probe, SlotId};

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// A cgroup was made below a tracked one.
    Born,
    /// A cgroup at or below a tracked one was removed.
    Gone,
    /// A task was moved in: the CPUs must be looked at.
    Moved,
    /// The needed peak rose by 1 % since it was last told.
    Peak,
    /// A process is being killed for want of memory.
    Victim,
    /// The last process has left a tracked cgroup and all below it.
    Emptied,
    /// A process has come into a tracked cgroup that had none.
    Populated,
}

/// One notice.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Notice {
    /// What happened.
    pub what: What,
    /// To which slot.
    pub slot: SlotId,
    /// When: monotonic clock.
    pub ns: u64,
    /// The cgroup made, removed, emptied, populated, moved to, or of the victim.
    pub cgroup_id: u64,
    /// Needed memory then, in pages from the start values.
    pub level: i64,
    /// Needed peak until then, likewise.
    pub peak: i64,
    /// The limit that was nearest to its end at a kill.
    pub limit: Option<LimitHit>,
    /// The slot of the victim's own cgroup, or the nearest above it.
    pub victim_slot: SlotId,
    /// Whether the victim was the first process of its cgroup: its parent belongs to another.
    pub victim_is_first: bool,
    /// Who caused it: process id and name of the task.
    pub by: (u32, String),
    /// The victim: process id and name.
    pub victim: (u32, String),
}

/// A limit of memory at a kill, as the kernel's page counters have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitHit {
    /// Whose limit it is.
    pub cgroup_id: u64,
    /// The limit in pages.
    pub pages: u64,
    /// Pages that were left below it; negative where the kernel had let a charge pass (`force` in `try_charge_memcg`).
    pub left: i64,
}

impl Probe {
    /// The next notice, where one waits.
    pub fn next_notice(&mut self) -> Option<Notice> {
        loop {
            let item = self.maps.notices.next()?;
            if let Some(notice) = decode(Bytes::copy_from_slice(&item)) {
                return Some(notice);
            }
        }
    }

    /// A descriptor that is readable while a notice waits.
    pub fn notice_fd(&self) -> io::Result<OwnedFd> {
        // SAFETY: the ring buffer is open as long as `self` is.
        unsafe { BorrowedFd::borrow_raw(self.maps.notices.as_raw_fd()) }.try_clone_to_owned()
    }
}

/// The fields in the order of [`notice::Notice`].
fn decode(mut bytes: Bytes) -> Option<Notice> {
    if bytes.len() != NOTICE_LEN {
        return None;
    }
    let what = match bytes.get_u32_ne() {
        notice::BORN => What::Born,
        notice::GONE => What::Gone,
        notice::MOVED => What::Moved,
        notice::PEAK => What::Peak,
        notice::VICTIM => What::Victim,
        notice::EMPTIED => What::Emptied,
        notice::POPULATED => What::Populated,
        _ => return None,
    };
    let slot = SlotId(bytes.get_u32_ne());
    let ns = bytes.get_u64_ne();
    let cgroup_id = bytes.get_u64_ne();
    let level = bytes.get_u64_ne() as i64 - BIAS as i64;
    let peak = bytes.get_u64_ne() as i64 - BIAS as i64;
    let limit = LimitHit {
        cgroup_id: bytes.get_u64_ne(),
        pages: bytes.get_u64_ne(),
        left: bytes.get_i64_ne(),
    };
    let victim_slot = SlotId(u32::try_from(bytes.get_u64_ne()).unwrap_or(notice::NO_SLOT));
    let victim_is_first = bytes.get_u64_ne() != 0;
    let pid = bytes.get_u32_ne();
    let victim_pid = bytes.get_u32_ne();
    let by = (pid, comm(&bytes.split_to(COMM_LEN)));
    let victim = (victim_pid, comm(&bytes));
    Some(Notice {
        what,
        slot,
        ns,
        cgroup_id,
        level,
        peak,
        limit: (limit.cgroup_id != 0).then_some(limit),
        victim_slot,
        victim_is_first,
        by,
        victim,
    })
}

/// The name up to its end mark.
fn comm(bytes: &[u8]) -> String {
    let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}
