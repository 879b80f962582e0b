//! Memory now, and the three numbers that are told side by side.

use swbpf_common::slot::{FILE, FILE_MAPPED, KERNEL, PAGE_TABLES, PARTS, SHMEM, SWAP, THP};

use super::{
    Reading, Unknown,
    base::{Base, Evidence},
};
use crate::{
    probe::Peek,
    sampled::{cgroupfs::MemoryFiles, procfs::Process},
};

/// Bytes of a page.
pub fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// Pages as bytes. Less than none is within the bound that is told beside it.
pub fn to_bytes(pages: i64) -> u64 {
    u64::try_from(pages).unwrap_or(0) * page_bytes()
}

/// Needed memory and its parts at one moment, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// The sum.
    pub needed: u64,
    /// Anonymous.
    pub anon: u64,
    /// Shared.
    pub shmem: u64,
    /// Kernel.
    pub kernel: u64,
    /// Page tables, part of kernel memory.
    pub page_tables: Option<u64>,
    /// Page cache, shared memory not among it.
    pub file: Option<u64>,
    /// Mapped pages of files and of shared memory.
    pub file_mapped: Option<u64>,
    /// Anonymous memory in transparent huge pages.
    pub thp: Option<u64>,
    /// Swapped out.
    pub swap: Option<u64>,
}

impl Parts {
    /// Of a level with its parts in pages, with the base added. A part that is not needed memory is known only if it is
    /// known what it was at the `start`; a target that was tracked from its birth has none.
    pub fn counted(
        level: i64,
        parts: &[i64; PARTS],
        base: &Base,
        start: Option<&MemoryFiles>,
    ) -> Option<Self> {
        let (lru, kernel) = (base.lru()?, base.kernel()?);
        let if_known = |field: fn(&MemoryFiles) -> Option<u64>, pages: i64| {
            start
                .is_none_or(|start| field(start).is_some())
                .then(|| to_bytes(pages))
        };
        Some(Self {
            needed: to_bytes(level + lru + kernel),
            anon: to_bytes(level - parts[SHMEM] - parts[KERNEL] + lru),
            shmem: to_bytes(parts[SHMEM]),
            kernel: to_bytes(parts[KERNEL] + kernel),
            page_tables: if_known(|start| start.page_tables_bytes, parts[PAGE_TABLES]),
            file: if_known(|start| start.cache_bytes, parts[FILE] - parts[SHMEM]),
            file_mapped: if_known(|start| start.file_mapped_bytes, parts[FILE_MAPPED]),
            thp: if_known(|start| start.thp_bytes, parts[THP]),
            swap: if_known(|start| start.swap_bytes, parts[SWAP]),
        })
    }

    /// As the files have them.
    pub fn read(files: &MemoryFiles) -> Option<Self> {
        Some(Self {
            needed: files.needed()?,
            anon: files.anon_bytes?,
            shmem: files.shmem_bytes?,
            kernel: files.kernel_bytes?,
            page_tables: files.page_tables_bytes,
            file: files.file(),
            file_mapped: files.file_mapped_bytes,
            thp: files.thp_bytes,
            swap: files.swap_bytes,
        })
    }
}

/// Pages that the files of a target have more than its slot.
pub fn evidence(reading: &Reading) -> Option<Evidence> {
    let kernel = reading.kernel.as_ref()?;
    Some(compare(
        kernel.after_files.as_ref()?,
        &reading.memory,
        kernel.is_flushed,
    ))
}

/// The same of any slot, as it stood after the files were read, with how far it can have been from there meanwhile.
pub fn compare((slot, spread): &(Peek, u64), files: &MemoryFiles, is_flushed: bool) -> Evidence {
    let pages = |bytes: u64| (bytes / page_bytes()) as i64;
    let lru = files
        .anon_bytes
        .zip(files.shmem_bytes)
        .map(|(anon, shmem)| pages(anon) + pages(shmem));
    Evidence {
        lru: lru.map(|pages| pages - (slot.level - slot.parts[KERNEL])),
        kernel: files.kernel_bytes.map(|bytes| pages(bytes) - slot.parts[KERNEL]),
        spread: *spread as i64,
        is_flushed,
        kernel_never_lags: kernel_never_lags(files),
    }
}

/// Version 1 has a counter for kernel memory and does not tell sockets; version 2 takes both from `memory.stat`.
fn kernel_never_lags(files: &MemoryFiles) -> bool {
    files.sock_bytes.is_none()
}

/// Notes for each number of the files that is not known the reason, under the key that it is told by.
pub fn note_unknown(files: &MemoryFiles, unknown: &mut Unknown) {
    for (field, key) in [
        ("current_bytes", "current_bytes"),
        ("peak_bytes", "peak_bytes"),
        ("cache_bytes", "cache_bytes"),
        ("current_bytes", "working_set_bytes"),
        ("inactive_file_bytes", "working_set_bytes"),
        ("current_bytes", "usage_percent"),
    ] {
        if let Some(reason) = files.unknown.get(field) {
            unknown.insert(format!("memory.{key}"), reason.clone());
        }
    }
}

/// Huge pages of all processes that tell them, which one that has ended does not; `None` where none does.
pub fn hugetlb(processes: &[Process]) -> Option<u64> {
    processes
        .iter()
        .filter_map(|process| process.hugetlb_bytes)
        .reduce(u64::saturating_add)
}

/// Resident sets of all processes; `None` where there is none to read.
pub fn rss_sum(processes: &[Process]) -> Option<u64> {
    let is_any = !processes.is_empty();
    is_any.then(|| processes.iter().map(|process| process.rss_bytes).sum())
}
