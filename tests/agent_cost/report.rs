//! The tables, in Markdown.

use std::time::Duration;

use crate::case::Measured;

/// The most that is aimed at: part of one CPU, and resident memory in bytes.
fn aim(jobs: usize) -> Option<(f64, u64)> {
    match jobs {
        100 => Some((0.005, 30 << 20)),
        1_000 => Some((0.03, 80 << 20)),
        _ => None,
    }
}

/// All that was measured; the first is the floor.
pub fn markdown(machine: &str, window: Duration, age: Duration, measured: &[Measured]) -> String {
    let floor = measured.first().map_or(0.0, |first| first.old);
    let lines: String = measured.iter().map(|case| line(case, floor)).collect();
    let aims: String = measured.iter().filter_map(aim_line).collect();
    format!(
        "Measured in windows of {} s, from the birth of all jobs at once on, and {} s after it, on: {machine}.\n\n\
         | Jobs | Cgroups | CPU at first | Later | By that without jobs | Resident | At most | Maps in the kernel | On `/run` | Records a minute at first | Later |\n\
         |---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n{lines}\n\
         | Jobs | Aim | Later | Resident | Met |\n|---:|---|---:|---:|---|\n{aims}",
        window.as_secs(),
        age.as_secs(),
    )
}

fn line(case: &Measured, floor: f64) -> String {
    let [young, old] = case.record_bytes;
    let ratio = if floor > 0.0 { case.old / floor } else { f64::NAN };
    format!(
        "| {} | {} | {} | {} | {ratio:.1} x | {} | {} | {} | {} | {} | {} |\n",
        case.jobs,
        case.cgroups,
        percent(case.young),
        percent(case.old),
        mib(case.memory.rss as f64),
        mib(case.memory.highest_rss as f64),
        mib(case.memory.maps as f64),
        mib(case.saved_bytes as f64),
        mib(young),
        mib(old),
    )
}

fn aim_line(case: &Measured) -> Option<String> {
    let (cpu, bytes) = aim(case.jobs)?;
    let is_met = case.old < cpu && case.memory.rss < bytes;
    Some(format!(
        "| {} | {} of one CPU, {} | {} | {} | {} |\n",
        case.jobs,
        percent(cpu),
        mib(bytes as f64),
        percent(case.old),
        mib(case.memory.rss as f64),
        if is_met { "yes" } else { "no" },
    ))
}

fn percent(part: f64) -> String {
    format!("{:.2} %", part * 100.0)
}

fn mib(bytes: f64) -> String {
    format!("{:.1} MiB", bytes / f64::from(1 << 20))
}
