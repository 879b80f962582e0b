//! What the summary says of memory.

use super::page::{NOTE, Page};
use super::{joined, named, plural, reason};
use crate::out::escape;
use crate::out::units::{bytes, duration, known, moment, percent, ratio};
use crate::snapshot::{Kind, LimitOf, OomKill, Peak, SampledPeak, Snapshot, Source};

/// Kills and processes beyond this many are told by their number alone.
const SHOWN: usize = 3;

/// Kills for want of memory, where there were any.
pub fn oom_kills(page: &mut Page, snapshot: &Snapshot) {
    let kills = &snapshot.oom_kills;
    let untold = snapshot.oom_kills_untold.unwrap_or(0);
    if kills.is_empty() && untold == 0 {
        return;
    }
    page.section(&format!(
        "Out of memory, {} killed",
        plural(kills.len() as u64 + untold, "process", "processes")
    ));
    for kill in kills.iter().take(SHOWN) {
        oom_kill(page, kill);
    }
    if kills.len() > SHOWN {
        page.row("", "", &format!("and {} more", kills.len() - SHOWN));
    }
    if untold > 0 {
        page.row(
            "",
            "",
            &format!("{untold} of them without a notice: it was dropped"),
        );
    }
}

fn oom_kill(page: &mut Page, kill: &OomKill) {
    page.row("victim", "", &named(&kill.victim));
    if kill.trigger != kill.victim {
        page.row("  asked for by", "", &named(&kill.trigger));
    }
    page.row("  killed after", &duration(kill.at_seconds), &moment(&kill.at));
    let until_then = (kill.needed_peak_bytes != kill.needed_bytes)
        .then(|| format!("highest until then {}", bytes(kill.needed_peak_bytes)));
    page.row(
        "  needed then",
        &bytes(kill.needed_bytes),
        &until_then.unwrap_or_default(),
    );
    if let Some(limit) = kill.limit_bytes {
        let of = kill.limit_cgroup.as_ref().map(|path| escape::tail(path, NOTE));
        page.row(limit_of(kill.limit_of), &bytes(limit), &of.unwrap_or_default());
    }
    if let Some(step) = &kill.step_id {
        let place = kill
            .task_id
            .map_or(String::new(), |task| format!("task {task} of "));
        let place = format!("{place}step .{}", escape::head(step, NOTE / 2));
        page.row("  in", "", &place);
    }
    let note = if kill.victim_is_main {
        "it was the first of its cgroup"
    } else {
        "its parent was there to go on"
    };
    page.row("  went on", &duration(kill.went_on_seconds), note);
}

fn limit_of(whose: LimitOf) -> &'static str {
    match whose {
        LimitOf::Task => "  limit of task",
        LimitOf::Step => "  limit of step",
        LimitOf::Job => "  limit of job",
        LimitOf::Above => "  limit above",
        LimitOf::Below => "  limit below",
        LimitOf::Target | LimitOf::Unknown => "  limit",
    }
}

/// The peak as it is, and as others would tell it.
pub fn peaks(page: &mut Page, snapshot: &Snapshot) {
    let memory = &snapshot.memory;
    let (title, meaning) = match (memory.source, memory.needed_peak_samples) {
        (Source::Kernel, _) => ("Peak memory".to_owned(), "what the kernel could not take back"),
        (Source::Sampled, Some(looks)) => (
            format!("Highest memory seen at {}", plural(looks, "look", "looks")),
            "peaks between looks are not seen",
        ),
        _ => ("Memory".to_owned(), "peaks between looks are not seen"),
    };
    page.section(&title);
    let needed = memory.needed_peak_bytes;
    let is_cut = !snapshot.oom_kills.is_empty() || snapshot.oom_kills_untold.unwrap_or(0) > 0;
    let meaning = if is_cut {
        "at least: a process was killed before it had what it asked for"
    } else {
        meaning
    };
    compared(
        page,
        "needed",
        needed,
        Some(1.0),
        &told(snapshot, needed, "needed_peak_bytes", meaning),
    );
    let (rss, charged) = (memory.rss_sum_peak_bytes, memory.peak_bytes);
    let note = told(
        snapshot,
        rss,
        "rss_sum_peak_bytes",
        "shared pages once per process",
    );
    compared(page, "sum of RSS", rss, memory.rss_inflation, &note);
    let with_cache = if snapshot.coverage.from_start {
        "page cache among it"
    } else {
        "page cache among it, since it began"
    };
    let note = told(snapshot, charged, "peak_bytes", with_cache);
    compared(page, "kernel counter", charged, memory.cache_inflation, &note);
    if memory.source == Source::Kernel {
        // What runs still may be looked at yet.
        let no_look = match snapshot.kind {
            Kind::Summary => "it was over before the first",
            Kind::Progress | Kind::Once => "none was due yet",
        };
        seen(page, "seen every 1 s", &memory.sampled_1s, needed, no_look);
        seen(page, "seen every 30 s", &memory.sampled_30s, needed, no_look);
    }
    beside(page, snapshot);
}

/// What else there is to say of memory: the limit, huge pages, and the level at this moment.
fn beside(page: &mut Page, snapshot: &Snapshot) {
    let memory = &snapshot.memory;
    if let Some(limit) = memory.limit_bytes {
        let share = memory
            .needed_peak_bytes
            .map(|needed| 100.0 * needed as f64 / limit as f64);
        let verb = if memory.source == Source::Kernel {
            "needed"
        } else {
            "seen"
        };
        let note = share.map_or(String::new(), |share| {
            format!("{} of it was {verb}", percent(share))
        });
        compared(
            page,
            "limit",
            Some(limit),
            times(limit, memory.needed_peak_bytes),
            &note,
        );
    }
    if let Some(huge) = memory.hugetlb_peak_bytes.filter(|&huge| huge > 0) {
        page.row("huge pages", &bytes(huge), "of hugetlbfs, beside what is needed");
    }
    if snapshot.kind != Kind::Summary {
        let note = told(snapshot, memory.needed_bytes, "needed_bytes", "");
        compared(page, "needed now", memory.needed_bytes, None, &note);
    }
}

/// A row of memory with its factor of the needed peak.
fn compared(page: &mut Page, label: &str, value: Option<u64>, factor: Option<f64>, note: &str) {
    match value {
        Some(value) => page.compared(label, &bytes(value), &factor.map_or(String::new(), ratio), note),
        None => page.row(label, &known(value, bytes), note),
    }
}

/// `meaning` where there is a value, else why there is none.
fn told(snapshot: &Snapshot, value: Option<u64>, key: &str, meaning: &str) -> String {
    if value.is_some() {
        meaning.to_owned()
    } else {
        reason(snapshot, &format!("memory.{key}"))
    }
}

/// What a sampler would have said.
fn seen(page: &mut Page, label: &str, sampled: &SampledPeak, needed: Option<u64>, no_look: &str) {
    if sampled.samples == 0 {
        return page.row(label, "no look", no_look);
    }
    let missed = match sampled.missed_percent {
        None => "how much is missed is unknown".to_owned(),
        Some(0.0) => "none missed".to_owned(),
        Some(missed) => format!("{} missed", percent(missed)),
    };
    let note = format!("{missed}, {}", plural(sampled.samples, "look", "looks"));
    compared(
        page,
        label,
        sampled.peak_bytes,
        sampled.peak_bytes.and_then(|seen| times(seen, needed)),
        &note,
    );
}

/// `value` as a multiple of what was needed.
fn times(value: u64, needed: Option<u64>) -> Option<f64> {
    needed
        .filter(|&needed| needed > 0)
        .map(|needed| value as f64 / needed as f64)
}

/// The moment of the peak: when, how long, of what, by whom.
pub fn at_the_peak(page: &mut Page, snapshot: &Snapshot) {
    let Some(peak) = &snapshot.memory.peak else { return };
    page.section(match snapshot.memory.source {
        Source::Kernel => "At the peak",
        _ => "At the highest look",
    });
    let error = (peak.at_error_seconds > 0.0).then(|| format!("+-{}", duration(peak.at_error_seconds)));
    if peak.at_seconds == 0.0 && !snapshot.coverage.from_start {
        page.row("reached", "", "there at the start");
    } else {
        page.compared(
            "reached after",
            &duration(peak.at_seconds),
            &error.unwrap_or_default(),
            &moment(&peak.at),
        );
    }
    if let Some(high) = snapshot.memory.high {
        let note = format!("at or above {}", bytes(high.threshold_bytes));
        page.row("held for", &duration(high.seconds), &note);
    }
    composition(page, peak);
    processes(page, peak);
}

fn composition(page: &mut Page, peak: &Peak) {
    let total = peak
        .anon_bytes
        .saturating_add(peak.shmem_bytes)
        .saturating_add(peak.kernel_bytes);
    let huge = peak
        .thp_bytes
        .filter(|&huge| huge > 0)
        .map(|huge| format!("{} of it in huge pages", bytes(huge)));
    let tables = peak
        .page_tables_bytes
        .map(|tables| format!("page tables {}", bytes(tables)));
    for (label, part, note) in [
        ("anonymous", peak.anon_bytes, huge),
        ("shared", peak.shmem_bytes, None),
        ("kernel", peak.kernel_bytes, tables),
    ] {
        let share = if total > 0 {
            percent(100.0 * part as f64 / total as f64)
        } else {
            String::new()
        };
        page.compared(label, &bytes(part), &share, &note.unwrap_or_default());
    }
    for (label, part) in [("page cache", peak.file_bytes), ("swapped out", peak.swap_bytes)] {
        if let Some(part) = part.filter(|&part| part > 0) {
            page.row(label, &bytes(part), "beside it");
        }
    }
}

fn processes(page: &mut Page, peak: &Peak) {
    if let Some(alive) = peak.process_count {
        let threads = peak
            .thread_count
            .map(|threads| plural(threads, "thread", "threads"));
        let noun = if alive == 1 { "process" } else { "processes" };
        page.row(
            "alive",
            &alive.to_string(),
            &joined([Some(noun.to_owned()), threads]),
        );
    }
    if let Some(task) = &peak.raised_by {
        page.row("raised by", "", &named(task));
    }
    for (index, process) in peak.top_processes.iter().take(SHOWN).enumerate() {
        let label = if index == 0 { "largest" } else { "" };
        page.row(
            label,
            &bytes(process.rss_bytes),
            &super::name(&process.comm, process.pid),
        );
    }
}
