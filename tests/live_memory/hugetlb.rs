//! Huge pages of hugetlbfs, from the administrator's pool: no cgroup is charged for them as memory, so they are told apart.

use std::fs;

use support::measure::{MIB, Run};
use support::need_bpf;

use crate::truth::{FOOTPRINT, check_peak};

const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";

/// A pool enlarged for one test, and as it was afterwards.
struct Pool {
    before: String,
}

impl Pool {
    fn enlarged_by(pages: u64) -> Self {
        let before = fs::read_to_string(POOL).expect("a pool of huge pages");
        let pool = Self { before };
        let wanted = pool.before.trim().parse::<u64>().expect("a number") + pages;
        fs::write(POOL, wanted.to_string()).expect("root may enlarge it");
        let got = fs::read_to_string(POOL).expect("a pool of huge pages");
        assert_eq!(
            got.trim(),
            wanted.to_string(),
            "the kernel found no contiguous memory"
        );
        pool
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        drop(fs::write(POOL, &self.before));
    }
}

#[test]
fn reported_apart() {
    if !need_bpf() {
        return;
    }
    let _pool = Pool::enlarged_by(16);
    let mut run = Run::start(&[], &["hugetlb", "--size", "32M", "--until-stdin"]);
    run.process.ready();
    let huge = Some(32 * MIB);
    run.progress("a look at it", |line| line.memory.hugetlb_bytes == huge);
    let summary = run.finish().summary;
    assert_eq!(summary.memory.hugetlb_peak_bytes, huge);
    check_peak(&summary, 0, FOOTPRINT);
}
