//! The end of a target, as the kernel tells it: its last process has left, or it was removed.

use std::time::Duration;

use crate::probe::{Notice, What, monotonic_ns};

/// A target that was emptied may get a process again at once, as between two commands of a script: it has ended if none has
/// come within this time.
const CONFIRM: Duration = Duration::from_millis(100);

/// When the target counts as ended.
#[derive(Debug, Default)]
pub struct Ending {
    end_ns: Option<u64>,
}

impl Ending {
    /// Takes a notice.
    pub fn hear(&mut self, notice: &Notice, target: u64) {
        if notice.cgroup_id != target {
            return;
        }
        match notice.what {
            What::Gone => self.end_ns = Some(notice.ns),
            What::Emptied => self.end_ns = Some(notice.ns + CONFIRM.as_nanos() as u64),
            What::Populated => self.end_ns = None,
            _ => {}
        }
    }

    /// Time left until then.
    pub fn left(&self) -> Option<Duration> {
        let left_ns = self.end_ns?.saturating_sub(monotonic_ns());
        Some(Duration::from_nanos(left_ns))
    }
}
