//! Looks at the processes of a target, as often as is cheap.

use std::collections::BTreeMap;

use crate::{
    job::cgroup::{Cgroup, Controller},
    probe::monotonic_ns,
    sampled::{
        cgroupfs::MemoryFiles,
        procfs::{self, Process, SharedOut},
    },
};

/// All looks together may take at most one part in this many of the time.
const SHARE: u64 = 50;

/// The last look, and when the next one may be.
#[derive(Debug)]
pub struct Scanner {
    last: Vec<Process>,
    next_ns: u64,
    /// Where no cgroup counts the memory of the target: its processes' at the last look, and when the next one may be.
    shares: BTreeMap<u32, SharedOut>,
    next_share_ns: u64,
    /// Of sw-bpf itself, where it is to be taken off.
    own: Option<u32>,
    /// Of sw-bpf too, and never looked at.
    stand_in: Option<u32>,
    /// One part in this many is for this target.
    share: u64,
}

impl Default for Scanner {
    fn default() -> Self {
        Self {
            last: Vec::new(),
            next_ns: 0,
            shares: BTreeMap::new(),
            next_share_ns: 0,
            own: None,
            stand_in: None,
            share: SHARE,
        }
    }
}

impl Scanner {
    /// One that leaves this process out.
    pub fn without(stand_in: Option<u32>) -> Self {
        Self {
            stand_in,
            ..Self::default()
        }
    }

    /// Leaves the process of sw-bpf itself out, and takes its memory off, where it runs inside of the target.
    pub fn take_own_off(&mut self) {
        self.own = Some(std::process::id());
    }

    /// There are so many targets that this process looks at.
    pub fn share_with(&mut self, targets: u64) {
        self.share = SHARE * targets;
    }

    /// Whether the process of sw-bpf itself is taken off.
    pub fn takes_own_off(&self) -> bool {
        self.own.is_some()
    }

    /// Memory by the files of the cgroup, or of its processes where it has none.
    pub fn memory(&mut self, cgroup: &Cgroup) -> MemoryFiles {
        if cgroup.dir(Controller::Memory).is_some() {
            let mut files = MemoryFiles::read(cgroup);
            if self.own.is_some() {
                files.take_off(&procfs::own());
            }
            return files;
        }
        let begin_ns = monotonic_ns();
        if begin_ns >= self.next_share_ns {
            self.shares = procfs::shares(&self.pids(cgroup));
            let end_ns = monotonic_ns();
            self.next_share_ns = end_ns + (end_ns - begin_ns) * self.share;
        }
        // Of those that have ended since, nothing is left.
        self.memory_below(cgroup)
    }

    /// That of a cgroup below the target, as of the same look.
    pub fn memory_below(&self, cgroup: &Cgroup) -> MemoryFiles {
        if cgroup.dir(Controller::Memory).is_some() {
            return MemoryFiles::read(cgroup);
        }
        let pids = cgroup.procs().unwrap_or_default();
        let shares: Vec<SharedOut> = pids
            .iter()
            .filter_map(|pid| self.shares.get(pid).copied())
            .collect();
        let is_any = !shares.is_empty();
        MemoryFiles::of_processes(is_any.then(|| shares.into_iter().sum()))
    }

    fn pids(&self, cgroup: &Cgroup) -> Vec<u32> {
        // A cgroup that ends while it is looked at has none.
        let mut pids = cgroup.procs().unwrap_or_default();
        pids.retain(|pid| ![self.own, self.stand_in].contains(&Some(*pid)));
        pids
    }

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
        self.last = procfs::processes(&self.pids(cgroup));
        let end_ns = monotonic_ns();
        self.next_ns = end_ns + (end_ns - begin_ns) * self.share;
        Some(&self.last)
    }
}
