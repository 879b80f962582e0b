//! A limit on memory: what is not needed gives way to it, what is needed is killed by it.

use support::measure::{MIB, Run};
use support::need_bpf;

use crate::cache::on_disk;
use crate::truth::{FOOTPRINT, check_peak, error_bound, page_tables};

const LIMIT: u64 = 32 * MIB;

/// 128 MiB of a file are written and read through a mapping under a limit of 32 MiB. At most 1/32 of what is cached at
/// once is kernel memory of the file system.
#[test]
fn mapped_file_beyond_the_limit() {
    if !need_bpf() {
        return;
    }
    let (_dir, path) = on_disk();
    let path = path.to_str().expect("a name of letters");
    let workload = ["file-map", "--size", "128M", "--hold-ms", "0", "--path", path];
    let run = Run::start(&["--limit-mem", "32M"], &workload).finish();
    assert_eq!(run.code, Some(0));
    check_peak(&run.summary, 0, FOOTPRINT + page_tables(128 * MIB) + LIMIT / 32);
    assert!(run.summary.oom_kills.is_empty());
    // The kernel's counter went to the limit, and cannot tell that nothing was in need.
    let memory = &run.summary.memory;
    assert!(
        memory.peak_bytes > Some(LIMIT / 2) && memory.peak_bytes <= Some(LIMIT),
        "{memory:?}"
    );
}

/// The kill comes where the next page would not fit: the peak is the limit, less what the kernel keeps in hand per CPU.
#[test]
fn killed_at_the_limit() {
    if !need_bpf() {
        return;
    }
    let run = Run::start(&["--limit-mem", "32M"], &["anon", "--size", "64M"]).finish();
    assert_eq!(run.code, Some(128 + 9));
    check_peak(&run.summary, LIMIT - MIB, MIB);
    let [kill] = &run.summary.oom_kills[..] else {
        panic!("one kill, not {:?}", run.summary.oom_kills);
    };
    assert_eq!(
        (kill.victim.comm.as_str(), kill.limit_bytes),
        ("workload", Some(LIMIT))
    );
    let peak = run.summary.memory.needed_peak_bytes.expect("a peak");
    assert!(kill.needed_peak_bytes <= peak, "{kill:?}");
    assert!(
        kill.needed_bytes + MIB + error_bound(&run.summary) >= LIMIT,
        "{kill:?}"
    );
}
