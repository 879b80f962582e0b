//! What a workload may need beside the amount that is asked of it, and how a summary is held against that.

use support::measure::{MIB, Measured, Run};
use support::need_bpf;
use swbpf::snapshot::{Loss, Snapshot, Source};

/// The most that a workload needs for itself: heap, stack, its own kernel memory.
pub const FOOTPRINT: u64 = 3 * MIB / 2;

/// The most that each further process needs for itself.
pub const CHILD: u64 = 6 * MIB / 10;

/// Page tables of a mapping, in each process that has it: 8 bytes a page.
pub const fn page_tables(mapped: u64) -> u64 {
    mapped / 512
}

/// Runs a workload to its end under `sw-bpf run`; `None` where this machine cannot measure.
pub fn measure(workload: &[&str]) -> Option<Measured> {
    need_bpf().then(|| {
        let measured = Run::start(&[], workload).finish();
        assert_eq!(measured.code, Some(0), "{:?}", measured.summary.exit);
        measured
    })
}

/// Fails unless the peak is at least `known` and at most `allowance` more, and is the sum of its parts.
///
/// Both bounds give way by the error bound that the summary tells: without a loss it is 0.
#[track_caller]
pub fn check_peak(summary: &Snapshot, known: u64, allowance: u64) {
    let memory = &summary.memory;
    let needed = memory.needed_peak_bytes.expect("a peak");
    let peak = memory.peak.as_ref().expect("the moment of the peak");
    let bound = error_bound(summary);
    assert_eq!(memory.source, Source::Kernel, "{:?}", summary.probes);
    assert!(
        (known.saturating_sub(bound)..=known + allowance + bound).contains(&needed),
        "{needed} is not from {known} to {allowance} more, give or take {bound}: {peak:?}"
    );
    assert_eq!(
        peak.anon_bytes + peak.shmem_bytes + peak.kernel_bytes,
        needed,
        "{peak:?}"
    );
    assert!(
        peak.at_seconds <= summary.coverage.seconds && memory.needed_bytes <= Some(needed),
        "{memory:?}"
    );
}

/// How far the numbers of a summary can be off.
///
/// A run is followed from its first instruction, so it is by nothing at all, unless an interrupt gave kernel memory back,
/// of whatever cgroup, while the same program was at work on that CPU: then the summary must tell both.
#[track_caller]
pub fn error_bound(summary: &Snapshot) -> u64 {
    let loss = summary.loss.expect("what was lost");
    let Loss {
        kernel_memory_misses,
        lru_misses: _,
        other_misses,
        notices_dropped,
        collisions,
        unseen_switches: _,
        without_row: _,
        too_deep,
        rebased,
    } = loss;
    assert_eq!(
        (other_misses, notices_dropped, collisions, too_deep),
        (0, 0, 0, 0),
        "{loss:?}"
    );
    let Some(kernel_memory_misses) = kernel_memory_misses else {
        // By kprobes no one knows; the kernel's files tell, up to what they lag.
        return summary.memory.error_bound_bytes.expect("a bound");
    };
    // Where memory changed at each comparison since the loss there is no bound: a change is at most a batch of 64 pages.
    let at_most = kernel_memory_misses * (64 << 12);
    let bound = summary.memory.error_bound_bytes.unwrap_or(at_most);
    if summary.coverage.from_start && kernel_memory_misses == 0 {
        assert_eq!((bound, rebased), (0, 0), "{loss:?}");
    }
    bound
}
