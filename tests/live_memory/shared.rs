//! Memory that several processes have, or could have: it counts once.

use support::measure::{MIB, Run};
use support::need_bpf;
use swbpf::snapshot::Snapshot;

use crate::truth::{CHILD, FOOTPRINT, check_peak, measure, page_tables};

const SIZE: u64 = 64 * MIB;

#[test]
fn anonymous() {
    let Some(run) = measure(&["shared-anon", "--size", "64M", "--hold-ms", "0"]) else {
        return;
    };
    check_peak(&run.summary, SIZE, FOOTPRINT + page_tables(SIZE));
    check_shmem(&run.summary);
}

#[test]
fn memfd() {
    let Some(run) = measure(&["memfd", "--size", "64M", "--hold-ms", "0"]) else {
        return;
    };
    check_peak(&run.summary, SIZE, FOOTPRINT + page_tables(SIZE));
    check_shmem(&run.summary);
}

/// Written, not mapped: in no process's resident set.
#[test]
fn file_on_tmpfs() {
    let dir = tempfile::tempdir_in("/dev/shm").expect("a directory on a tmpfs");
    let path = dir.path().join("file");
    let path = path.to_str().expect("a name of letters");
    let Some(run) = measure(&["tmpfs", "--size", "64M", "--hold-ms", "0", "--path", path]) else {
        return;
    };
    // The index of the file's pages is kernel memory: at most 1/64 of them.
    check_peak(&run.summary, SIZE, FOOTPRINT + SIZE / 64);
    check_shmem(&run.summary);
}

/// All that was asked for is shared memory, to the page, and nothing is page cache that could be taken back.
fn check_shmem(summary: &Snapshot) {
    let peak = summary.memory.peak.as_ref().expect("a peak");
    assert_eq!(peak.shmem_bytes, SIZE, "{peak:?}");
    assert!(peak.file_bytes < Some(MIB), "{peak:?}");
}

/// Each of four children gets its own copy of the 16 MiB that it writes to.
#[test]
fn copied_on_write() {
    let workload = [
        "cow",
        "--size",
        "64M",
        "--children",
        "4",
        "--write",
        "16M",
        "--hold-ms",
        "0",
    ];
    let Some(run) = measure(&workload) else { return };
    let allowance = FOOTPRINT + 4 * CHILD + 5 * page_tables(SIZE);
    check_peak(&run.summary, SIZE + 4 * 16 * MIB, allowance);
    assert_eq!(run.summary.processes.started, Some(5));
}

/// Eight children read all of it. Resident sets, which count it for each, sum to nine times as much.
#[test]
fn read_by_many() {
    if !need_bpf() {
        return;
    }
    let workload = [
        "shared-readers",
        "--size",
        "64M",
        "--children",
        "8",
        "--until-stdin",
    ];
    let mut run = Run::start(&[], &workload);
    run.process.ready();
    run.progress("resident sets of all", |line| {
        line.memory.rss_sum_bytes >= Some(9 * SIZE)
    });
    let summary = run.finish().summary;
    check_peak(&summary, SIZE, FOOTPRINT + 8 * CHILD + 9 * page_tables(SIZE));
    assert!(summary.memory.rss_inflation > Some(8.0), "{:?}", summary.memory);
}
