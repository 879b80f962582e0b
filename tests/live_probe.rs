//! The kernel programs by themselves: what the commands of sw-bpf do not reach.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

use support::measure::{MIB, Process, cgroup_below, own_cgroup, plan_here, program};
use support::need_bpf;
use swbpf::error::Error;
use swbpf::probe::{Probe, Room, Start};

/// One target, and a few cgroups below it.
const ROOM: Room = Room { targets: 1, below: 4 };

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

/// Two leaves that spike one after the other: each has its own peak, and that of the whole is the higher of the two and not
/// their sum. The directories are gone by the time of the reading.
#[test]
fn cgroups_born_below_have_slots_of_their_own() {
    if !need_bpf() {
        return;
    }
    let own = own_cgroup();
    let mut probe = Probe::load(&plan_here(), ROOM, None).expect("kernel programs");
    let top = probe
        .track(own.cgroup().id(), Start::default(), 2)
        .expect("a slot");
    let step = cgroup_below(own.cgroup().path(), "step_0");
    for (task, size) in [("task_0", "32M"), ("task_1", "16M")] {
        let dir = cgroup_below(&step, task);
        // Deeper than what is followed: it counts for the task.
        let nested = cgroup_below(&dir, "nested");
        run_in(&nested, size);
        fs::remove_dir(&nested).expect("an empty cgroup");
        fs::remove_dir(&dir).expect("an empty cgroup");
    }
    fs::remove_dir(&step).expect("an empty cgroup");

    let below = probe.below().expect("the table");
    let peak = |name: &str| {
        let found = below
            .iter()
            .find(|below| below.name == name)
            .expect("a slot of its own");
        assert!(
            found.born_ns.is_some() && found.gone_ns >= found.born_ns,
            "{found:?}"
        );
        let reading = probe.read(found.slot).expect("a reading");
        assert!(reading.busy_ns.values().sum::<u64>() > 0, "{reading:?}");
        reading.peak.level * 4096
    };
    let spans = [("task_0", 32), ("task_1", 16), ("step_0", 32)];
    for (name, size) in spans {
        let (size, peak) = (size * MIB.cast_signed(), peak(name));
        assert!(
            (size..size + 2 * MIB.cast_signed()).contains(&peak),
            "{name}: {peak}"
        );
    }
    assert_eq!(below.len(), 3, "{below:?}");
    let whole = probe.read(top).expect("a reading");
    // The kernel charges the structures of a cgroup to the one above it.
    let beside = whole.peak.level * 4096 - peak("step_0");
    assert!((0..MIB.cast_signed()).contains(&beside), "{beside}");
    let busy: u64 = whole.busy_ns.values().sum();
    let of_tasks: u64 = below
        .iter()
        .filter(|below| below.name.starts_with("task"))
        .map(|below| {
            probe
                .read(below.slot)
                .expect("a reading")
                .busy_ns
                .values()
                .sum::<u64>()
        })
        .sum();
    assert_eq!(of_tasks, busy, "all time is of a task");
}

/// Who looks at many targets looks for their slots once: what is born after that is seen in the next round, and a slot that was
/// given back in between belongs to no one.
#[test]
fn a_round_has_what_was_there_when_it_began() {
    if !need_bpf() {
        return;
    }
    let own = own_cgroup();
    let mut probe = Probe::load(&plan_here(), ROOM, None).expect("kernel programs");
    let top = probe
        .track(own.cgroup().id(), Start::default(), 2)
        .expect("a slot");
    let names = |probe: &Probe| -> Vec<String> {
        let below = probe.below_one(top).expect("slots");
        below.into_iter().map(|below| below.name).collect()
    };
    let early = cgroup_below(own.cgroup().path(), "early");
    probe.begin_round().expect("a round");
    let late = cgroup_below(own.cgroup().path(), "late");
    assert_eq!((names(&probe), probe.targets()), (vec!["early".to_owned()], 1));
    fs::remove_dir(&early).expect("an empty cgroup");
    let mut gone = probe.below().expect("slots");
    gone.retain(|below| below.gone_ns.is_some());
    probe.release(&gone).expect("its slot");
    assert_eq!(names(&probe), Vec::<String>::new());
    probe.end_round();
    assert_eq!(names(&probe), ["late"]);
    fs::remove_dir(&late).expect("an empty cgroup");
    probe.untrack(own.cgroup().id(), top).expect("its slot");
    assert_eq!(probe.used_targets().count(), 0);
    assert_eq!(probe.below().expect("slots"), []);
}

/// Slots that are given back are used again, from nothing; without one, a cgroup counts for the one above it.
#[test]
fn slots_below_are_used_again_and_their_lack_is_told() {
    if !need_bpf() {
        return;
    }
    let own = own_cgroup();
    let mut probe = Probe::load(&plan_here(), ROOM, None).expect("kernel programs");
    let top = probe
        .track(own.cgroup().id(), Start::default(), 2)
        .expect("a slot");
    let used = cgroup_below(own.cgroup().path(), "used");
    run_in(&used, "16M");
    fs::remove_dir(&used).expect("an empty cgroup");
    let below = probe.below().expect("the table");
    assert_eq!(below.len(), 1);
    probe.release(&below).expect("their slots");
    assert_eq!(probe.below().expect("the table"), []);
    let many: Vec<_> = (0..=ROOM.below)
        .map(|n| cgroup_below(own.cgroup().path(), &format!("step_{n}")))
        .collect();
    assert_eq!(probe.losses().expect("losses").without_slot, 1);
    for below in probe.below().expect("the table") {
        let reading = probe.read(below.slot).expect("a reading");
        assert_eq!((reading.level, reading.peak.level), (0, 0), "{below:?}");
    }
    let peak = |probe: &Probe| probe.read(top).expect("a reading").peak.level;
    assert!(peak(&probe) < (32 * MIB / 4096).cast_signed());
    run_in(many.last().expect("a cgroup"), "32M");
    assert!(peak(&probe) >= (32 * MIB / 4096).cast_signed());
    for dir in &many {
        fs::remove_dir(dir).expect("an empty cgroup");
    }
}

/// A cgroup that was there before gets a slot once, and one that the kernel has given a slot gets no second one.
#[test]
fn cgroups_below_that_were_there_before_are_entered_once() {
    if !need_bpf() {
        return;
    }
    let own = own_cgroup();
    let before = cgroup_below(own.cgroup().path(), "step_0");
    let mut probe = Probe::load(&plan_here(), ROOM, None).expect("kernel programs");
    let top = probe
        .track(own.cgroup().id(), Start::default(), 2)
        .expect("a slot");
    let task = cgroup_below(&before, "task_0");
    let mut enter = |dir: &Path| {
        let id = fs::metadata(dir).expect("a cgroup").ino();
        let name = dir.file_name().expect("a name").to_string_lossy();
        probe
            .track_below(top, id, &name, Start::default(), true)
            .expect("room")
    };
    assert!(enter(&before).is_some());
    assert!(enter(&before).is_none(), "it is entered");
    // Its parent had no slot when it was born.
    assert!(enter(&task).is_some());
    let born = cgroup_below(&before, "task_1");
    assert!(enter(&born).is_none(), "the kernel gave it one");
    let names: Vec<_> = probe
        .below()
        .expect("the table")
        .into_iter()
        .map(|below| below.name)
        .collect();
    assert_eq!(names, ["step_0", "task_0", "task_1"]);
    for dir in [born, task, before] {
        fs::remove_dir(dir).expect("an empty cgroup");
    }
}

/// Runs a workload of this size in the cgroup of a directory.
fn run_in(dir: &Path, size: &str) {
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "echo $$ > \"$0/cgroup.procs\" && exec \"$1\" anon --size \"$2\"",
    ]);
    command.args([dir.as_os_str(), program("workload").as_os_str(), OsStr::new(size)]);
    assert!(command.status().expect("a shell").success());
}
