//! Where nothing can be counted: what the files say every 50 ms, and how far that can be off.

use support::measure::{MIB, Run};
use support::need_bpf;
use swbpf::snapshot::Source;

#[test]
fn what_stays_is_seen_and_what_does_not_is_within_the_bound() {
    if !need_bpf() {
        return;
    }
    let sampled = ["--force-source", "sampled"];
    for (hold_ms, is_seen) in [("500", true), ("0", false)] {
        let run = Run::start(&sampled, &["anon", "--size", "64M", "--hold-ms", hold_ms]).finish();
        let memory = &run.summary.memory;
        assert_eq!(memory.source, Source::Sampled);
        let peak = memory.needed_peak_bytes.expect("a peak");
        let bound = memory.error_bound_bytes.expect("a bound");
        let charged = memory.peak_bytes.expect("the kernel's own high-water");
        assert!(charged >= 64 * MIB && peak + bound >= charged, "{memory:?}");
        if is_seen {
            assert!((64 * MIB - bound..=charged).contains(&peak), "{memory:?}");
            assert!(bound < 8 * MIB, "{bound}");
            assert!(memory.rss_sum_peak_bytes >= Some(64 * MIB), "{memory:?}");
        }
    }
}
