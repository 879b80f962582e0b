//! The tables of kernels, in Markdown. A row is known by its kernel, cgroups and hooks, that of one test program by its name too,
//! and replaced by a newer one of these.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;
use support::document::Document;

use super::Row;

const HEAD: &str = "\
| Kernel | Cgroups | Hooks | Tests passed | Failed | Skipped | Spikes captured | ns an event | By an empty program |
|---|---|---|---:|---:|---:|---:|---:|---:|
";

const PROGRAMS_HEAD: &str = "\
| Kernel | Cgroups | Hooks | All | Instructions of each program |
|---|---|---|---:|---|
";

const EACH_HEAD: &str = "\
| Kernel | Cgroups | Hooks | Test program | Tests passed | Failed | Skipped |
|---|---|---|---|---:|---:|---:|
";

/// How many columns a row is known by.
const KEY: usize = 3;
const EACH_KEY: usize = 4;

/// Puts the rows of a kernel into both tables of a file.
pub fn put(told: &Row, spikes: &Path) -> Result<()> {
    let document = Document::open(&told.write, "kernels")?;
    let measured = measured(&told.measured)?;
    let spikes = fs::read_to_string(spikes).unwrap_or_default();
    let (rows, programs) = document.tables().split_once(PROGRAMS_HEAD).unwrap_or_default();
    let rows = replaced(rows, HEAD, &row(&measured, spikes.trim(), &told.tests)?, KEY);
    let programs = replaced(programs, "", &programs_row(&measured)?, KEY);
    document.write(&format!("{HEAD}{rows}\n{PROGRAMS_HEAD}{programs}"))
}

/// Puts the row of a test program that has one of its own into their table.
pub fn put_each(told: &Row, program: &str) -> Result<()> {
    let document = Document::open(&told.write, "each")?;
    let row = each_row(&measured(&told.measured)?, program, &told.tests)?;
    let rows = replaced(document.tables(), EACH_HEAD, &row, EACH_KEY);
    document.write(&format!("{EACH_HEAD}{rows}"))
}

fn measured(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    serde_json::from_str(&text).context("what was measured")
}

/// The rows of a table without its head, with one put in that is known by as many columns as `key_len` says, sorted as
/// versions are.
fn replaced(table: &str, head: &str, row: &str, key_len: usize) -> String {
    let key = |row| key(row, key_len);
    let rows = table.trim_start().strip_prefix(head).unwrap_or(table);
    let mut rows: Vec<&str> = rows
        .lines()
        .filter(|line| line.starts_with('|') && key(line) != key(row))
        .chain([row])
        .collect();
    rows.sort_by_key(|row| (numbers(row), key(row)));
    rows.join("\n") + "\n"
}

/// The first columns.
fn key(row: &str, len: usize) -> Vec<&str> {
    row.split('|').skip(1).take(len).map(str::trim).collect()
}

/// The numbers of the kernel's version.
fn numbers(row: &str) -> Vec<u64> {
    let kernel = key(row, 1).first().copied().unwrap_or_default();
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
        "{}{} {spikes} | {event_ns} | {:.2} |",
        begin(measured)?,
        counts(tests)?,
        event / empty
    ))
}

fn each_row(measured: &Value, program: &str, tests: &[u64]) -> Result<String> {
    Ok(format!("{}| `{program}` {}", begin(measured)?, counts(tests)?))
}

/// How many tests passed, failed and could not run.
fn counts(tests: &[u64]) -> Result<String> {
    let [passed, failed, skipped] = tests else {
        anyhow::bail!("three counts of tests");
    };
    Ok(format!("| {passed} | {failed} | {skipped} |"))
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
        let table = replaced("", HEAD, &of("6.12.1", 1), KEY);
        let table = replaced(&format!("{HEAD}{table}"), HEAD, &of("6.1.9", 2), KEY);
        let table = replaced(&format!("\n{HEAD}{table}"), HEAD, &of("6.12.1", 3), KEY);
        assert_eq!(table, format!("{}\n{}\n", of("6.1.9", 2), of("6.12.1", 3)));
    }

    #[test]
    fn each_program_has_a_row() {
        let put = |table: &str, program, passed| {
            let row = each_row(&measured("6.1", "fentry", true), program, &[passed, 0, 1]).expect("a row");
            replaced(table, EACH_HEAD, &row, EACH_KEY)
        };
        let table = put(&put("", "slurm_jobs", 1), "slurm_hooks", 2);
        let table = put(&format!("\n{EACH_HEAD}{table}"), "slurm_jobs", 3);
        assert_eq!(
            table,
            "| 6.1 | v2 | fentry | `slurm_hooks` | 2 | 0 | 1 |\n\
             | 6.1 | v2 | fentry | `slurm_jobs` | 3 | 0 | 1 |\n"
        );
    }
}
