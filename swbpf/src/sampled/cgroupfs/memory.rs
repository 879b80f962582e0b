//! The memory of a cgroup by `memory.stat` and the counters beside it.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Unknown;
use super::files::{Files, Keyed};
use crate::job::cgroup::{Cgroup, Controller, Version};
use crate::sampled::procfs::SharedOut;

/// The parts of kernel memory that kernels before 5.18 tell on version 2.
const KERNEL_PARTS: [&str; 4] = ["kernel_stack", "pagetables", "percpu", "slab"];

/// The memory of a cgroup and all below it at one moment. What is not known is `None`, with the reason in `unknown`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryFiles {
    /// Anonymous memory.
    pub anon_bytes: Option<u64>,
    /// Shared memory: shmem, tmpfs, shared anonymous mappings.
    pub shmem_bytes: Option<u64>,
    /// Kernel memory; on version 2 the buffers of sockets among it, as `needed` memory has them.
    pub kernel_bytes: Option<u64>,
    /// Buffers of sockets, part of `kernel_bytes`; version 1 counts them apart and by another rule.
    pub sock_bytes: Option<u64>,
    /// Page tables, part of `kernel_bytes`; version 1 does not tell them.
    pub page_tables_bytes: Option<u64>,
    /// Page cache, shared memory among it.
    pub cache_bytes: Option<u64>,
    /// Page cache that is not in active use.
    pub inactive_file_bytes: Option<u64>,
    /// Mapped pages of files and of shared memory.
    pub file_mapped_bytes: Option<u64>,
    /// Anonymous memory in transparent huge pages, part of `anon_bytes`.
    pub thp_bytes: Option<u64>,
    /// Swapped-out memory.
    pub swap_bytes: Option<u64>,
    /// The kernel's counter of charged memory, page cache among it.
    pub current_bytes: Option<u64>,
    /// The kernel's high-water mark of `current_bytes`, since the cgroup was made or the mark was reset.
    pub peak_bytes: Option<u64>,
    /// Why `kernel_bytes` is less than the whole, where it is.
    pub kernel_note: Option<String>,
    /// For each field that is `None` the reason, by the field's name.
    pub unknown: Unknown,
}

impl MemoryFiles {
    /// Reads the files of `cgroup` once. The kernel's counters are read first, the statistics after them.
    pub fn read(cgroup: &Cgroup) -> Self {
        let Some(dir) = cgroup.dir(Controller::Memory) else {
            return Self::none("the target has no cgroup of its own in a hierarchy that counts memory");
        };
        let read = Self::read_dir(&dir.path, dir.version);
        // Another may have been made in its place, of the same name.
        if cgroup.exists() {
            read
        } else {
            Self::none("the cgroup was removed")
        }
    }

    /// The kernel's counter of charged memory alone; `None` where it cannot be read.
    pub fn read_current(cgroup: &Cgroup) -> Option<u64> {
        let dir = cgroup.dir(Controller::Memory)?;
        let name = match dir.version {
            Version::V1 => "memory.usage_in_bytes",
            Version::V2 => "memory.current",
        };
        let current = Files::new(&dir.path).number(name).ok()?;
        // Another may have been made in its place, of the same name.
        cgroup.exists().then_some(current)
    }

    /// The memory of a target that has no cgroup which counts it, from its processes; `None` where none could be read.
    pub fn of_processes(share: Option<SharedOut>) -> Self {
        let mut read = Self::none("the target has no cgroup of its own in a hierarchy that counts memory");
        let known = |bytes: fn(&SharedOut) -> u64| share.as_ref().map(bytes);
        read.anon_bytes = known(|share| share.anon_bytes);
        read.shmem_bytes = known(|share| share.shmem_bytes);
        read.swap_bytes = known(|share| share.swap_bytes);
        read.page_tables_bytes = known(|share| share.page_tables_bytes);
        read.kernel_bytes = read.page_tables_bytes;
        read.kernel_note = Some("of kernel memory, page tables alone are known".to_owned());
        for key in [
            "anon_bytes",
            "shmem_bytes",
            "swap_bytes",
            "page_tables_bytes",
            "kernel_bytes",
        ] {
            match share {
                Some(_) => read.unknown.remove(key),
                None => read
                    .unknown
                    .insert(key.into(), "no process of the target could be read".to_owned()),
            };
        }
        read
    }

    /// Takes off what one process holds, of all that is known.
    pub fn take_off(&mut self, own: &SharedOut) {
        let less = |bytes: &mut Option<u64>, own: u64| {
            *bytes = bytes.map(|bytes| bytes.saturating_sub(own));
        };
        less(&mut self.anon_bytes, own.anon_bytes);
        less(&mut self.shmem_bytes, own.shmem_bytes);
        less(&mut self.kernel_bytes, own.page_tables_bytes);
        less(
            &mut self.current_bytes,
            own.anon_bytes + own.shmem_bytes + own.page_tables_bytes,
        );
    }

    /// What the kernel could not hand back: anonymous, shared and kernel memory.
    pub fn needed(&self) -> Option<u64> {
        let parts = [self.anon_bytes?, self.shmem_bytes?, self.kernel_bytes?];
        Some(parts.into_iter().fold(0, u64::saturating_add))
    }

    /// Charged memory less the page cache that is not in active use, as the kubelet takes it.
    pub fn working_set(&self) -> Option<u64> {
        Some(self.current_bytes?.saturating_sub(self.inactive_file_bytes?))
    }

    /// Page cache, shared memory not among it.
    pub fn file(&self) -> Option<u64> {
        Some(self.cache_bytes?.saturating_sub(self.shmem_bytes?))
    }

    /// Reads the files in one directory of a hierarchy that counts memory.
    pub fn read_dir(dir: &Path, version: Version) -> Self {
        match version {
            Version::V1 => Self::read_v1(dir),
            Version::V2 => Self::read_v2(dir),
        }
    }

    fn read_v1(dir: &Path) -> Self {
        let mut files = Files::new(dir);
        let (current, peak) = (
            files.number("memory.usage_in_bytes"),
            files.number("memory.max_usage_in_bytes"),
        );
        let kernel = files.number("memory.kmem.usage_in_bytes");
        let stat = files.keyed("memory.stat");
        let not_told = |what| Err(format!("cgroup version 1 does not tell {what} as part of memory"));
        Self {
            anon_bytes: files.keep("anon_bytes", stat.get("total_rss")),
            shmem_bytes: files.keep("shmem_bytes", stat.get("total_shmem")),
            kernel_bytes: files.keep("kernel_bytes", kernel),
            sock_bytes: files.keep("sock_bytes", not_told("sockets")),
            page_tables_bytes: files.keep("page_tables_bytes", not_told("page tables")),
            cache_bytes: files.keep("cache_bytes", stat.get("total_cache")),
            inactive_file_bytes: files.keep("inactive_file_bytes", stat.get("total_inactive_file")),
            file_mapped_bytes: files.keep("file_mapped_bytes", stat.get("total_mapped_file")),
            thp_bytes: files.keep("thp_bytes", stat.get("total_rss_huge")),
            swap_bytes: files.keep("swap_bytes", stat.get("total_swap")),
            current_bytes: files.keep("current_bytes", current),
            peak_bytes: files.keep("peak_bytes", peak),
            kernel_note: None,
            unknown: files.unknown,
        }
    }

    fn read_v2(dir: &Path) -> Self {
        let mut files = Files::new(dir);
        let (current, peak) = (files.number("memory.current"), files.number("memory.peak"));
        let swap = files.number("memory.swap.current");
        let stat = files.keyed("memory.stat");
        let (kernel, kernel_note) = kernel_v2(&stat);
        Self {
            anon_bytes: files.keep("anon_bytes", stat.get("anon")),
            shmem_bytes: files.keep("shmem_bytes", stat.get("shmem")),
            kernel_bytes: files.keep("kernel_bytes", kernel),
            sock_bytes: files.keep("sock_bytes", stat.get("sock")),
            page_tables_bytes: files.keep("page_tables_bytes", stat.get("pagetables")),
            cache_bytes: files.keep("cache_bytes", stat.get("file")),
            inactive_file_bytes: files.keep("inactive_file_bytes", stat.get("inactive_file")),
            file_mapped_bytes: files.keep("file_mapped_bytes", stat.get("file_mapped")),
            thp_bytes: files.keep("thp_bytes", stat.get("anon_thp")),
            swap_bytes: files.keep("swap_bytes", swap),
            current_bytes: files.keep("current_bytes", current),
            peak_bytes: files.keep("peak_bytes", peak),
            kernel_note,
            unknown: files.unknown,
        }
    }

    fn none(reason: &str) -> Self {
        const FIELDS: [&str; 12] = [
            "anon_bytes",
            "shmem_bytes",
            "kernel_bytes",
            "sock_bytes",
            "page_tables_bytes",
            "cache_bytes",
            "inactive_file_bytes",
            "file_mapped_bytes",
            "thp_bytes",
            "swap_bytes",
            "current_bytes",
            "peak_bytes",
        ];
        Self {
            unknown: FIELDS
                .into_iter()
                .map(|field| (field.into(), reason.to_owned()))
                .collect(),
            ..Self::default()
        }
    }
}

/// Kernel memory with sockets on version 2, and a note where it had to be put together from parts.
fn kernel_v2(stat: &Keyed) -> (Result<u64, String>, Option<String>) {
    let with_sockets = |kernel: u64| stat.get("sock").map(|sock| kernel.saturating_add(sock));
    let whole = stat.get("kernel").and_then(with_sockets);
    if whole.is_ok() {
        return (whole, None);
    }
    let parts: Vec<u64> = KERNEL_PARTS
        .into_iter()
        .filter_map(|part| stat.get(part).ok())
        .collect();
    if parts.is_empty() {
        return (whole, None);
    }
    let note =
        "this kernel's memory.stat has no `kernel`: the sum of stacks, page tables, percpu and slab is taken";
    (
        with_sockets(parts.into_iter().fold(0, u64::saturating_add)),
        Some(note.to_owned()),
    )
}
