//! What the peak was made of, when it was, and how long it lasted.

use support::measure::MIB;
use swbpf::snapshot::Level;

use crate::cache::on_disk;
use crate::truth::{FOOTPRINT, check_peak, error_bound, measure, page_tables};

#[test]
fn mixture() {
    let (anon, shmem, file, pipes) = (64 * MIB, 32 * MIB, 48 * MIB, 200 * (64 << 10));
    let (_dir, path) = on_disk();
    let path = path.to_str().expect("a name of letters");
    let Some(run) = measure(&[
        "mixture", "--anon", "64M", "--shmem", "32M", "--file", "48M", "--pipes", "200", "--path", path,
    ]) else {
        return;
    };
    // Structures of the pipes, page tables, and what the file system keeps to find the cached pages.
    let kernel = 200 * 4096 + page_tables(anon + shmem) + file / 32;
    check_peak(&run.summary, anon + shmem + pipes, FOOTPRINT + kernel);
    let bound = error_bound(&run.summary);
    let within = |part: u64, known: u64, more: u64| {
        (known.saturating_sub(bound)..=known + more + bound).contains(&part)
    };
    let peak = run.summary.memory.peak.expect("a peak");
    assert!(within(peak.anon_bytes, anon, FOOTPRINT), "{peak:?}");
    assert_eq!(peak.shmem_bytes, shmem, "{peak:?}");
    assert!(within(peak.kernel_bytes, pipes, kernel + FOOTPRINT), "{peak:?}");
    assert!(within(peak.file_bytes.expect("known"), file, MIB), "{peak:?}");
    assert!(run.summary.memory.peak_bytes >= Some(anon + shmem + pipes + file));
}

/// Up by four steps of 16 MiB and down again, half a second on each but the highest, and there a quarter.
#[test]
fn staircase() {
    let workload = ["staircase", "--size", "64M", "--steps", "4", "--step-ms", "250"];
    let Some(run) = measure(&workload) else { return };
    check_peak(&run.summary, 64 * MIB, FOOTPRINT + page_tables(64 * MIB));
    let bound = error_bound(&run.summary);
    let memory = run.summary.memory;
    let levels = memory.levels.expect("levels");
    for step in 1..=4 {
        let from = step * 16 * MIB - bound;
        let to = step * 16 * MIB + FOOTPRINT + page_tables(64 * MIB) + bound;
        let seconds = seconds(
            levels
                .iter()
                .filter(|level| level.to_bytes > from && level.from_bytes <= to),
        );
        let slept = if step == 4 { 0.25 } else { 0.5 };
        assert!(seconds >= slept, "{seconds} s at step {step}: {levels:?}");
    }
    // Only the highest step is above 90 % of the peak; what lies below it took twice three quarters of a second.
    let high = memory.high.expect("time near the peak");
    let threshold = 48 * MIB..=58 * MIB + bound;
    assert!(threshold.contains(&high.threshold_bytes), "{high:?}");
    let longest = seconds(&levels) - 1.5;
    assert!((0.25..=longest).contains(&high.seconds), "{high:?}");
    let peak = memory.peak.expect("a peak");
    assert!(peak.at_seconds + peak.at_error_seconds >= 0.75, "{peak:?}");
}

/// To 0.1 %. Between a look at the clock and one at the levels `sw-bpf` may be kept from its CPU, at the begin or at the
/// end, and then the sum is longer: hence three tries.
#[test]
fn levels_sum_to_the_elapsed_time() {
    let mut tries = Vec::new();
    for _ in 0..3 {
        let Some(run) = measure(&["anon", "--size", "16M", "--hold-ms", "1000"]) else {
            return;
        };
        let elapsed = run.summary.coverage.seconds;
        let sum = seconds(&run.summary.memory.levels.expect("levels"));
        if (sum - elapsed).abs() <= elapsed / 1000.0 {
            return;
        }
        tries.push((sum, elapsed));
    }
    panic!("sum and elapsed time: {tries:?}");
}

fn seconds<'a>(levels: impl IntoIterator<Item = &'a Level>) -> f64 {
    levels.into_iter().map(|level| level.seconds).sum()
}
