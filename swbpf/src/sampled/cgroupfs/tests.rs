//! The files of every layout, as plain files.

use std::fmt::Write;

use proptest::prelude::*;

use super::*;
use crate::job::cgroup::fake::FakeHost;

const MIB: u64 = 1 << 20;
const UNLIMITED: &str = "9223372036854771712\n";

const STAT_V1: &str = "cache 1\nrss 2\nhierarchical_memory_limit 9223372036854771712\ntotal_cache 7000\ntotal_rss 100\n\
    total_rss_huge 50\ntotal_shmem 20\ntotal_mapped_file 30\ntotal_swap 9\ntotal_inactive_file 4000\n";
const STAT_V2: &str = "anon 100\nfile 7000\nkernel 11\nkernel_stack 2\npagetables 3\npercpu 1\nsock 4\nshmem 20\n\
    file_mapped 30\nanon_thp 50\ninactive_file 4000\nslab 5\n";

fn v1_host() -> FakeHost {
    FakeHost::v1()
        .file("memory/a/b/memory.stat", STAT_V1)
        .file("memory/a/b/memory.usage_in_bytes", "8000\n")
        .file("memory/a/b/memory.max_usage_in_bytes", "9000\n")
        .file("memory/a/b/memory.kmem.usage_in_bytes", "11\n")
}

fn v2_host() -> FakeHost {
    FakeHost::v2()
        .file("unified/a/b/memory.stat", STAT_V2)
        .file("unified/a/b/memory.current", "8000\n")
        .file("unified/a/b/memory.peak", "9000\n")
        .file("unified/a/b/memory.swap.current", "9\n")
}

#[test]
fn v1_memory() {
    let memory = MemoryFiles::read(&v1_host().cgroup("/a/b"));
    assert_eq!(memory.needed(), Some(131));
    assert_eq!(memory.working_set(), Some(4000));
    assert_eq!(memory.file(), Some(6980));
    assert_eq!(
        (memory.thp_bytes, memory.file_mapped_bytes, memory.swap_bytes),
        (Some(50), Some(30), Some(9))
    );
    assert_eq!(
        (memory.current_bytes, memory.peak_bytes),
        (Some(8000), Some(9000))
    );
    assert_eq!(
        memory.unknown.keys().collect::<Vec<_>>(),
        ["page_tables_bytes", "sock_bytes"]
    );
}

#[test]
fn v2_memory() {
    let memory = MemoryFiles::read(&v2_host().cgroup("/a/b"));
    assert_eq!(memory.kernel_bytes, Some(15), "sockets are among it");
    assert_eq!(memory.needed(), Some(135));
    assert_eq!(memory.working_set(), Some(4000));
    assert_eq!((memory.page_tables_bytes, memory.sock_bytes), (Some(3), Some(4)));
    assert_eq!(
        (memory.current_bytes, memory.peak_bytes, memory.swap_bytes),
        (Some(8000), Some(9000), Some(9))
    );
    assert_eq!((memory.kernel_note, memory.unknown), (None, Unknown::new()));
}

#[test]
fn v2_before_5_18_sums_up_kernel_memory_and_says_so() {
    let stat = STAT_V2.replace("kernel 11\n", "");
    let memory = MemoryFiles::read(&v2_host().file("unified/a/b/memory.stat", &stat).cgroup("/a/b"));
    assert_eq!(memory.kernel_bytes, Some(2 + 3 + 1 + 5 + 4));
    assert!(memory.kernel_note.expect("a note").contains("sum"));
}

#[test]
fn what_is_missing_or_garbage_is_none_with_a_reason() {
    let host = v2_host()
        .file("unified/a/b/memory.stat", "anon -5\nfile x\nshmem 3\n")
        .file("unified/a/b/memory.peak", "?");
    std::fs::remove_file(host.at("unified/a/b/memory.swap.current")).expect("a file");
    let memory = MemoryFiles::read(&host.cgroup("/a/b"));
    assert_eq!(
        (memory.anon_bytes, memory.kernel_bytes, memory.needed()),
        (None, None, None)
    );
    assert_eq!(
        (memory.shmem_bytes, memory.peak_bytes, memory.swap_bytes),
        (Some(3), None, None)
    );
    assert_eq!(memory.unknown["anon_bytes"], "memory.stat has no anon");
    assert_eq!(memory.unknown["peak_bytes"], "memory.peak holds no number");
    assert!(
        memory.unknown["swap_bytes"].starts_with("memory.swap.current: "),
        "{:?}",
        memory.unknown
    );
}

#[test]
fn a_target_without_memory_has_a_reason_for_every_field() {
    let host = FakeHost::v1().dir("freezer/a");
    let memory = MemoryFiles::read(&host.cgroup("/a"));
    assert_eq!((memory.needed(), memory.unknown.len()), (None, 12));
    assert_eq!(limit_levels(&host.cgroup("/a")), []);
}

#[test]
fn v1_limits_from_the_target_upwards() {
    let host = v1_host()
        .file("memory/a/b/memory.limit_in_bytes", UNLIMITED)
        .file("memory/a/memory.limit_in_bytes", "33554432\n")
        .file("memory/memory.limit_in_bytes", UNLIMITED);
    let levels = limit_levels(&host.cgroup("/a/b"));
    let limits: Vec<_> = levels.iter().map(|level| level.limit_bytes).collect();
    assert_eq!(limits, [None, Some(32 * MIB), None]);
    let limit = effective_limit(&host.cgroup("/a/b"), &levels);
    assert_eq!(
        limit,
        Some(EffectiveLimit {
            bytes: 32 * MIB,
            path: Some(host.at("memory/a"))
        })
    );
}

#[test]
fn v1_limit_above_the_mount_is_known_all_the_same() {
    let stat = STAT_V1.replace("9223372036854771712", "1048576");
    let host = v1_host()
        .file("memory/a/b/memory.stat", &stat)
        .file("memory/a/memory.limit_in_bytes", "33554432\n");
    let cgroup = host.cgroup("/a/b");
    let limit = effective_limit(&cgroup, &limit_levels(&cgroup));
    assert_eq!(
        limit,
        Some(EffectiveLimit {
            bytes: MIB,
            path: None
        })
    );
}

#[test]
fn v2_limits_from_the_target_upwards() {
    let host = v2_host()
        .file("unified/a/b/memory.max", "max\n")
        .file("unified/a/memory.max", "67108864\n");
    let cgroup = host.cgroup("/a/b");
    let levels = limit_levels(&cgroup);
    assert_eq!(
        effective_limit(&cgroup, &levels).expect("a limit").bytes,
        64 * MIB
    );
}

#[test]
fn v1_cpu() {
    let host = FakeHost::v1()
        .file("cpuacct/a/b/cpuacct.usage", "3000\n")
        .file("cpuacct/a/b/cpuacct.usage_percpu", "1000 2000 \n")
        .dir("memory/a/b")
        .file(
            "cpu/a/b/cpu.stat",
            "nr_periods 9\nnr_throttled 2\nthrottled_time 77\n",
        )
        .file("cpu/a/b/cpu.cfs_quota_us", "-1\n")
        .file("cpu/a/cpu.cfs_quota_us", "150000\n")
        .file("cpu/a/cpu.cfs_period_us", "100000\n")
        .file("cpuset/a/cpuset.effective_cpus", "0-3\n");
    let cpu = CpuFiles::read(&host.cgroup("/a/b"));
    assert_eq!(
        (cpu.usage_ns, cpu.per_cpu_usage_ns.as_deref()),
        (Some(3000), Some(&[1000, 2000][..]))
    );
    assert_eq!((cpu.throttled_ns, cpu.throttled_periods), (Some(77), Some(2)));
    assert_eq!(
        (cpu.quota_cores, cpu.cpus, cpu.cores_allocated()),
        (Some(1.5), Some(4), Some(1.5))
    );
    assert_eq!(cpu.unknown, Unknown::new());
}

#[test]
fn v2_cpu() {
    let host = FakeHost::v2()
        .file(
            "unified/a/cpu.stat",
            "usage_usec 3\nnr_throttled 2\nthrottled_usec 5\n",
        )
        .file("unified/a/cpu.max", "max 100000\n")
        .file("unified/cpuset.cpus.effective", "0,2\n");
    let cpu = CpuFiles::read(&host.cgroup("/a"));
    assert_eq!(
        (cpu.usage_ns, cpu.throttled_ns, cpu.throttled_periods),
        (Some(3000), Some(5000), Some(2))
    );
    assert_eq!((cpu.quota_cores, cpu.cores_allocated()), (None, Some(2.0)));
    assert_eq!(cpu.unknown.keys().collect::<Vec<_>>(), ["per_cpu_usage_ns"]);
}

#[test]
fn cpu_time_of_an_ancestor_is_not_that_of_the_target() {
    let host = FakeHost::v1()
        .dir("memory/a")
        .file("cpuacct/cpuacct.usage", "3000\n");
    let cpu = CpuFiles::read(&host.cgroup("/a"));
    assert_eq!(cpu.usage_ns, None);
    assert!(cpu.unknown["usage_ns"].contains("no cgroup of its own"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn garbage_in_any_file_gives_no_panic(text in "(?s)[a-z_]{0,12}[ 0-9a-z\n-]{0,60}|.{0,80}") {
        let mut host = FakeHost::v1().unified("");
        for name in ["memory.stat", "memory.usage_in_bytes", "memory.limit_in_bytes", "memory.failcnt", "cgroup.procs"] {
            host = host.file(&format!("memory/a/{name}"), &text);
        }
        let cgroup = host.file("cpuacct/a/cpuacct.usage", &text).file("cpu/a/cpu.stat", &text).cgroup("/a");
        MemoryFiles::read(&cgroup).needed();
        effective_limit(&cgroup, &limit_levels(&cgroup));
        CpuFiles::read(&cgroup).cores_allocated();
        cgroup.procs().expect("processes");
    }

    #[test]
    fn needed_is_the_sum_of_its_parts(anon: u64, shmem: u64, kernel: u64, sock: u64) {
        let mut stat = String::new();
        for (key, value) in [("anon", anon), ("shmem", shmem), ("kernel", kernel), ("sock", sock)] {
            writeln!(stat, "{key} {value}").expect("a string");
        }
        let memory = MemoryFiles::read(&v2_host().file("unified/a/b/memory.stat", &stat).cgroup("/a/b"));
        let sum = [anon, shmem, kernel, sock].iter().fold(0, |sum: u64, part| sum.saturating_add(*part));
        prop_assert_eq!(memory.needed(), Some(sum));
    }
}
