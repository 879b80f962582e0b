//! Processes that end without a word, and those that are over before anyone looks.

use rustix::process::{Pid, Signal, kill_process};
use support::measure::{MIB, Run};
use support::need_bpf;

use crate::truth::{FOOTPRINT, check_peak, error_bound, measure, page_tables};

#[test]
fn killed() {
    if !need_bpf() {
        return;
    }
    let size = 64 * MIB;
    let mut run = Run::start(&[], &["killed", "--size", "64M"]);
    run.process.ready();
    let pids = run.cgroup().procs().expect("processes");
    let [pid] = pids[..] else {
        panic!("one process, not {pids:?}")
    };
    let pid = Pid::from_raw(pid.cast_signed()).expect("a process");
    kill_process(pid, Signal::KILL).expect("a live process");
    let run = run.finish();
    let exit = run.summary.exit.expect("an end");
    assert_eq!((run.code, exit.code, exit.signal), (Some(128 + 9), None, Some(9)));
    check_peak(&run.summary, size, FOOTPRINT + page_tables(size));
    let left = run.summary.memory.needed_bytes.expect("known");
    assert!(
        left <= page_tables(size) + FOOTPRINT + error_bound(&run.summary),
        "{left}"
    );
}

/// Each is counted, and the peak is that of few at a time: at most 64 KiB for each that is gone but not given back.
#[test]
fn thousand_short_ones() {
    for by in ["fork", "exec"] {
        let Some(run) = measure(&["short-processes", "--count", "1000", "--by", by]) else {
            return;
        };
        let processes = run.summary.processes;
        assert_eq!(
            (processes.started, processes.ended),
            (Some(1001), Some(1001)),
            "{by}"
        );
        check_peak(&run.summary, 0, FOOTPRINT + 1000 * (64 << 10));
    }
}
