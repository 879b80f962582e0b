//! Pages stay with the cgroup that they were charged to, whatever becomes of the process and of the cgroup.
//!
//! The kernel programs are in the hands of the test here, and told levels are counted from the cgroup's birth.

use std::fs;

use support::measure::{MIB, Process, cgroup_below, load_probe, own_cgroup, wait_until};
use support::need_bpf;
use swbpf::job::cgroup::OwnCgroup;
use swbpf::probe::{Peek, Probe, SlotId, Start};
use swbpf_common::slot::KERNEL;

use crate::truth::{FOOTPRINT, page_tables};

const SIZE: u64 = 64 * MIB;

fn track(probe: &mut Probe, own: &OwnCgroup) -> SlotId {
    let slot = probe.track(own.cgroup().id(), Start::default(), 0);
    slot.expect("room in the table")
}

fn bytes(pages: i64) -> u64 {
    // Below 0 where kernel memory was given back that was not seen to be taken.
    u64::try_from(pages).unwrap_or(0) * rustix::param::page_size() as u64
}

fn level(probe: &Probe, slot: SlotId) -> u64 {
    bytes(probe.peek(slot).expect("a level").level)
}

fn peak(probe: &Probe, slot: SlotId) -> u64 {
    bytes(probe.read(slot).expect("a slot").peak.level)
}

/// As the kernel charges it: the old cgroup keeps the pages, the new one gets what is touched from then on.
#[test]
fn process_moved_away() {
    if !need_bpf() {
        return;
    }
    let (old, new) = (own_cgroup(), own_cgroup());
    let mut probe = load_probe();
    let (old_slot, new_slot) = (track(&mut probe, &old), track(&mut probe, &new));
    let mut hold = Process::workload_in(&old, &["hold", "--size", "64M"]);
    hold.ready();
    let procs = new.cgroup().path().join("cgroup.procs");
    fs::write(procs, hold.id().to_string()).expect("moved");
    assert!(old.cgroup().procs().expect("processes").is_empty());
    let (kept, brought) = (level(&probe, old_slot), level(&probe, new_slot));
    let highest = SIZE + FOOTPRINT + page_tables(SIZE);
    assert!((SIZE..=highest).contains(&kept), "{kept}");
    assert!(brought <= FOOTPRINT, "{brought}");
    assert!(hold.finish().0.success());
    wait_until("the old cgroup has its pages back", || {
        level(&probe, old_slot) <= MIB
    });
    for (slot, range) in [(old_slot, SIZE..=highest), (new_slot, 0..=FOOTPRINT)] {
        let peak = peak(&probe, slot);
        assert!(range.contains(&peak), "{peak} is not within {range:?}");
    }
    assert_eq!(probe.read(new_slot).expect("a slot").moved_in, 1);
}

/// A file on a tmpfs outlives the process that wrote it and the cgroup that it is charged to. The cgroup above counts it
/// until it is deleted.
#[test]
fn removed_with_pages_left() {
    if !need_bpf() {
        return;
    }
    let own = own_cgroup();
    let mut probe = load_probe();
    let slot = track(&mut probe, &own);
    let below = cgroup_below(own.cgroup().path(), "below");
    let dir = tempfile::tempdir_in("/dev/shm").expect("a directory on a tmpfs");
    let file = dir.path().join("file");
    let path = file.to_str().expect("a name of letters");
    let mut shell = Process::start(
        std::process::Command::new("sh").args([
            "-c",
            "echo $$ >$0/cgroup.procs && exec \"$@\"",
            below.to_str().expect("a name of letters"),
            support::measure::program("workload")
                .to_str()
                .expect("a name of letters"),
            "tmpfs",
            "--size=64M",
            "--keep",
            "--path",
            path,
        ]),
    );
    assert!(shell.finish().0.success());
    wait_until("the cgroup is empty", || fs::remove_dir(&below).is_ok());
    // A file system keeps at most 1/64 to find the pages.
    let left = level(&probe, slot);
    assert!((SIZE..=SIZE + SIZE / 64 + MIB).contains(&left), "{left}");
    fs::remove_file(&file).expect("it was left behind");
    wait_until("the level returns", || level(&probe, slot) <= MIB);
    let peak = peak(&probe, slot);
    assert!((SIZE..=SIZE + SIZE / 64 + FOOTPRINT).contains(&peak), "{peak}");
}

/// An interrupt that frees memory while a program counts is not seen by that program. It frees memory of the kernel's own,
/// never anonymous or shared memory: of these not one page may be lost, however often that happens.
#[test]
fn skipped_programs_lose_no_page_of_a_process() {
    if !need_bpf() {
        return;
    }
    let own = own_cgroup();
    let mut probe = load_probe();
    let slot = track(&mut probe, &own);
    for _ in 0..3 {
        for workload in [
            &["short-processes", "--count", "300"][..],
            &["sockets", "--count", "100", "--hold-ms", "0"],
            &["fault-storm", "--mib", "16", "--rounds", "10"],
            &[
                "cow",
                "--size",
                "32M",
                "--children",
                "4",
                "--write",
                "8M",
                "--hold-ms",
                "0",
            ],
            &["shared-anon", "--size", "32M", "--hold-ms", "0"],
        ] {
            assert!(Process::workload_in(&own, workload).finish().0.success());
        }
    }
    wait_until("all that is not the kernel's own is given back", || {
        let Peek { level, parts, .. } = probe.peek(slot).expect("a level");
        level == parts[KERNEL]
    });
    let losses = probe.losses().expect("losses");
    assert_eq!(losses.collisions, 0, "{losses:?}");
}
