//! Cgroups of this machine, whichever layout it has.
//!
//! Where this user may not make cgroups, the tests that need one are skipped.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use support::skipped;
use swbpf::job::cgroup::{Cgroup, CgroupError, Controller, Hierarchies, OwnCgroup};
use swbpf::sampled::cgroupfs::{CpuFiles, MemoryFiles, effective_limit, limit_levels};
use swbpf::sampled::procfs;

const MIB: u64 = 1 << 20;

fn hierarchies() -> Hierarchies {
    Hierarchies::detect().expect("a cgroup hierarchy")
}

/// A cgroup of its own, where this user may make one.
fn own() -> Option<OwnCgroup> {
    match OwnCgroup::create(&hierarchies()) {
        Ok(own) => Some(own),
        Err(CgroupError::MayNotMake { path, .. }) => {
            skipped(&format!("this user may not make {}", path.display()));
            None
        }
        Err(e) => panic!("{e}"),
    }
}

/// Starts a shell command in the cgroup.
fn start(own: &OwnCgroup, script: &str) -> Child {
    let join = own.join_files().expect("the files to join by");
    let mut command = Command::new("sh");
    command
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // SAFETY: joining does nothing but write(2).
    unsafe { command.pre_exec(move || join.join()) };
    command.spawn().expect("a shell")
}

fn end(mut child: Child) {
    child.kill().expect("a live child");
    child.wait().expect("an ended child");
}

/// Waits until the condition holds, for at most ten seconds.
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < until, "{what} did not come true");
        sleep(Duration::from_millis(5));
    }
}

fn hold_mib(own: &OwnCgroup, mib: u64) -> Child {
    // tail keeps what it has read until its input ends.
    let mut child = start(own, &format!("exec tail -c {}", mib * MIB));
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin
        .write_all(&vec![0; usize::try_from(mib * MIB).expect("a small number")])
        .expect("a reader");
    child.stdin = Some(stdin);
    child
}

#[test]
fn every_process_has_a_cgroup() {
    let cgroup = hierarchies()
        .cgroup_of_pid(std::process::id())
        .expect("the own cgroup");
    assert!(cgroup.exists() && cgroup.is_populated().expect("populated"));
    assert!(cgroup.procs().expect("processes").contains(&std::process::id()));
    let by_path = hierarchies().cgroup_at(cgroup.path()).expect("the same");
    assert_eq!((by_path.id(), by_path.path()), (cgroup.id(), cgroup.path()));
}

#[test]
fn the_root_is_the_whole_machine() {
    let root = hierarchies().cgroup_at(Path::new("/")).expect("the root");
    assert!(root.procs().expect("processes").contains(&std::process::id()));
    assert!(CpuFiles::read(&root).cores_allocated().expect("processors") >= 1.0);
}

#[test]
fn an_ended_process_has_none() {
    let mut child = Command::new("true").spawn().expect("a child");
    wait_until("the child is a zombie", || {
        fs::read_to_string(format!("/proc/{}/stat", child.id()))
            .expect("its file")
            .contains(") Z ")
    });
    let error = hierarchies()
        .cgroup_of_pid(child.id())
        .expect_err("a zombie has no cgroup to measure");
    assert!(matches!(error, CgroupError::NoProcess { .. }), "{error}");
    child.wait().expect("an ended child");
}

#[test]
fn a_command_runs_in_a_cgroup_of_its_own() {
    let Some(mut own) = own() else { return };
    assert!(own.missing().is_empty(), "{:?}", own.missing());
    assert!(!own.cgroup().is_populated().expect("not populated"));
    let child = start(&own, "sleep 60 & exec sleep 60");
    let cgroup: Cgroup = hierarchies().cgroup_of_pid(child.id()).expect("its cgroup");
    assert_eq!(
        (cgroup.id(), cgroup.path()),
        (own.cgroup().id(), own.cgroup().path())
    );
    wait_until("both processes are there", || {
        own.cgroup().procs().expect("processes").len() == 2
    });
    let pids = own.cgroup().procs().expect("processes");
    assert!(pids.contains(&child.id()));
    let error = own.remove().expect_err("it is in use");
    assert!(
        matches!(&error, CgroupError::InUse { pids: told, .. } if *told == pids),
        "{error}"
    );
    let left: Vec<_> = pids.into_iter().filter(|&pid| pid != child.id()).collect();
    end(child);
    Command::new("kill")
        .args(["-9", &left[0].to_string()])
        .status()
        .expect("kill");
    own.remove().expect("nothing is in the way");
    assert!(!cgroup.exists() && !cgroup.is_populated().expect("it has ended"));
    assert_eq!(cgroup.procs().expect("none"), Vec::<u32>::new());
    assert!(matches!(
        hierarchies().cgroup_at(cgroup.path()),
        Err(CgroupError::Gone { .. })
    ));
}

#[test]
fn cgroups_that_the_command_made_are_removed_too() {
    let Some(own) = own() else { return };
    let path = own.cgroup().path().to_path_buf();
    fs::create_dir_all(path.join("a/b")).expect("nested cgroups");
    let below: Vec<_> = own
        .cgroup()
        .descendants()
        .expect("cgroups")
        .into_iter()
        .map(|below| below.path)
        .collect();
    assert_eq!(below, [path.join("a"), path.join("a/b")]);
    let child = start(&own, "exec sleep 60");
    fs::write(path.join("a/b/cgroup.procs"), child.id().to_string()).expect("moved");
    assert!(own.cgroup().is_populated().expect("populated below"));
    end(child);
    drop(own);
    assert!(!path.exists());
}

#[test]
fn memory_is_what_the_command_holds() {
    let Some(own) = own() else { return };
    let child = hold_mib(&own, 64);
    let mut memory = MemoryFiles::default();
    wait_until("the statistics have it", || {
        memory = MemoryFiles::read(own.cgroup());
        memory.anon_bytes >= Some(64 * MIB)
    });
    let needed = memory.needed().expect("needed memory");
    assert!((64 * MIB..67 * MIB).contains(&needed), "{memory:?}");
    assert!(memory.current_bytes >= Some(64 * MIB), "{memory:?}");
    assert!(memory.working_set() >= Some(64 * MIB), "{memory:?}");
    let rss = procfs::rss_only(&own.cgroup().procs().expect("processes"));
    assert!(
        matches!(rss[..], [(_, bytes)] if (64 * MIB..68 * MIB).contains(&bytes)),
        "{rss:?}"
    );
    let read = procfs::processes(&[child.id()]);
    assert_eq!(
        (read[0].comm.as_str(), read[0].threads, read[0].hugetlb_bytes),
        ("tail", 1, Some(0))
    );
    end(child);
}

#[test]
fn cpu_time_is_what_the_command_burns() {
    let Some(own) = own() else { return };
    let before = CpuFiles::read(own.cgroup());
    let child = start(&own, "while :; do :; done");
    sleep(Duration::from_millis(300));
    end(child);
    let after = CpuFiles::read(own.cgroup());
    let usage = after.usage_ns.expect("CPU time") - before.usage_ns.expect("CPU time");
    assert!((20_000_000..600_000_000).contains(&usage), "{usage}");
    if let Some(per_cpu) = after.per_cpu_usage_ns {
        assert_eq!(per_cpu.iter().sum::<u64>(), after.usage_ns.expect("CPU time"));
    }
}

#[test]
fn a_limit_that_was_set_is_known() {
    let Some(own) = own() else { return };
    if own.cgroup().dir(Controller::Memory).is_none() {
        assert!(matches!(
            own.set_memory_limit(MIB),
            Err(CgroupError::NoMemoryController)
        ));
        return;
    }
    own.set_memory_limit(32 * MIB).expect("a limit");
    let before = limit_levels(own.cgroup());
    assert_eq!(
        effective_limit(own.cgroup(), &before).expect("a limit").bytes,
        32 * MIB
    );
}
