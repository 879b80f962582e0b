//! The end of a target: its last process has left, or it was removed.

use std::time::Duration;

use crate::probe::{Ended, monotonic_ns};

/// A target that was emptied may get a process again at once, as between two commands of a script: it has ended if none has
/// come within this time.
const CONFIRM: Duration = Duration::from_millis(100);

/// When the target counts as ended. It is read from the slot, when a notice or a look asks for it: a notice can be lost.
#[derive(Debug, Default)]
pub struct Ending {
    end_ns: Option<u64>,
}

impl Ending {
    /// Takes what the slot says now.
    pub fn see(&mut self, ended: Option<Ended>) {
        self.end_ns = ended.map(|ended| match ended {
            Ended::Removed(ns) => ns,
            Ended::Emptied(ns) => ns + CONFIRM.as_nanos() as u64,
        });
    }

    /// Time left until then.
    pub fn left(&self) -> Option<Duration> {
        let left_ns = self.end_ns?.saturating_sub(monotonic_ns());
        Some(Duration::from_nanos(left_ns))
    }
}
