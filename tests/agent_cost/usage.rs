//! What a process has used, by the kernel's own account.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// At one moment.
pub struct Usage {
    /// CPU time of all its threads, user and system.
    pub cpu: Duration,
    /// Resident memory now, in bytes.
    pub rss: u64,
    /// At most until now, in bytes.
    pub highest_rss: u64,
    /// Of the maps that it holds, in the kernel, in bytes.
    pub maps: u64,
}

impl Usage {
    /// That of a process.
    pub fn of(pid: u32) -> Result<Self> {
        let proc = Path::new("/proc").join(pid.to_string());
        let status = fs::read_to_string(proc.join("status")).context("read the status of the agent")?;
        let bytes = |key| kib(&status, key).with_context(|| format!("{key} of the agent"));
        Ok(Self {
            cpu: cpu(&proc)?,
            rss: bytes("VmRSS:")?,
            highest_rss: bytes("VmHWM:")?,
            maps: maps(&proc)?,
        })
    }
}

/// The first number of `schedstat` is exact to the nanosecond (Documentation/scheduler/sched-stats.rst).
fn cpu(proc: &Path) -> Result<Duration> {
    let mut ns = 0;
    for thread in fs::read_dir(proc.join("task")).context("list the threads of the agent")? {
        let text = fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        let spent = text.split(' ').next().and_then(|first| first.parse::<u64>().ok());
        ns += spent.context("the kernel tells no times of threads: CONFIG_SCHED_INFO")?;
    }
    Ok(Duration::from_nanos(ns))
}

/// `KEY   123 kB`, in bytes.
fn kib(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let number: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(number << 10)
}

/// Each map once, however many descriptors there are of it.
fn maps(proc: &Path) -> Result<u64> {
    let mut by_id = BTreeMap::new();
    for entry in fs::read_dir(proc.join("fdinfo")).context("list the files of the agent")? {
        let text = fs::read_to_string(entry?.path()).unwrap_or_default();
        if let Some((id, bytes)) = number(&text, "map_id:").zip(number(&text, "memlock:")) {
            by_id.insert(id, bytes);
        }
    }
    Ok(by_id.into_values().sum())
}

fn number(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use support::measure::wait_until;

    use super::*;

    #[test]
    fn lines_are_read_as_the_kernel_writes_them() {
        let status = "VmHWM:\t   12345 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(kib(status, "VmRSS:"), Some(1 << 20));
        assert_eq!(kib(status, "VmSwap:"), None);
        let map = "pos:\t0\nmap_type:\t2\nmemlock:\t6685184\nmap_id:\t77\n";
        assert_eq!(number(map, "map_id:"), Some(77));
        assert_eq!(number(map, "memlock:"), Some(6_685_184));
    }

    /// One of one thread, which stays: those of this process, which are other tests, come and go.
    #[test]
    fn a_process_has_used_something() {
        let mut process = Command::new("sleep").arg("60").spawn().expect("sleep starts");
        let used = || Usage::of(process.id()).expect("a process");
        // The kernel adds it up when the process leaves its CPU.
        wait_until("its CPU time", || !used().cpu.is_zero());
        let usage = used();
        process.kill().and_then(|()| process.wait()).expect("ended");
        assert!(usage.rss > 0 && usage.highest_rss >= usage.rss);
    }
}
