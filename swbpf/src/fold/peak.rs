//! The moment of the needed peak: what it was made of, and who was there.

use swbpf_common::slot::{FILE_MAPPED, PAGE_TABLES, THP};

use super::{
    Clock, KernelReading, Reading, Scan,
    base::Base,
    memory::{Parts, to_bytes},
};
use crate::{
    kernel::layout,
    sampled::procfs::Process,
    snapshot::{Peak, Task, TopProcess},
};

/// Processes that are told.
const TOP: usize = 5;

/// Who was there when a peak was told.
#[derive(Debug, Clone, Default)]
pub struct Witnesses {
    /// Who raised the level to the last peak told, and that level.
    raised_by: Option<(i64, Task)>,
    /// The look at the processes with the highest level.
    scan: Option<Scan>,
}

impl Witnesses {
    /// A new peak was told.
    pub fn raised(&mut self, level: i64, by: Task) {
        if self.raised_by.as_ref().is_none_or(|(known, _)| level >= *known) {
            self.raised_by = Some((level, by));
        }
    }

    /// A look at the processes. Of two near the same level the later counts.
    pub fn scanned(&mut self, scan: Scan) {
        if self.scan.as_ref().is_none_or(|known| scan.level >= known.level) {
            self.scan = Some(scan);
        }
    }

    fn top(&self) -> Vec<TopProcess> {
        self.scan
            .as_ref()
            .map(|scan| top(&scan.processes))
            .unwrap_or_default()
    }
}

/// The largest first.
fn top(processes: &[Process]) -> Vec<TopProcess> {
    let mut largest: Vec<&Process> = processes.iter().filter(|process| process.rss_bytes > 0).collect();
    largest.sort_by_key(|process| std::cmp::Reverse(process.rss_bytes));
    largest
        .into_iter()
        .take(TOP)
        .map(|process| TopProcess {
            pid: process.pid,
            comm: process.comm.clone(),
            rss_bytes: process.rss_bytes,
        })
        .collect()
}

/// As counted in the kernel.
pub fn counted(kernel: &KernelReading, base: &Base, witnesses: &Witnesses, begin: Clock) -> Option<Peak> {
    let peak = &kernel.slot.peak;
    let parts = Parts::counted(peak.level, &peak.parts, base)?;
    let scan = witnesses.scan.as_ref();
    Some(Peak {
        at: begin.rfc3339(peak.reached_ns),
        at_seconds: begin.seconds_to(peak.reached_ns),
        // One tick for the moment, one for how well the tick is known.
        at_error_seconds: 2.0 * layout::tick_ns() as f64 / 1e9,
        anon_bytes: parts.anon,
        shmem_bytes: parts.shmem,
        kernel_bytes: parts.kernel,
        page_tables_bytes: Some(to_bytes(peak.parts[PAGE_TABLES])),
        file_bytes: Some(parts.file),
        file_mapped_bytes: Some(to_bytes(peak.parts[FILE_MAPPED])),
        thp_bytes: Some(to_bytes(peak.parts[THP])),
        swap_bytes: parts.swap,
        process_count: scan.map(|scan| scan.processes.len() as u64),
        thread_count: scan.map(|scan| scan.processes.iter().map(|process| process.threads).sum()),
        raised_by: witnesses.raised_by.as_ref().map(|(_, task)| task.clone()),
        top_processes: witnesses.top(),
    })
}

/// As the files showed it at the reading with the highest needed memory; `every_seconds` lie between two readings.
pub fn sampled(reading: &Reading, begin: Clock, every_seconds: f64) -> Option<Peak> {
    let files = &reading.memory;
    Some(Peak {
        at: begin.rfc3339(reading.ns),
        at_seconds: begin.seconds_to(reading.ns),
        at_error_seconds: every_seconds,
        anon_bytes: files.anon_bytes?,
        shmem_bytes: files.shmem_bytes?,
        kernel_bytes: files.kernel_bytes?,
        page_tables_bytes: files.page_tables_bytes,
        file_bytes: files.file(),
        file_mapped_bytes: files.file_mapped_bytes,
        thp_bytes: files.thp_bytes,
        swap_bytes: files.swap_bytes,
        process_count: Some(reading.processes.len() as u64),
        thread_count: Some(reading.processes.iter().map(|process| process.threads).sum()),
        raised_by: None,
        top_processes: top(&reading.processes),
    })
}
