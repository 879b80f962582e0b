//! CPU time is what the kernel's own accounting has, for programs of known CPU time.

mod attached;
mod kernel;
mod runs;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use swbpf::snapshot::{Cpu, Snapshot};

use kernel::Truth;

/// How often a measurement is taken until one agrees.
///
/// Some virtual machines lose events of the scheduler: kernel text that is patched to fire them stays unpatched in the
/// address spaces of the oldest processes, and who comes to a CPU from there comes unseen. What is wrong by itself is
/// wrong each time.
const TRIES: usize = 5;

/// Takes a measurement until its CPU time agrees with the kernel's accounting.
///
/// # Panics
///
/// Where none does.
fn agreed(mut measure: impl FnMut() -> (Cpu, Truth)) -> Cpu {
    let mut told = Vec::new();
    for _ in 0..TRIES {
        let (cpu, truth) = measure();
        let busy = cpu.busy_seconds.expect("CPU time");
        if truth.range().contains(&busy) {
            return cpu;
        }
        told.push(format!("{busy:.6} s, not {:.6?}", truth.range()));
    }
    panic!("the kernel's accounting is another each time: {told:#?}");
}

/// The histogram is of all the time, and tells the same CPU time as the sum over processors; p50, p95 and the most are
/// its own.
fn is_consistent(snapshot: &Snapshot) {
    let (cpu, window) = (&snapshot.cpu, snapshot.window_seconds);
    let busy = cpu.busy_seconds.expect("CPU time");
    let cores = cpu.busy_cores.expect("busy cores");
    assert!(
        within(cores * window, busy, 0.001),
        "{cores} cores for {window} s, and {busy} s"
    );
    let at_once = cpu.concurrency.as_ref().expect("a histogram");
    let sum: f64 = at_once.seconds.values().sum();
    assert!(
        within(sum, window, 0.001),
        "{sum} s in the histogram, {window} s elapsed"
    );
    let spent: f64 = at_once
        .seconds
        .iter()
        .map(|(&k, spent)| f64::from(k) * spent)
        .sum();
    assert!(
        within(spent, busy, 0.001),
        "{spent} s of threads, {busy} s of processors"
    );
    let per_cpu: f64 = cpu.per_cpu_busy_seconds.iter().flat_map(BTreeMap::values).sum();
    assert!(within(per_cpu, busy, 1e-6), "{per_cpu} s of {busy} s");
    let most = *at_once.seconds.keys().next_back().expect("a number");
    assert_eq!(at_once.max, most);
    for (told, share) in [(at_once.p50, 0.5), (at_once.p95, 0.95)] {
        let up_to = |k| at_once.seconds.range(..k).map(|(_, spent)| spent).sum::<f64>() / sum;
        assert!(
            up_to(told) < share && share <= up_to(told + 1) + 1e-9,
            "{told} at {share}: {at_once:?}"
        );
    }
}

fn within(value: f64, truth: f64, share: f64) -> bool {
    (value - truth).abs() <= truth.abs() * share + 100e-6
}

fn near(value: Option<f64>, range: RangeInclusive<f64>) {
    assert!(
        value.is_some_and(|value| range.contains(&value)),
        "{value:?}, not in {range:?}"
    );
}
