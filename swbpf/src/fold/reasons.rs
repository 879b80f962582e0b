//! For each number that is not known the reason, under its dotted key.

use super::{Fold, Unknown};
use crate::snapshot::{Exit, Memory, Overhead, Peak, SampledPeak};

/// Puts a reason beside each number that is not known and has none yet.
struct Reasons<'a> {
    prefix: &'static str,
    unknown: &'a mut Unknown,
}

impl Reasons<'_> {
    fn unless(&mut self, is_known: bool, key: &str, reason: &str) {
        if !is_known {
            let key = format!("{}{key}", self.prefix);
            self.unknown.entry(key).or_insert_with(|| reason.to_owned());
        }
    }
}

const TOO_DEEP: &str = "a cgroup on this host is nested too deep to know whether it belongs to the target";
const LOST: &str = "events were lost, and memory changed at every comparison with the kernel's files since";
const DEAF: &str = "for a time the kernel did not call the programs: tracing of functions was switched off, see `sysctl \
     kernel.ftrace_enabled` and /sys/kernel/debug/kprobes/enabled";
const MARK_LOST: &str =
    "the kernel's high-water mark was reset, or went with the cgroup before it was read for the last time";
const PAGE_TABLES_UNSEEN: &str = "an interrupt freed page tables or slab while the program ran on that CPU";
const NO_LIMIT: &str = "no limit is set";
const NO_PROCESS: &str = "no process was alive when it was looked at";
const NONE_SEEN: &str = "no process was alive when they were looked at: 5 ms and 50 ms after the begin, each second, and where \
                        the peak rises";
const NO_LOOK: &str = "there was no look: it was over before the first, or none was due yet";
const ONE_UNKNOWN: &str = "one of the two numbers is not known";

impl Fold {
    pub(super) fn note_memory(&self, memory: &Memory, unknown: &mut Unknown) {
        let not_counted = self.why_not_counted();
        let files = &self.last.memory.unknown;
        let mut because = Reasons {
            prefix: "memory.",
            unknown,
        };
        because.unless(
            memory.needed_peak_samples.is_some(),
            "needed_peak_samples",
            "not sampled",
        );
        let no_bound = self.why_no_bound(memory).unwrap_or(&not_counted);
        because.unless(memory.error_bound_bytes.is_some(), "error_bound_bytes", no_bound);
        because.unless(memory.levels.is_some(), "levels", &not_counted);
        because.unless(memory.timeline.is_some(), "timeline", &not_counted);
        because.unless(memory.high.is_some(), "high", &not_counted);
        because.unless(memory.peak.is_some(), "peak", &not_counted);
        for (value, key) in [
            (memory.needed_bytes, "needed_bytes"),
            (memory.needed_peak_bytes, "needed_peak_bytes"),
            (memory.anon_bytes, "anon_bytes"),
            (memory.shmem_bytes, "shmem_bytes"),
            (memory.kernel_bytes, "kernel_bytes"),
            (memory.file_bytes, "file_bytes"),
            (memory.swap_bytes, "swap_bytes"),
        ] {
            because.unless(value.is_some(), key, files.get(key).unwrap_or(&not_counted));
        }
        because.unless(memory.limit_bytes.is_some(), "limit_bytes", NO_LIMIT);
        because.unless(memory.usage_percent.is_some(), "usage_percent", NO_LIMIT);
        because.unless(
            memory.working_set_percent.is_some(),
            "working_set_percent",
            NO_LIMIT,
        );
        for (value, key) in [
            (memory.working_set_bytes, "working_set_bytes"),
            (memory.peak_working_set_bytes, "peak_working_set_bytes"),
            (memory.rss_sum_bytes, "rss_sum_bytes"),
            (memory.hugetlb_bytes, "hugetlb_bytes"),
        ] {
            because.unless(value.is_some(), key, NO_PROCESS);
        }
        for (value, key) in [
            (memory.rss_sum_peak_bytes, "rss_sum_peak_bytes"),
            (memory.hugetlb_peak_bytes, "hugetlb_peak_bytes"),
        ] {
            because.unless(value.is_some(), key, NONE_SEEN);
        }
        because.unless(memory.rss_inflation.is_some(), "rss_inflation", ONE_UNKNOWN);
        because.unless(memory.cache_inflation.is_some(), "cache_inflation", ONE_UNKNOWN);
        note_looks("memory.sampled_1s.", memory.sampled_1s, unknown);
        note_looks("memory.sampled_30s.", memory.sampled_30s, unknown);
        if let Some(peak) = &memory.peak {
            self.note_peak(peak, unknown);
        }
    }

    fn note_peak(&self, peak: &Peak, unknown: &mut Unknown) {
        // Counted, it is what was not known at the start.
        let reading = if self.last.kernel.is_some() {
            &self.first
        } else {
            &self.highest
        };
        let files = &reading.memory.unknown;
        let mut because = Reasons {
            prefix: "memory.peak.",
            unknown,
        };
        if self.misses_page_tables() {
            because.unless(
                peak.page_tables_bytes.is_some(),
                "page_tables_bytes",
                PAGE_TABLES_UNSEEN,
            );
        }
        for (value, key, field) in [
            (peak.page_tables_bytes, "page_tables_bytes", "page_tables_bytes"),
            (peak.file_bytes, "file_bytes", "cache_bytes"),
            (peak.file_mapped_bytes, "file_mapped_bytes", "file_mapped_bytes"),
            (peak.thp_bytes, "thp_bytes", "thp_bytes"),
            (peak.swap_bytes, "swap_bytes", "swap_bytes"),
        ] {
            because.unless(
                value.is_some(),
                key,
                files
                    .get(field)
                    .map_or("this kernel does not count it", String::as_str),
            );
        }
        let unseen = "no look at the processes fell near the peak";
        because.unless(peak.process_count.is_some(), "process_count", unseen);
        because.unless(peak.thread_count.is_some(), "thread_count", unseen);
        let untold = match self.last.kernel {
            Some(_) => "the peak was there before, or less than 1 MiB above the begin",
            None => "only the kernel programs see who raised it",
        };
        because.unless(peak.raised_by.is_some(), "raised_by", untold);
    }

    fn why_no_bound(&self, memory: &Memory) -> Option<&'static str> {
        match (self.counted(), memory.needed_bytes) {
            (Some(_), Some(_)) if self.base.is_deaf() => Some(DEAF),
            (Some(_), Some(_)) if self.is_too_deep() => Some(TOO_DEEP),
            (Some(_), Some(_)) => Some(LOST),
            (None, _) if self.mark_is_lost => Some(MARK_LOST),
            _ => None,
        }
    }

    fn why_not_counted(&self) -> String {
        match &self.subject.memory_not_counted {
            Some(reason) => reason.clone(),
            None if self.last.kernel.is_none() => "only the kernel programs count every change".to_owned(),
            None => "memory changed at every comparison with the kernel's files: measure longer".to_owned(),
        }
    }

    /// The reason of each part of a snapshot that this target or this version does not have.
    pub(super) fn note_absent(&self, exit: Option<Exit>, unknown: &mut Unknown) {
        let target = &self.subject.target;
        let mut because = Reasons { prefix: "", unknown };
        because.unless(false, "gpus", "this version reads no graphics processors");
        because.unless(
            self.elapsed(self.begin, self.last.ns).is_some(),
            "elapsed_seconds",
            "the target ran before it was measured",
        );
        because.unless(
            self.last.kernel.is_some(),
            "loss",
            "nothing is counted between two looks",
        );
        for key in ["loss.kernel_memory_misses", "loss.lru_misses"] {
            because.unless(
                !self.last.losses().is_untold,
                key,
                "not every kernel counts the runs of kprobes that it skips",
            );
        }
        because.unless(exit.is_some(), "exit", "no command of sw-bpf's own has ended");
        if let Some(exit) = exit {
            because.unless(exit.code.is_some(), "exit.code", "a signal ended the command");
            because.unless(
                exit.signal.is_some(),
                "exit.signal",
                "the command exited by itself",
            );
        }
        because.unless(
            target.pid.is_some(),
            "target.pid",
            "the target was not named by a process",
        );
        because.unless(
            target.command.is_some(),
            "target.command",
            "the target is not a command of sw-bpf's own",
        );
        because.unless(
            target.cgroup_version.is_some(),
            "target.cgroup_version",
            "no hierarchy counts the target's memory",
        );
        because.unless(
            self.subject.probes.reason.is_some(),
            "probes.reason",
            "the best source is used",
        );
        self.note_elements(unknown);
    }

    /// The reason of what is not known in an element of a list: one for all elements, under `[]`.
    fn note_elements(&self, unknown: &mut Unknown) {
        let mut because = Reasons { prefix: "", unknown };
        let programs = &self.subject.probes.programs;
        because.unless(
            programs.iter().all(|program| program.reason.is_some()),
            "probes.programs[].reason",
            "an attached program needs none",
        );
        self.note_kills(unknown);
    }

    pub(super) fn note_overhead(overhead: &Overhead, is_one_of_many: bool, unknown: &mut Unknown) {
        let mut because = Reasons {
            prefix: "overhead.",
            unknown,
        };
        because.unless(
            overhead.agent_cpu_percent.is_some(),
            "agent_cpu_percent",
            if is_one_of_many {
                "one process of sw-bpf measures all jobs of the node together"
            } else {
                "no time has passed"
            },
        );
        because.unless(
            overhead.programs_cpu_percent.is_some(),
            "programs_cpu_percent",
            "no calibration window has ended",
        );
        because.unless(
            overhead.ns_per_event.is_some(),
            "ns_per_event",
            "no event within a calibration window",
        );
    }
}

fn note_looks(prefix: &'static str, looks: SampledPeak, unknown: &mut Unknown) {
    let mut because = Reasons { prefix, unknown };
    because.unless(looks.peak_bytes.is_some(), "peak_bytes", NO_LOOK);
    because.unless(looks.missed_percent.is_some(), "missed_percent", NO_LOOK);
}
