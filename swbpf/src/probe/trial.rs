//! Whether the kernel calls the programs at all: it attaches them also where it then does not, and tracing of functions can be
//! switched off at any time (`kernel.ftrace_enabled`, `/sys/kernel/debug/kprobes/enabled`).

use std::ptr;

use anyhow::Context;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use super::{Probe, SlotId, Start};
use crate::error::Error;

/// Memory that is touched.
const BYTES: usize = 64 << 10;
const PAGE_BYTES: usize = 4096;
/// Tries before the programs count as deaf.
const TRIES: usize = 3;

impl Probe {
    /// Whether a change of memory is counted that this process causes in its own cgroup; `None` where no slot is free for a
    /// try. Once it was not, [`Losses::is_deaf`](super::Losses::is_deaf) stays.
    pub fn hears(&mut self) -> Result<Option<bool>, Error> {
        let own = self.own_cgroup_id;
        if let Ok(number) = self.maps.tracked.get(&own, 0) {
            return self.hears_in(SlotId(number)).map(Some);
        }
        let slot = match self.track(own, Start::default(), 0) {
            Err(Error::TableFull { .. }) => return Ok(None),
            slot => slot?,
        };
        let heard = self.hears_in(slot);
        self.untrack(own, slot)?;
        heard.map(Some)
    }

    fn hears_in(&self, slot: SlotId) -> Result<bool, Error> {
        for _ in 0..TRIES {
            let before = self.peek(slot)?;
            touch().context("touch memory of its own")?;
            if self.peek(slot)? != before {
                return Ok(true);
            }
        }
        self.is_deaf.set(true);
        Ok(false)
    }
}

/// Takes memory and gives it back.
fn touch() -> rustix::io::Result<()> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a mapping of its own, of which nothing is kept.
    unsafe {
        let memory = mmap_anonymous(ptr::null_mut(), BYTES, protection, MapFlags::PRIVATE)?;
        for at in (0..BYTES).step_by(PAGE_BYTES) {
            memory.cast::<u8>().add(at).write_volatile(1);
        }
        munmap(memory, BYTES)
    }
}
