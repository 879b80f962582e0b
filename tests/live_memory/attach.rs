//! Measuring what runs already: nothing of it is known at first but what the kernel's files say, which lag.

use support::measure::{MIB, Process, attach, own_cgroup};
use support::need_bpf;

use crate::truth::{FOOTPRINT, page_tables};

const SIZE: u64 = 64 * MIB;

/// The number of bytes behind a label of the summary, which tells one decimal.
fn told(summary: &str, label: &str) -> u64 {
    let row = summary
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(label));
    let row = row.unwrap_or_else(|| panic!("no {label} in {summary}"));
    let mut words = row.split_ascii_whitespace();
    let (number, unit) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let unit = match (number, unit) {
        ("none", _) => return 0,
        (_, "B") => 1,
        (_, "KiB") => 1 << 10,
        (_, "MiB") => MIB,
        _ => panic!("no number of bytes in {row}"),
    };
    (number.parse::<f64>().expect("a number") * unit as f64) as u64
}

/// The peak lies between the bounds, as far off as the summary tells; one decimal of a MiB is what rounding may do.
fn check_summary(summary: &str, known: u64, allowance: u64) {
    let (needed, bound) = (told(summary, "needed "), told(summary, "error bound "));
    let bound = bound + MIB / 10;
    assert!(
        (known - bound..=known + allowance + bound).contains(&needed),
        "{needed} is not from {known} to {allowance} more, give or take {bound}: {summary}"
    );
}

/// Attached while it holds everything: what comes after is less.
#[test]
fn late() {
    if !need_bpf() {
        return;
    }
    let own = own_cgroup();
    let mut hold = Process::workload_in(&own, &["hold", "--size", "64M"]);
    hold.ready();
    let mut attached = attach(own.cgroup());
    attached.line();
    assert!(hold.finish().0.success());
    let (status, summary) = attached.finish();
    assert!(status.success());
    check_summary(&summary, SIZE, FOOTPRINT + page_tables(SIZE));
}

/// Attached while memory comes and goes without a rest, 64 MiB at a time, so that whatever the files said at that moment is
/// wrong. The allowance is the level between two spikes, page tables among it.
#[test]
fn amid_allocation() {
    if !need_bpf() {
        return;
    }
    let own = own_cgroup();
    let spikes = [
        "spikes",
        "--min=64M",
        "--max=64M",
        "--max-hold-ms=0",
        "--count=1000000",
        "--step",
    ];
    let mut spikes = Process::workload_in(&own, &spikes);
    let mut spike = || {
        assert!(spikes.line().starts_with("spike "));
        spikes.step();
    };
    spike();
    let mut attached = attach(own.cgroup());
    let first = std::thread::scope(|scope| {
        let first = scope.spawn(|| attached.line());
        while !first.is_finished() {
            spike();
        }
        first.join()
    });
    assert!(first.expect("a line").contains("needed"));
    // All of one spike lies after the begin of the measurement.
    spike();
    spike();
    spikes.line();
    // Two looks at a level that rests.
    attached.line();
    attached.line();
    // It is nowhere near its end.
    drop(spikes);
    let (status, summary) = attached.finish();
    assert!(status.success());
    check_summary(&summary, SIZE, FOOTPRINT + page_tables(SIZE));
}
