//! The kernel programs by themselves: what the commands of sw-bpf do not reach.

use support::measure::{MIB, Process, own_cgroup, plan_here};
use support::need_bpf;
use swbpf::error::Error;
use swbpf::probe::{Probe, Room, Start};

/// Pages that each CPU may keep to itself in this test, as on a host of many CPUs.
const BATCH_PAGES: u64 = 16;

/// A batch may hide so much and no more: below the truth by at most what all CPUs keep, and never above it.
#[test]
fn a_batch_hides_at_most_its_bound() {
    if !need_bpf() {
        return;
    }
    let own = own_cgroup();
    let mut plan = plan_here();
    assert_eq!(plan.offsets.batch_pages, 0, "a machine of few CPUs has none");
    plan.offsets.batch_pages = BATCH_PAGES;
    let mut exact = Probe::load(&plan_here(), Room::targets(1), None).expect("kernel programs");
    let mut batched = Probe::load(&plan, Room::targets(1), None).expect("kernel programs");
    let of_exact = exact
        .track(own.cgroup().id(), Start::default(), 0)
        .expect("a slot");
    let of_batched = batched
        .track(own.cgroup().id(), Start::default(), 0)
        .expect("a slot");

    let threads = Process::workload_in(&own, &["threads-fault", "--threads", "4", "--size-each", "16M"]);
    assert!({ threads }.finish().0.success());

    let exact = exact.read(of_exact).expect("a reading").peak.level;
    let batched = batched.read(of_batched).expect("a reading").peak.level;
    let cpus = aya::util::online_cpus().expect("CPUs").len();
    let bound = (BATCH_PAGES * cpus as u64).cast_signed();
    assert!(exact >= (64 * MIB / 4096).cast_signed(), "{exact} pages");
    assert!(
        (exact - bound..=exact + bound).contains(&batched),
        "{batched} of {exact} pages, bound {bound}"
    );
}

/// A full table is told, and a slot that is given back can be used again from nothing.
#[test]
fn a_full_table_is_told_and_a_freed_slot_begins_anew() {
    if !need_bpf() {
        return;
    }
    let (one, other) = (own_cgroup(), own_cgroup());
    let mut probe = Probe::load(&plan_here(), Room::targets(1), None).expect("kernel programs");
    let slot = probe
        .track(one.cgroup().id(), Start::default(), 0)
        .expect("a slot");
    assert!(
        Process::workload_in(&one, &["anon", "--size", "8M"])
            .finish()
            .0
            .success()
    );
    assert!(probe.read(slot).expect("a reading").peak.level >= (8 * MIB / 4096).cast_signed());
    assert!(matches!(
        probe.track(other.cgroup().id(), Start::default(), 0),
        Err(Error::TableFull { capacity: 1 })
    ));
    probe.untrack(one.cgroup().id(), slot).expect("tracked");
    let slot = probe
        .track(other.cgroup().id(), Start::default(), 0)
        .expect("the freed slot");
    let reading = probe.read(slot).expect("a reading");
    assert_eq!((reading.level, reading.peak.level, reading.started), (0, 0, 0));
    assert!(reading.busy_ns.is_empty());
}
