//! What the kernel programs count against what the kernel's own statistics say while nothing changes.

use support::measure::{MIB, Process, Run, once, own_cgroup, wait_until};
use support::need_bpf;
use swbpf::job::cgroup::Cgroup;
use swbpf::sampled::cgroupfs::MemoryFiles;
use swbpf::snapshot::Snapshot;

use crate::truth::error_bound;

/// Waits until the files agree, which lag by up to two seconds; they are never to agree with anything else.
fn check_against_files(told: &Snapshot, cgroup: &Cgroup) {
    let needed = told.memory.needed_bytes.expect("known");
    let bound = error_bound(told);
    let mut files = MemoryFiles::default();
    wait_until(&format!("the files say {needed} give or take {bound}"), || {
        files = MemoryFiles::read(cgroup);
        files.needed().expect("files").abs_diff(needed) <= bound
    });
    let parts = [
        (told.memory.anon_bytes, files.anon_bytes),
        (told.memory.shmem_bytes, files.shmem_bytes),
        (told.memory.kernel_bytes, files.kernel_bytes),
    ];
    for (told, file) in parts {
        let (told, file) = (told.expect("known"), file.expect("known"));
        assert!(told.abs_diff(file) <= bound, "{told}, but the file says {file}");
    }
}

/// From the first instruction: the same to the page.
#[test]
fn run_agrees() {
    if !need_bpf() {
        return;
    }
    let mut run = Run::start(&[], &["hold", "--size", "64M"]);
    run.process.ready();
    let cgroup = run.cgroup();
    let after = run.progress("a line", |_| true).coverage.seconds + 0.5;
    let line = run.progress("a later line", |line| line.coverage.seconds > after);
    check_against_files(&line, &cgroup);
    drop(run.finish());
}

/// Of what was there before, as far off as is told.
#[test]
fn once_agrees() {
    if !need_bpf() {
        return;
    }
    let own = own_cgroup();
    let mut hold = Process::workload_in(&own, &["hold", "--size", "64M"]);
    hold.ready();
    let path = own.cgroup().path().to_str().expect("a name of letters");
    let pid = hold.id().to_string();
    for target in [["--cgroup", path], ["--pid", &pid]] {
        let told = once(&target);
        assert_eq!(told.target.cgroup, path);
        check_against_files(&told, own.cgroup());
        let (now, peak) = (told.memory.needed_bytes, told.memory.needed_peak_bytes);
        assert!(
            now >= Some(64 * MIB - error_bound(&told)) && now <= peak,
            "{now:?} {peak:?}"
        );
    }
    assert!(hold.finish().0.success());
}
