//! The moment of the needed peak: what it was made of, and who was there.

use serde::{Deserialize, Serialize};

use super::{
    Clock, Reading, Scan,
    memory::{Parts, page_bytes},
};
use crate::{
    kernel::layout,
    probe::PeakReading,
    sampled::procfs::Process,
    snapshot::{Peak, Task, TopProcess},
};

/// Processes that are told.
const TOP: usize = 5;
/// A look at the processes is near the peak where the level was at least this share of it.
const NEAR_PERCENT: i64 = 90;

/// Pages of 1 MiB.
const MIB_PAGES: i64 = 256;

/// Who was there when a peak was told.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
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

    /// Who raised the level to `peak`, unless the notice of it was dropped: the next one comes 1 % and 1 MiB above the last.
    fn raiser_of(&self, peak: i64) -> Option<Task> {
        let near = |(level, _): &&(i64, Task)| level + level / 128 + MIB_PAGES >= peak;
        self.raised_by.as_ref().filter(near).map(|(_, task)| task.clone())
    }

    /// The processes at that look, where the level was at least `level`.
    fn processes_at(&self, level: i64) -> &[Process] {
        let scan = self.scan.as_ref().filter(|scan| scan.level >= level);
        scan.map_or(&[], |scan| &scan.processes)
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

/// As counted in the kernel: `parts` at the peak of the slot. A peak that was there before counts from the begin.
pub fn counted(peak: &PeakReading, parts: Parts, witnesses: &Witnesses, begin: Clock) -> Peak {
    let pages = (parts.needed / page_bytes()) as i64;
    let base = pages - peak.level;
    let told = told(
        parts,
        peak.reached_ns.max(begin.ns()),
        begin,
        witnesses.processes_at(pages * NEAR_PERCENT / 100 - base),
    );
    Peak {
        // One tick for the moment, one for how well the tick is known.
        at_error_seconds: 2.0 * layout::tick_ns() as f64 / 1e9,
        raised_by: witnesses.raiser_of(peak.level),
        ..told
    }
}

/// As the files showed it at the reading with the highest needed memory; `gap_seconds` lie at most between two readings.
pub fn sampled(reading: &Reading, begin: Clock, gap_seconds: f64) -> Option<Peak> {
    let told = told(
        Parts::read(&reading.memory)?,
        reading.ns,
        begin,
        &reading.processes,
    );
    Some(Peak {
        at_error_seconds: gap_seconds,
        ..told
    })
}

fn told(parts: Parts, ns: u64, begin: Clock, processes: &[Process]) -> Peak {
    let is_seen = !processes.is_empty();
    Peak {
        at: begin.rfc3339(ns),
        at_seconds: begin.seconds_to(ns),
        at_error_seconds: 0.0,
        anon_bytes: parts.anon,
        shmem_bytes: parts.shmem,
        kernel_bytes: parts.kernel,
        page_tables_bytes: parts.page_tables,
        file_bytes: parts.file,
        file_mapped_bytes: parts.file_mapped,
        thp_bytes: parts.thp,
        swap_bytes: parts.swap,
        process_count: is_seen.then_some(processes.len() as u64),
        thread_count: is_seen.then(|| processes.iter().map(|process| process.threads).sum()),
        raised_by: None,
        top_processes: top(processes),
    }
}
