//! Looks at the processes of a target, as often as is cheap.

use crate::{
    job::cgroup::Cgroup,
    probe::monotonic_ns,
    sampled::procfs::{self, Process},
};

/// A look may take at most one part in this many of the time.
const SHARE: u64 = 50;

/// The last look, and when the next one may be.
#[derive(Debug, Default)]
pub struct Scanner {
    last: Vec<Process>,
    next_ns: u64,
}

impl Scanner {
    /// The processes now, or those of the last look where a new one would cost too much.
    pub fn processes(&mut self, cgroup: &Cgroup) -> &[Process] {
        self.fresh(cgroup);
        &self.last
    }

    /// The next look is a new one, whatever it costs.
    pub fn renew(&mut self) {
        self.next_ns = 0;
    }

    /// Whether a process was there at the last look.
    pub fn is_populated(&self) -> bool {
        !self.last.is_empty()
    }

    /// The processes now, where a look does not cost too much.
    pub fn fresh(&mut self, cgroup: &Cgroup) -> Option<&[Process]> {
        let begin_ns = monotonic_ns();
        if begin_ns < self.next_ns {
            return None;
        }
        // A cgroup that ends while it is looked at has none.
        self.last = procfs::processes(&cgroup.procs().unwrap_or_default());
        let end_ns = monotonic_ns();
        self.next_ns = end_ns + (end_ns - begin_ns) * SHARE;
        Some(&self.last)
    }
}
