//! The tables of kernels, in Markdown. A row is known by its kernel, cgroups and hooks, and replaced by a newer one of these.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;
use support::document::Document;

const HEAD: &str = "\
| Kernel | Cgroups | Hooks | Tests passed | Failed | Skipped | Spikes captured | ns an event | By an empty program |
|---|---|---|---:|---:|---:|---:|---:|---:|
";

const PROGRAMS_HEAD: &str = "\
| Kernel | Cgroups | Hooks | All | Instructions of each program |
|---|---|---|---:|---|
";

/// Puts the rows of a kernel into both tables of a file.
pub fn put(path: &Path, measured: &Path, spikes: &Path, tests: &[u64]) -> Result<()> {
    let document = Document::open(path, "kernels")?;
    let measured = fs::read_to_string(measured).with_context(|| format!("read {}", measured.display()))?;
    let measured: Value = serde_json::from_str(&measured).context("what was measured")?;
    let spikes = fs::read_to_string(spikes).unwrap_or_default();
    let (rows, programs) = document.tables().split_once(PROGRAMS_HEAD).unwrap_or_default();
    let rows = replaced(rows, HEAD, &row(&measured, spikes.trim(), tests)?);
    let programs = replaced(programs, "", &programs_row(&measured)?);
    document.write(&format!("{HEAD}{rows}\n{PROGRAMS_HEAD}{programs}"))
}

/// The rows of a table without its head, with one put in, sorted as versions are.
fn replaced(table: &str, head: &str, row: &str) -> String {
    let rows = table.trim_start().strip_prefix(head).unwrap_or(table);
    let mut rows: Vec<&str> = rows
        .lines()
        .filter(|line| line.starts_with('|') && key(line) != key(row))
        .chain([row])
        .collect();
    rows.sort_by_key(|row| (numbers(row), key(row)));
    rows.join("\n") + "\n"
}

/// Kernel, cgroups and hooks.
fn key(row: &str) -> Vec<&str> {
    row.split('|').skip(1).take(3).map(str::trim).collect()
}

/// The numbers of the kernel's version.
fn numbers(row: &str) -> Vec<u64> {
    let kernel = key(row).first().copied().unwrap_or_default();
    let numbers = kernel.split(|c: char| !c.is_ascii_digit());
    numbers.filter_map(|number| number.parse().ok()).collect()
}

fn begin(measured: &Value) -> Result<String> {
    let text = |name: &str| measured[name].as_str().with_context(|| format!("no {name}"));
    Ok(format!(
        "| {} | v{} | {} ",
        text("kernel")?,
        measured["cgroup"],
        text("rung")?
    ))
}

fn row(measured: &Value, spikes: &str, tests: &[u64]) -> Result<String> {
    let number = |name: &str| measured[name].as_f64().with_context(|| format!("no {name}"));
    let (event, empty) = (number("event_ns")?, number("empty_event_ns")?);
    let [passed, failed, skipped] = tests else {
        anyhow::bail!("three counts of tests");
    };
    // Time in an emulated machine is no measure of anything.
    let event_ns = match measured["is_emulated"].as_bool() {
        Some(false) => format!("{event:.0}"),
        _ => "emulated".to_owned(),
    };
    let spikes = spikes
        .split_once(' ')
        .map_or("not tried".to_owned(), |(captured, all)| {
            format!("{captured} of {all}")
        });
    Ok(format!(
        "{}| {passed} | {failed} | {skipped} | {spikes} | {event_ns} | {:.2} |",
        begin(measured)?,
        event / empty
    ))
}

fn programs_row(measured: &Value) -> Result<String> {
    let programs = measured["programs"].as_array().context("no programs")?;
    let count = |program: &Value| program["verified_instructions"].as_u64().unwrap_or(0);
    let each: Vec<_> = programs
        .iter()
        .map(|program| {
            format!(
                "`{}` {}",
                program["name"].as_str().unwrap_or_default(),
                count(program)
            )
        })
        .collect();
    let all: u64 = programs.iter().map(count).sum();
    Ok(format!("{}| {all} | {} |", begin(measured)?, each.join(", ")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn measured(kernel: &str, rung: &str, is_emulated: bool) -> Value {
        json!({
            "kernel": kernel, "cgroup": 2, "rung": rung, "is_emulated": is_emulated,
            "event_ns": 60.0, "empty_event_ns": 40.0,
            "programs": [
                { "name": "a", "verified_instructions": 7 },
                { "name": "b", "verified_instructions": 5 },
            ],
        })
    }

    #[test]
    fn a_row_says_what_was_measured() {
        let told = row(&measured("6.1", "fentry", true), "199 200", &[3, 1, 0]).expect("a row");
        assert_eq!(
            told,
            "| 6.1 | v2 | fentry | 3 | 1 | 0 | 199 of 200 | emulated | 1.50 |"
        );
        let told = row(&measured("6.18", "btf_tracepoint", false), "", &[3, 1, 0]).expect("a row");
        assert!(told.ends_with("| not tried | 60 | 1.50 |"), "{told}");
        let told = programs_row(&measured("6.1", "fentry", true)).expect("a row");
        assert_eq!(told, "| 6.1 | v2 | fentry | 12 | `a` 7, `b` 5 |");
    }

    #[test]
    fn a_row_takes_the_place_of_the_one_before() {
        let of =
            |kernel, passed| row(&measured(kernel, "fentry", true), "1 1", &[passed, 0, 0]).expect("a row");
        let table = replaced("", HEAD, &of("6.12.1", 1));
        let table = replaced(&format!("{HEAD}{table}"), HEAD, &of("6.1.9", 2));
        let table = replaced(&format!("\n{HEAD}{table}"), HEAD, &of("6.12.1", 3));
        assert_eq!(table, format!("{}\n{}\n", of("6.1.9", 2), of("6.12.1", 3)));
    }
}
