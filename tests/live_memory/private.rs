//! Private anonymous memory, by each way into the address space.

use support::measure::{MIB, Run};
use support::need_bpf;
use swbpf::snapshot::Snapshot;

use crate::truth::{FOOTPRINT, check_peak, error_bound, measure, page_tables};

/// Of most programs here.
const SIZE: u64 = 64 * MIB;

/// Given back at once, so that only who counts every page can know.
#[test]
fn small_pages() {
    let Some(run) = measure(&["anon", "--size", "64M", "--hold-ms", "0"]) else {
        return;
    };
    check_peak(&run.summary, SIZE, FOOTPRINT + page_tables(SIZE));
    let peak = run.summary.memory.peak.expect("a peak");
    assert!(peak.anon_bytes >= SIZE, "{peak:?}");
    assert_eq!((peak.shmem_bytes, peak.thp_bytes), (0, Some(0)));
}

#[test]
fn huge_pages() {
    let Some(run) = measure(&["anon", "--size", "64M", "--thp", "always", "--hold-ms", "0"]) else {
        return;
    };
    check_peak(&run.summary, SIZE, FOOTPRINT + page_tables(SIZE));
    let thp = run.summary.memory.peak.expect("a peak").thp_bytes;
    // The first and the last 2 MiB need not be aligned, and now and then the kernel has no huge page at hand.
    let thp = thp.expect("known");
    assert!((SIZE / 2..=SIZE).contains(&thp), "{thp}");
}

#[test]
fn heap() {
    let Some(run) = measure(&["brk", "--size", "64M", "--hold-ms", "0"]) else {
        return;
    };
    check_peak(&run.summary, SIZE, FOOTPRINT + page_tables(SIZE));
}

/// Both stacks are filled by frames of two pages, which end up to 64 KiB beyond what was asked for.
#[test]
fn stacks() {
    for of in ["main", "thread"] {
        let Some(run) = measure(&["stack", "--size", "64M", "--of", of, "--hold-ms", "0"]) else {
            return;
        };
        check_peak(&run.summary, SIZE, FOOTPRINT + page_tables(SIZE) + (64 << 10));
    }
}

/// Pages are there from the moment that they are locked, untouched.
#[test]
fn locked() {
    let Some(run) = measure(&["mlock", "--size", "64M", "--hold-ms", "0"]) else {
        return;
    };
    check_peak(&run.summary, SIZE, FOOTPRINT + page_tables(SIZE));
}

/// While pages move, their page tables may exist twice.
#[test]
fn moved_in_the_address_space() {
    let Some(run) = measure(&["mremap", "--size", "64M", "--hold-ms", "0"]) else {
        return;
    };
    check_peak(&run.summary, SIZE, FOOTPRINT + 2 * page_tables(SIZE));
}

/// What is released lazily is still there: the kernel has not wanted it back.
#[test]
fn released_lazily() {
    let Some((now, run)) = released("madvise-free") else {
        return;
    };
    assert!(now >= SIZE, "{now}");
    check_peak(&run, SIZE, FOOTPRINT + page_tables(SIZE));
}

#[test]
fn released_at_once() {
    let Some((now, run)) = released("madvise-dontneed") else {
        return;
    };
    let again = 16 * MIB;
    let bound = error_bound(&run);
    let highest = again + FOOTPRINT + page_tables(SIZE) + bound;
    assert!((again.saturating_sub(bound)..=highest).contains(&now), "{now}");
    check_peak(&run, SIZE, FOOTPRINT + page_tables(SIZE));
}

/// Touches it all, releases it all, touches 16 MiB again: what is needed then, and the summary.
fn released(how: &str) -> Option<(u64, Snapshot)> {
    if !need_bpf() {
        return None;
    }
    let mut run = Run::start(&[], &[how, "--size", "64M", "--again", "16M", "--until-stdin"]);
    run.process.ready();
    // A line from before that moment has a higher level, or a lower one without the 16 MiB.
    let after = run.progress("a line", |_| true).coverage.seconds + 0.5;
    let line = run.progress("a later line", |line| line.coverage.seconds > after);
    Some((line.memory.needed_bytes?, run.finish().summary))
}

/// Page tables and the like are given back up to 50 ms after the process is gone, so the summary may still have them.
#[test]
fn exit_without_free() {
    let Some(run) = measure(&["leak", "--size", "64M"]) else {
        return;
    };
    check_peak(&run.summary, SIZE, FOOTPRINT + page_tables(SIZE));
    let left = run.summary.memory.needed_bytes.expect("known");
    assert!(
        left <= page_tables(SIZE) + FOOTPRINT + error_bound(&run.summary),
        "{left}"
    );
}

/// Besides its memory each thread has a stack, and page tables that others do not share.
#[test]
fn threads_at_once() {
    let Some(run) = measure(&[
        "threads-fault",
        "--threads",
        "8",
        "--size-each",
        "16M",
        "--hold-ms",
        "0",
    ]) else {
        return;
    };
    let size = 8 * 16 * MIB;
    check_peak(&run.summary, size, FOOTPRINT + page_tables(size) + 8 * (64 << 10));
    assert_eq!(run.summary.processes.threads_started, Some(8));
}
