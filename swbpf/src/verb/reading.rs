//! One reading of everything that is known of a target.

use super::{count::Counting, scan::Scanner};
use crate::{
    error::Error,
    fold::{KernelReading, Reading},
    job::cgroup::Cgroup,
    probe::{Histograms, Probe, SlotId, SlotReading, monotonic_ns},
    sampled::cgroupfs::{CpuFiles, LimitLevel, MemoryFiles, effective_limit},
};

/// Time after the begin of a flush in which it may still be under way.
const FLUSH_NS: u64 = 50_000_000;
/// A slot that is read within this is read at once.
const AT_ONCE_NS: u64 = 500_000;
/// Tries to read a slot at once.
const READ_TRIES: usize = 5;

/// Takes it.
pub fn reading(
    cgroup: &Cgroup,
    counting: Option<&Counting>,
    scanner: &mut Scanner,
    limits: &[LimitLevel],
) -> Result<Reading, Error> {
    let before = counting
        .map(|Counting { probe, slot }| probe.borrow().peek(*slot))
        .transpose()?;
    let files_ns = monotonic_ns();
    let memory = scanner.memory(cgroup);
    let kernel = counting
        .map(|Counting { probe, slot }| {
            let probe = probe.borrow();
            let after = probe.peek(*slot)?;
            let flushed_ns = probe.flushed_ns()?;
            let (state, histograms) = at_once(&probe, *slot)?;
            Ok::<_, Error>(KernelReading {
                after_files: before
                    .and_then(|before| after.spread_since(&before, files_ns))
                    .map(|spread| (after, spread)),
                is_flushed: is_flushed(flushed_ns, state.last_change_ns, files_ns),
                histograms,
                losses: probe.losses()?,
                slot: state,
            })
        })
        .transpose()?;
    let own_cpu_ns = own_cpu_ns();
    Ok(Reading {
        ns: kernel
            .as_ref()
            .map_or_else(monotonic_ns, |kernel| kernel.slot.read_ns),
        kernel,
        memory,
        cpu: cpu(cgroup, scanner, own_cpu_ns),
        limit: effective_limit(cgroup, limits),
        processes: scanner.processes(cgroup).to_vec(),
        own_cpu_ns,
        takes_own_off: scanner.takes_own_off(),
        is_gone: !cgroup.exists(),
    })
}

/// What the programs hold of the slot, and the kernel's counter of charged memory; all else is as it was at `before`.
pub fn fresh(counting: &Counting, cgroup: &Cgroup, before: &Reading) -> Result<Reading, Error> {
    let probe = counting.probe.borrow();
    let slot = probe.read_after_look(counting.slot)?;
    let mut reading = before.clone();
    reading.ns = slot.read_ns;
    if let Some(kernel) = &mut reading.kernel {
        kernel.histograms.timeline = probe.timeline_since(counting.slot, before.ns)?;
        kernel.histograms.concurrency_ns = probe.concurrency_ns(counting.slot)?;
        kernel.losses = probe.losses_of_round()?;
        kernel.after_files = None;
        kernel.is_flushed = false;
        kernel.slot = slot;
    }
    reading.memory.current_bytes = MemoryFiles::read_current(cgroup);
    Ok(reading)
}

/// CPU time by the files, without that of sw-bpf itself where it is to be taken off.
fn cpu(cgroup: &Cgroup, scanner: &Scanner, own_cpu_ns: u64) -> CpuFiles {
    let mut files = CpuFiles::read(cgroup);
    if scanner.takes_own_off() {
        files.usage_ns = files.usage_ns.map(|usage| usage.saturating_sub(own_cpu_ns));
    }
    files
}

/// A slot and its histograms at one moment, so that their times sum to the same span: where the reader was held up, as
/// on a host with more to do than CPUs, it reads again, and takes the quickest of all.
fn at_once(probe: &Probe, slot: SlotId) -> Result<(SlotReading, Histograms), Error> {
    let read = || {
        let begin_ns = monotonic_ns();
        let read = (probe.read(slot)?, probe.histograms(slot)?);
        Ok::<_, Error>((monotonic_ns() - begin_ns, read))
    };
    let mut quickest = read()?;
    for _ in 1..READ_TRIES {
        if quickest.0 < AT_ONCE_NS {
            break;
        }
        let again = read()?;
        if again.0 < quickest.0 {
            quickest = again;
        }
    }
    Ok(quickest.1)
}

/// CPU time of this process until now.
pub fn own_cpu_ns() -> u64 {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    spent.tv_sec as u64 * 1_000_000_000 + spent.tv_nsec as u64
}

/// Whether files that were read at `files_ns` hold all changes: none since the last flush, which has ended.
pub fn is_flushed(flushed_ns: Option<u64>, last_change_ns: u64, files_ns: u64) -> bool {
    flushed_ns.is_some_and(|flushed| flushed > last_change_ns && flushed + FLUSH_NS < files_ns)
}
