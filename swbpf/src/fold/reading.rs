//! Everything that was read of one target at one moment.

use serde::{Deserialize, Serialize};
use swbpf_common::level::Band;

use super::{memory::to_bytes, times::take_off};
use crate::{
    probe::{Histograms, Losses, Peek, SlotReading},
    sampled::{
        cgroupfs::{CpuFiles, EffectiveLimit, MemoryFiles},
        procfs::Process,
    },
};

/// One reading. Everything but `kernel` is sampled.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Reading {
    /// When: monotonic clock.
    pub ns: u64,
    /// What the kernel programs hold.
    pub kernel: Option<KernelReading>,
    /// The memory files.
    pub memory: MemoryFiles,
    /// The CPU files.
    pub cpu: CpuFiles,
    /// The lowest limit that holds.
    pub limit: Option<EffectiveLimit>,
    /// Its processes.
    pub processes: Vec<Process>,
    /// CPU time of sw-bpf itself until now.
    pub own_cpu_ns: u64,
    /// Whether that was spent inside of the target, and is to be taken off.
    pub takes_own_off: bool,
    /// Whether the cgroup has been removed: then there are no files.
    pub is_gone: bool,
}

impl Reading {
    /// Keeps what a removed cgroup cannot tell any more and what does not fall: its high-water mark, its CPU time, its limit.
    pub(super) fn keep_last(&mut self, before: &Self, slack_bytes: u64) {
        self.keep_mark(before, slack_bytes);
        self.cpu = before.cpu.clone();
        self.limit.clone_from(&before.limit);
    }

    /// The same of the high-water mark, if it is no lower than what was needed since, but for as much as the kernel takes off the
    /// charge before it takes it off the statistics.
    fn keep_mark(&mut self, before: &Self, slack_bytes: u64) {
        if self.memory.peak_bytes.is_some() {
            // It was read before the cgroup went.
            return;
        }
        let needed = self
            .kernel
            .as_ref()
            .map(|kernel| to_bytes(kernel.slot.peak.level));
        let mark = before.memory.peak_bytes;
        let reason = match mark {
            Some(mark) if needed > Some(mark + slack_bytes) => {
                Some("the cgroup was removed before it was read again".to_owned())
            }
            _ => before.memory.unknown.get("peak_bytes").cloned(),
        };
        self.memory.unknown.remove("peak_bytes");
        match reason {
            Some(reason) => drop(self.memory.unknown.insert("peak_bytes".into(), reason)),
            None => self.memory.peak_bytes = mark,
        }
    }

    /// The same at the moment at which the target was removed, or at `least_ns`: no thread of it ran since, and what was seen of its
    /// time since was not its own.
    #[must_use]
    pub fn at_removal(mut self, ns: u64, least_ns: u64) -> Self {
        let ns = ns.max(least_ns);
        let Some(since) = self.ns.checked_sub(ns) else {
            return self;
        };
        self.ns = ns;
        if let Some(KernelReading { histograms, slot, .. }) = &mut self.kernel {
            end_earlier(histograms, since, slot.level);
        }
        self
    }

    /// The same target when it was born, with nothing in it, if it was born with a slot at `ns`.
    #[must_use]
    pub fn at_birth(&self, ns: u64) -> Self {
        let mut birth = self.clone();
        birth.ns = ns;
        birth.processes = Vec::new();
        birth.memory = MemoryFiles::default();
        birth.cpu.empty();
        if let Some(kernel) = &mut birth.kernel {
            kernel.slot = SlotReading::at_birth(ns);
            kernel.histograms = Histograms {
                bucket_ns: kernel.histograms.bucket_ns,
                ..Histograms::default()
            };
            kernel.after_files = None;
            kernel.is_flushed = false;
        }
        birth
    }

    /// What is not the kernel programs'.
    pub(super) fn files_alone(&self) -> Self {
        Self {
            ns: self.ns,
            kernel: None,
            memory: self.memory.clone(),
            cpu: self.cpu.clone(),
            limit: self.limit.clone(),
            processes: self.processes.clone(),
            own_cpu_ns: self.own_cpu_ns,
            takes_own_off: self.takes_own_off,
            is_gone: self.is_gone,
        }
    }

    /// Takes out where the time went by level, which is told of the last reading alone, and is most of what a reading is.
    pub(super) fn take_times(&mut self) -> Vec<u64> {
        self.kernel.as_mut().map_or_else(Vec::new, |kernel| {
            kernel.histograms.timeline = Vec::new();
            std::mem::take(&mut kernel.histograms.levels_ns)
        })
    }

    /// What was lost until then.
    pub fn losses(&self) -> Losses {
        self.kernel
            .as_ref()
            .map(|kernel| kernel.losses)
            .unwrap_or_default()
    }
}

/// What the kernel programs hold of a target at one moment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KernelReading {
    /// Its slot.
    pub slot: SlotReading,
    /// Where its time went.
    pub histograms: Histograms,
    /// What was lost since the programs were loaded.
    pub losses: Losses,
    /// The slot right after the memory files were read, and how far its level can have been from there meanwhile, in
    /// pages; `None` where that is not known.
    pub after_files: Option<(Peek, u64)>,
    /// Whether the memory files were up to date: no change since the kernel last flushed its statistics.
    pub is_flushed: bool,
}

/// Takes the last `since` off. Memory of a target that was removed is at `level` by now, and was above it while the kernel went on to
/// free it: what is not there of that time is in the bands above.
fn end_earlier(histograms: &mut Histograms, since: u64, level: i64) {
    let band = Band::of(u64::try_from(level).unwrap_or(0)).number();
    let bands = histograms.levels_ns.len();
    take_off(
        &mut histograms.levels_ns,
        (band..bands).chain((0..band).rev()),
        since,
    );
    let by_count = &mut histograms.concurrency_ns;
    let mut left: Vec<u64> = by_count.values().copied().collect();
    let counts = left.len();
    take_off(&mut left, 0..counts, since);
    for (time, left) in by_count.values_mut().zip(left) {
        *time = left;
    }
}

/// A look at the processes of a target while its memory was near a peak.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Scan {
    /// Needed memory at the look, in pages from the start values.
    pub level: i64,
    /// The processes.
    pub processes: Vec<Process>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histograms(levels_ns: &[u64], concurrency_ns: &[(u32, u64)]) -> Histograms {
        Histograms {
            levels_ns: levels_ns.to_vec(),
            concurrency_ns: concurrency_ns.iter().copied().collect(),
            ..Histograms::default()
        }
    }

    #[test]
    fn time_after_the_removal_is_taken_off_where_memory_was_then() {
        let mut removed = histograms(&[7, 20, 100], &[(0, 60), (1, 67)]);
        end_earlier(&mut removed, 5, 0);
        assert_eq!(removed.levels_ns, [2, 20, 100]);
        assert_eq!(removed.concurrency_ns, [(0, 55), (1, 67)].into());
    }

    #[test]
    fn time_in_which_memory_still_fell_is_taken_off_the_bands_above() {
        let mut removed = histograms(&[7, 20, 100], &[(0, 10), (2, 117)]);
        end_earlier(&mut removed, 40, 0);
        assert_eq!(removed.levels_ns, [0, 0, 87]);
        assert_eq!(removed.concurrency_ns, [(0, 0), (2, 87)].into());
        let band = Band::of(1).number();
        let mut risen = histograms(&[9, 3], &[(0, 12)]);
        assert_eq!(band, 1);
        end_earlier(&mut risen, 5, 1);
        assert_eq!(risen.levels_ns, [7, 0]);
    }
}
