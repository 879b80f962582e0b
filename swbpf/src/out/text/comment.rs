//! A job in one short line, as Slurm keeps it for its administrator.

use crate::snapshot::{SCHEMA_VERSION, Snapshot, Source};

/// Most bytes of the line.
pub const MAX_COMMENT: usize = 255;

/// `KEY=VALUE` with commas between, of letters, digits and `_=,.-` alone, without an end. What is not known is left out.
pub fn comment(snapshot: &Snapshot) -> String {
    let (memory, cpu, coverage) = (&snapshot.memory, &snapshot.cpu, &snapshot.coverage);
    let number = |value: Option<u64>| value.map(|value| value.to_string());
    let fraction = |value: f64| Some(format!("{value:.2}")).filter(|_| value.is_finite());
    let source = match memory.source {
        Source::Kernel => "kernel",
        Source::Sampled => "sampled",
        Source::Unavailable => "unavailable",
    };
    let kills = snapshot.oom_kills.len() as u64;
    let pairs = [
        ("swbpf", Some(SCHEMA_VERSION.to_string())),
        ("needed_peak_bytes", number(memory.needed_peak_bytes)),
        ("error_bound_bytes", number(memory.error_bound_bytes)),
        ("source", Some(source.to_owned())),
        ("busy_seconds", cpu.busy_seconds.and_then(fraction)),
        ("cores_allocated", cpu.cores_allocated.and_then(fraction)),
        ("seconds", fraction(coverage.seconds)),
        ("from_start", Some(coverage.from_start.to_string())),
        (
            "oom_kills",
            Some(
                kills
                    .saturating_add(snapshot.oom_kills_untold.unwrap_or(0))
                    .to_string(),
            ),
        ),
    ];
    let mut line = String::new();
    for (key, value) in pairs {
        let Some(value) = value else { continue };
        let comma = if line.is_empty() { "" } else { "," };
        // A number that a record made up can be of any length.
        if line.len() + comma.len() + key.len() + 1 + value.len() <= MAX_COMMENT {
            line.push_str(comma);
            line.push_str(key);
            line.push('=');
            line.push_str(&value);
        }
    }
    line
}
