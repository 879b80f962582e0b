//! The section on memory of a snapshot: as counted in the kernel where it can be, else as the files have it.

use super::{
    Fold, KernelReading, Unknown,
    base::{Base, lag_pages},
    levels,
    looks::Looks,
    memory::{self, Parts, hugetlb, page_bytes, rss_sum, to_bytes},
    peak,
    times::added,
};
use crate::{
    sampled::cgroupfs::MemoryFiles,
    snapshot::{Level, Memory, Peak, SampledPeak, Source, Timeline},
};

/// What differs between the two sources.
struct Needed {
    source: Source,
    now: Option<Parts>,
    peak_bytes: Option<u64>,
    peak: Option<Peak>,
    levels: Option<Vec<Level>>,
    timeline: Option<Timeline>,
    error_bound_bytes: Option<u64>,
    samples: Option<u64>,
}

impl Fold {
    /// The section, its timeline since `from_ns`, and the reason of each number that is not known.
    pub(super) fn memory(&self, from_ns: u64, unknown: &mut Unknown) -> Memory {
        let needed = match self.counted() {
            Some(kernel) => self.needed_counted(kernel, from_ns),
            None => self.needed_sampled(),
        };
        let files = &self.last.memory;
        memory::note_unknown(files, unknown);
        let told = self.told(needed, files);
        self.note_memory(&told, unknown);
        told
    }

    /// What the kernel programs hold of memory, where they can count it.
    pub(super) fn counted(&self) -> Option<&KernelReading> {
        self.last
            .kernel
            .as_ref()
            .filter(|_| self.subject.memory_not_counted.is_none())
    }

    fn needed_counted(&self, kernel: &KernelReading, from_ns: u64) -> Needed {
        let start = (!self.subject.from_start).then_some(&self.first.memory);
        let misses = self.misses_page_tables();
        let parts = |level, parts, base: &Base| {
            let parts = Parts::counted(level, parts, base, start)?;
            // Page tables that an interrupt frees are among the statistics that were not seen.
            Some(Parts {
                page_tables: parts.page_tables.filter(|_| !misses),
                ..parts
            })
        };
        let (best, best_base) = self.best.unwrap_or((kernel.slot.peak, self.base));
        let at_peak = parts(best.level, &best.parts, &best_base);
        let bound = self.base.bound().zip(best_base.bound());
        let bound = bound
            .filter(|_| !self.is_too_deep())
            .map(|(now, then)| now.max(then) + self.subject.batch_bound_pages);
        let base = self.base.pages();
        let levels_ns = self.levels_ns(kernel);
        let levels = base.map(|base| levels::levels(&levels_ns, |pages| to_bytes(pages + base)));
        Needed {
            source: Source::Kernel,
            now: parts(kernel.slot.level, &kernel.slot.parts, &self.base),
            peak_bytes: at_peak.map(|parts| parts.needed),
            peak: at_peak.map(|parts| peak::counted(&best, parts, &self.witnesses, self.begin)),
            levels,
            timeline: base.zip(self.series.as_ref()).map(|(base, series)| {
                // The bucket in which the window begins is told whole.
                let from_ns = from_ns.saturating_sub(kernel.histograms.bucket_ns);
                series.told(self.begin, from_ns, |pages| to_bytes(pages + base))
            }),
            error_bound_bytes: bound.map(|pages| pages * page_bytes()),
            samples: None,
        }
    }

    /// Whether a cgroup somewhere on the host was too deep to know whether it belongs to the target.
    pub(super) fn is_too_deep(&self) -> bool {
        self.last.losses().too_deep > self.first.losses().too_deep
    }

    /// Whether statistics were not seen that page tables may be among.
    pub(super) fn misses_page_tables(&self) -> bool {
        let (first, last) = (self.first.losses(), self.last.losses());
        last.is_untold || last.lruvec_misses > first.lruvec_misses
    }

    /// Time by level since the begin.
    fn levels_ns(&self, kernel: &KernelReading) -> Vec<u64> {
        let first = self.first.kernel.as_ref();
        let before = first.map_or(&[][..], |first| &first.histograms.levels_ns);
        added(before, &kernel.histograms.levels_ns)
    }

    fn needed_sampled(&self) -> Needed {
        let now = Parts::read(&self.last.memory);
        Needed {
            source: match self.highest.memory.needed() {
                Some(_) => Source::Sampled,
                None => Source::Unavailable,
            },
            now,
            peak_bytes: self.highest.memory.needed(),
            peak: peak::sampled(&self.highest, self.begin, self.gap_ns as f64 / 1e9),
            levels: None,
            timeline: None,
            error_bound_bytes: self.bound_of_samples(),
            samples: self
                .highest
                .memory
                .needed()
                .map(|_| self.readings + self.glimpses),
        }
    }

    /// Needed memory is charged, so it was never above the kernel's own high-water; and the files lag.
    fn bound_of_samples(&self) -> Option<u64> {
        let charged = self.last.memory.peak_bytes.filter(|_| !self.mark_is_lost)?;
        let unseen = charged.checked_sub(self.highest.memory.needed()?)?;
        Some(unseen.max(lag_pages(self.subject.cpus).unsigned_abs() * page_bytes()))
    }

    fn told(&self, needed: Needed, files: &MemoryFiles) -> Memory {
        let peak_bytes = needed.peak_bytes;
        let limit_bytes = self.last.limit.as_ref().map(|limit| limit.bytes);
        let working_set = files.working_set();
        let part = |part: fn(&Parts) -> u64| needed.now.as_ref().map(part);
        Memory {
            source: needed.source,
            needed_bytes: part(|parts| parts.needed),
            needed_peak_bytes: peak_bytes,
            needed_peak_samples: needed.samples,
            error_bound_bytes: needed.error_bound_bytes,
            anon_bytes: part(|parts| parts.anon),
            shmem_bytes: part(|parts| parts.shmem),
            kernel_bytes: part(|parts| parts.kernel),
            file_bytes: needed.now.and_then(|parts| parts.file),
            swap_bytes: needed.now.and_then(|parts| parts.swap),
            hugetlb_bytes: hugetlb(&self.last.processes),
            hugetlb_peak_bytes: self.hugetlb_peak,
            peak: needed.peak,
            high: needed
                .levels
                .as_deref()
                .zip(peak_bytes)
                .and_then(|(levels, peak)| levels::high(levels, peak)),
            levels: needed.levels,
            timeline: needed.timeline,
            current_bytes: files.current_bytes,
            peak_bytes: files.peak_bytes,
            limit_bytes,
            usage_percent: ratio(files.current_bytes, limit_bytes).map(|part| part * 100.0),
            working_set_bytes: working_set,
            cache_bytes: files.cache_bytes,
            peak_working_set_bytes: self.working_set_peak,
            working_set_percent: ratio(working_set, limit_bytes).map(|part| part * 100.0),
            rss_sum_bytes: rss_sum(&self.last.processes),
            rss_sum_peak_bytes: self.rss_peak,
            rss_inflation: ratio(self.rss_peak, peak_bytes),
            cache_inflation: ratio(files.peak_bytes, peak_bytes),
            sampled_1s: self.looked(&self.each_second, peak_bytes),
            sampled_30s: self.looked(&self.each_30_s, peak_bytes),
        }
    }

    /// What a sampler saw: of counted memory at the same counter, else in the files.
    fn looked(&self, looks: &Looks, peak_bytes: Option<u64>) -> SampledPeak {
        let base = self.counted().map_or(Some(0), |_| self.base.pages()).unwrap_or(0);
        looks.told(peak_bytes, |pages| to_bytes(pages + base))
    }
}

fn ratio(bytes: Option<u64>, by: Option<u64>) -> Option<f64> {
    let by = by.filter(|by| *by > 0)?;
    Some(bytes? as f64 / by as f64)
}
