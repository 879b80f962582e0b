//! CPU time is what the kernel's own accounting has, for programs of known CPU time.

mod attached;
mod kernel;
mod runs;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use support::pace;
use swbpf::snapshot::{Concurrency, Snapshot};

use kernel::Truth;

/// How often a measurement is taken until one is whole.
///
/// Some virtual machines lose events of the scheduler: kernel text that is patched to fire them stays unpatched in the
/// address spaces of the oldest processes, and who comes to a CPU from there comes unseen. What was charged late is told
/// as such, and may be off; a measurement that tells of none has no excuse.
const TRIES: usize = 2;

/// How far times that say the same may be apart.
const SHARE: f64 = 0.001;

/// Takes a measurement until it is without fault.
///
/// # Panics
///
/// Where none is, or where one is at fault that tells of no switch found late.
fn agreed(mut measure: impl FnMut() -> (Snapshot, Truth)) -> Snapshot {
    let mut all = Vec::new();
    for _ in 0..TRIES {
        let (snapshot, truth) = measure();
        let faults = faults(&snapshot, truth);
        if faults.is_empty() {
            return snapshot;
        }
        let late = snapshot.loss.as_ref().expect("what was lost").unseen_switches;
        assert!(late > 0, "nothing was lost, and yet: {faults:#?}");
        all.push((late, faults));
    }
    panic!("no measurement is without fault: {all:#?}");
}

/// What is wrong with a measurement: its CPU time is that of the kernel's accounting; the histogram is of all the time,
/// and tells the same CPU time as the processors do.
fn faults(snapshot: &Snapshot, truth: Truth) -> Vec<String> {
    let (cpu, window) = (&snapshot.cpu, snapshot.window_seconds);
    let busy = cpu.busy_seconds.expect("CPU time");
    let at_once = cpu.concurrency.as_ref().expect("a histogram");
    has_its_quantiles(at_once);
    let threads = at_once.seconds.iter().map(|(&k, spent)| f64::from(k) * spent);
    let mut faults: Vec<_> = [
        (
            "cores by time",
            cpu.busy_cores.expect("busy cores") * window,
            busy,
        ),
        ("all of the histogram", at_once.seconds.values().sum(), window),
        ("threads of the histogram", threads.sum(), busy),
        (
            "processors",
            cpu.per_cpu_busy_seconds.iter().flat_map(BTreeMap::values).sum(),
            busy,
        ),
    ]
    .into_iter()
    .filter(|(_, told, other)| (told - other).abs() > other * SHARE + 100e-6)
    .map(|(what, told, other)| format!("{what}: {told:.6} s, not {other:.6} s"))
    .collect();
    if !truth.range().contains(&busy) {
        faults.push(format!("CPU time: {busy:.6} s, not {:.6?}", truth.range()));
    }
    faults
}

/// p50, p95 and the most are those of the histogram.
fn has_its_quantiles(at_once: &Concurrency) {
    let sum: f64 = at_once.seconds.values().sum();
    for (told, share) in [(at_once.p50, 0.5), (at_once.p95, 0.95)] {
        let below = |k| at_once.seconds.range(..k).map(|(_, spent)| spent).sum::<f64>() / sum;
        assert!(
            below(told) < share && share <= below(told + 1) + 1e-9,
            "{told} at {share}: {at_once:?}"
        );
    }
    assert_eq!(at_once.seconds.keys().next_back(), Some(&at_once.max));
}

/// CPU time of a program that is to take `known` seconds, and takes up to `more` beyond that on a machine of today, to start
/// and to wait. Where that is emulated its two CPUs take turns on one, so that each takes for its own what the other had.
fn takes(known: f64, more: f64) -> RangeInclusive<f64> {
    let slower = f64::from(pace::factor()) * if pace::factor() > 1 { 2.0 } else { 1.0 };
    known * 0.99..=known + more * slower
}

fn near(value: Option<f64>, range: RangeInclusive<f64>) {
    assert!(
        value.is_some_and(|value| range.contains(&value)),
        "{value:?}, not in {range:?}"
    );
}
