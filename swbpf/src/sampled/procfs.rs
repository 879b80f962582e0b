//! What `/proc` says of processes: their names, resident sets and huge pages.
//!
//! A process that ends while it is read is left out.

use std::collections::BTreeMap;
use std::iter::Sum;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::job::kernfile;

/// One process at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Its name, at most 15 bytes; bytes that are not UTF-8 are replaced, control characters are kept.
    pub comm: String,
    /// When it was started, in clock ticks since boot; together with `pid` it names one process for ever.
    pub start_ticks: u64,
    /// Resident set: anonymous, shared and file pages, huge pages of hugetlbfs not among them.
    pub rss_bytes: u64,
    /// Huge pages of hugetlbfs; `None` where the kernel does not tell.
    pub hugetlb_bytes: Option<u64>,
    /// Swapped-out memory, shared memory not among it; `None` where the kernel does not tell.
    pub swap_bytes: Option<u64>,
    /// How many threads it has.
    pub threads: u64,
}

/// The processes of these ids that are still there, in the same order.
pub fn processes(pids: &[u32]) -> Vec<Process> {
    pids.iter()
        .filter_map(|&pid| Process::read(&dir(pid), pid))
        .collect()
}

/// The process id and the resident set in bytes of each that is still there: one small file each.
pub fn rss_only(pids: &[u32]) -> Vec<(u32, u64)> {
    pids.iter()
        .filter_map(|&pid| Some((pid, read_rss(&dir(pid))?)))
        .collect()
}

/// The memory of a process, with its part of what it shares with others: the sum of several has shared pages once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SharedOut {
    /// Anonymous memory.
    pub anon_bytes: u64,
    /// Shared memory.
    pub shmem_bytes: u64,
    /// Swapped-out memory.
    pub swap_bytes: u64,
    /// Page tables.
    pub page_tables_bytes: u64,
}

impl Sum for SharedOut {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, other| Self {
            anon_bytes: sum.anon_bytes.saturating_add(other.anon_bytes),
            shmem_bytes: sum.shmem_bytes.saturating_add(other.shmem_bytes),
            swap_bytes: sum.swap_bytes.saturating_add(other.swap_bytes),
            page_tables_bytes: sum.page_tables_bytes.saturating_add(other.page_tables_bytes),
        })
    }
}

/// The proportional share of each process that can be read (`Pss_*` of `smaps_rollup`, Linux 5.9 or newer). The kernel walks the
/// page tables for it: about 1 ms for each 100 MiB in small pages.
pub fn shares(pids: &[u32]) -> BTreeMap<u32, SharedOut> {
    pids.iter()
        .filter_map(|&pid| Some((pid, read_share(&dir(pid))?)))
        .collect()
}

/// That of the process whose directory of `/proc` this is; `None` where it cannot be read.
pub fn read_share(dir: &Path) -> Option<SharedOut> {
    let rollup = kernfile::read_text(&dir.join("smaps_rollup")).ok()?;
    let status = kernfile::read_text(&dir.join("status")).ok()?;
    Some(SharedOut {
        anon_bytes: kib_line(&rollup, "Pss_Anon:")?,
        shmem_bytes: kib_line(&rollup, "Pss_Shmem:")?,
        swap_bytes: kib_line(&rollup, "SwapPss:").unwrap_or(0),
        page_tables_bytes: kib_line(&status, "VmPTE:").unwrap_or(0),
    })
}

/// That of this process.
pub fn own() -> SharedOut {
    read_share(Path::new("/proc/self")).unwrap_or_default()
}

fn dir(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}"))
}

impl Process {
    /// The process whose directory of `/proc` this is; `None` where it has gone.
    pub fn read(dir: &Path, pid: u32) -> Option<Self> {
        let stat = kernfile::read_text(&dir.join("stat")).ok()?;
        let (threads, start_ticks) = parse_stat(&stat)?;
        let comm = kernfile::read_text(&dir.join("comm")).ok()?;
        let status = kernfile::read_text(&dir.join("status")).ok()?;
        Some(Self {
            pid,
            comm: comm.strip_suffix('\n').unwrap_or(&comm).to_owned(),
            start_ticks,
            rss_bytes: read_rss(dir)?,
            hugetlb_bytes: kib_line(&status, "HugetlbPages:"),
            swap_bytes: kib_line(&status, "VmSwap:"),
            threads,
        })
    }
}

/// What a child of this process has become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begun {
    /// Whether it has this process's own name: it has executed nothing yet, or the same program.
    pub is_ours: bool,
    /// Whether it has ended, and not been waited for.
    pub has_ended: bool,
}

/// What the child `pid` has become; `None` where it is not there.
pub fn begun(pid: u32) -> Option<Begun> {
    let stat = kernfile::read_text(&dir(pid).join("stat")).ok()?;
    let own = kernfile::read_text(Path::new("/proc/self/stat")).ok()?;
    let state = kernfile::stat_fields(&stat)?.next()?.to_owned();
    Some(Begun {
        is_ours: name_in(&stat)? == name_in(&own)?,
        has_ended: matches!(state.as_str(), "Z" | "X" | "x"),
    })
}

/// The name in `/proc/PID/stat`, which may hold anything.
fn name_in(stat: &str) -> Option<&str> {
    let (begin, _) = stat.rsplit_once(')')?;
    begin.split_once('(').map(|(_, name)| name)
}

fn read_rss(dir: &Path) -> Option<u64> {
    parse_statm(
        &kernfile::read_text(&dir.join("statm")).ok()?,
        rustix::param::page_size() as u64,
    )
}

/// The resident set: the second number, in pages.
fn parse_statm(statm: &str, page_size: u64) -> Option<u64> {
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages.saturating_mul(page_size))
}

/// The number of threads and the start time: fields 20 and 22, of which the state is the third.
fn parse_stat(stat: &str) -> Option<(u64, u64)> {
    let mut fields = kernfile::stat_fields(stat)?;
    let threads = fields.nth(17)?.parse().ok()?;
    Some((threads, fields.nth(1)?.parse().ok()?))
}

/// A line `KEY N kB` of `/proc/PID/status`, in bytes.
fn kib_line(status: &str, key: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(key))?;
    kernfile::number(value.strip_suffix("kB")?).map(|kib| kib.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STAT: &str =
        "7 (a) b) S 1 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 3 0 123456 1000 50 18446744073709551615\n";

    #[test]
    fn the_files_of_a_process_are_understood() {
        let tree = tempfile::tempdir().expect("a temporary directory");
        let write = |name: &str, bytes: &[u8]| std::fs::write(tree.path().join(name), bytes).expect("a file");
        write("stat", STAT.as_bytes());
        write("comm", b"a\x1b[1m\xff\n");
        write("statm", b"100 50 3 4 0 5 0\n");
        assert_eq!(Process::read(tree.path(), 7), None);
        write(
            "status",
            b"Name:\tx\nVmSwap:\t      12 kB\nHugetlbPages:\t    2048 kB\nThreads:\t3\n",
        );
        let process = Process::read(tree.path(), 7).expect("a process");
        assert_eq!(process.comm, "a\u{1b}[1m\u{fffd}");
        assert_eq!((process.threads, process.start_ticks), (3, 123_456));
        assert_eq!(process.rss_bytes, 50 * rustix::param::page_size() as u64);
        assert_eq!(
            (process.swap_bytes, process.hugetlb_bytes),
            (Some(12 << 10), Some(2 << 20))
        );
    }

    #[test]
    fn numbers_too_large_do_not_wrap() {
        assert_eq!(parse_statm("1 18446744073709551615 1", 4096), Some(u64::MAX));
        assert_eq!(parse_statm("1 18446744073709551616 1", 4096), None);
        assert_eq!(
            kib_line("VmSwap:\t18446744073709551615 kB", "VmSwap:"),
            Some(u64::MAX)
        );
    }

    #[test]
    fn the_dead_are_left_out() {
        let me = std::process::id();
        let read = processes(&[u32::MAX, me]);
        assert_eq!(read.iter().map(|process| process.pid).collect::<Vec<_>>(), [me]);
        let rss = rss_only(&[me, u32::MAX]);
        assert!(
            matches!(rss[..], [(pid, bytes)] if pid == me && bytes > 0),
            "{rss:?}"
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_them_panic(text in "(?s).{0,200}|[0-9 ()kBVmSwap:\n]{0,200}") {
            parse_statm(&text, 65536);
            parse_stat(&text);
            kib_line(&text, "Pss_Anon:");
            kib_line(&text, "VmSwap:");
        }
    }
}
