//! Memory that the kernel keeps on behalf of a process.

use support::measure::MIB;

use crate::truth::{FOOTPRINT, check_peak, measure, page_tables};

/// 500 pipes of 16 pages, and less than a page for the structures of each.
#[test]
fn pipes() {
    let Some(run) = measure(&["pipes", "--count", "500", "--hold-ms", "0"]) else {
        return;
    };
    let payload = 500 * (64 << 10);
    check_peak(&run.summary, payload, FOOTPRINT + 500 * 4096);
    assert!(run.summary.memory.peak.expect("a peak").kernel_bytes >= payload);
}

/// The buffers around what is sent are up to half as large again.
#[test]
fn sockets() {
    let Some(run) = measure(&["sockets", "--count", "100", "--hold-ms", "0"]) else {
        return;
    };
    let payload = run.output.trim().strip_prefix("payload ").expect("what was sent");
    let payload: u64 = payload.parse().expect("bytes");
    assert!(payload > MIB, "{payload}");
    check_peak(&run.summary, payload, FOOTPRINT + payload / 2);
    assert!(run.summary.memory.peak.expect("a peak").kernel_bytes >= payload);
}

/// Nothing but page tables, and 1/512 of it for the tables above them.
#[test]
fn tables_of_pages() {
    let Some(run) = measure(&["page-tables", "--size", "32M", "--hold-ms", "0"]) else {
        return;
    };
    let size = 32 * MIB;
    check_peak(&run.summary, size, FOOTPRINT + page_tables(size));
    let peak = run.summary.memory.peak.expect("a peak");
    if let Some(bytes) = peak.page_tables_bytes {
        assert!(bytes >= size, "{bytes} bytes");
    } else {
        // Changes that kprobes skip are not counted: the sum is held against the files, but none of its parts is.
        assert_eq!(run.summary.probes.rung, "kprobe");
        let reason = run.summary.unknown.get("memory.peak.page_tables_bytes");
        assert!(reason.is_some(), "{:?}", run.summary.unknown);
    }
}
