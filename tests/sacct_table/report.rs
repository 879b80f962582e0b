//! The table, in Markdown.

use jiff::Timestamp;
use support::measure::MIB;

use crate::figures::Figures;
use crate::jobs::{JOBS, Job};
use crate::setup::{SETUPS, Setup};

/// A job's figures under each setup, several runs of each.
pub type Row = Vec<(&'static Setup, Figures)>;

/// All that was measured.
pub fn markdown(machine: &str, version: &str, rounds: u32, rows: &[Row]) -> String {
    let setups = SETUPS.iter().map(Setup::name).collect::<Vec<_>>();
    let lines: String = JOBS.iter().zip(rows).map(|(job, row)| line(job, row)).collect();
    let jobs: String = JOBS.iter().map(described).collect();
    let date = Timestamp::now().strftime("%Y-%m-%d");
    format!(
        "Measured on {date} in {rounds} rounds with {version} on: {machine}.\n{}\n\n\
         | Job | Holds | sw-bpf | Kernel's counter | MaxRSS: {} |\n|---|---:|---:|---:{}|\n{lines}\n\
         | Job | Options | Script |\n|---|---|---|\n{jobs}",
        trust(rows),
        setups.join(" | MaxRSS: "),
        "|---:".repeat(SETUPS.len()),
    )
}

/// How far sw-bpf's figures are to be trusted, in words.
fn trust(rows: &[Row]) -> String {
    let runs: Vec<_> = rows.iter().flatten().map(|(_, figures)| &figures.ours).collect();
    let whole = runs.iter().filter(|seen| seen.from_start).count();
    let bounds: Vec<_> = runs.iter().filter_map(|seen| seen.error_bound_bytes).collect();
    let exact = bounds.iter().filter(|bound| **bound == 0).count();
    let most = format!("at most {}", size(bounds.iter().max().copied()));
    let bounds = [
        ("0", exact),
        (&most, bounds.len() - exact),
        (
            "unknown, because changes of kernel memory were lost,",
            runs.len() - bounds.len(),
        ),
    ];
    let bounds: Vec<_> = bounds
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(bound, count)| format!("{bound} in {count}"))
        .collect();
    format!(
        "Memory is in MiB. Of {} runs, sw-bpf measured {whole} from the first instruction. Its error bound was {}.",
        runs.len(),
        bounds.join(", "),
    )
}

fn line(job: &Job, row: &Row) -> String {
    let ours = row
        .iter()
        .map(|(_, figures)| Some(figures.ours.needed_peak_bytes));
    let counter = row.iter().map(|(_, figures)| Some(figures.counter_bytes));
    let stored = SETUPS.iter().map(|setup| {
        let runs = row.iter().filter(|(of, _)| *of == setup);
        cell(runs.map(|(_, figures)| figures.max_rss_bytes))
    });
    let cells: Vec<_> = [
        job.title.to_owned(),
        job.held.to_owned(),
        cell(ours),
        cell(counter),
    ]
    .into_iter()
    .chain(stored)
    .collect();
    format!("| {} |\n", cells.join(" | "))
}

/// The least and the most of several runs in MiB, once where they look alike.
fn cell(runs: impl Iterator<Item = Option<u64>>) -> String {
    let runs: Vec<_> = runs.collect();
    let [least, most] = [runs.iter().min(), runs.iter().max()].map(|run| size(run.copied().flatten()));
    if least == most {
        least
    } else {
        format!("{least} to {most}")
    }
}

fn size(bytes: Option<u64>) -> String {
    bytes.map_or("none".to_owned(), |bytes| {
        format!("{:.1}", bytes as f64 / MIB as f64)
    })
}

fn described(job: &Job) -> String {
    format!(
        "| {} | `{}` | `{}` |\n",
        job.title,
        job.options.join(" "),
        job.script
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Seen;

    #[test]
    fn every_line_of_a_table_has_its_columns() {
        let figures = |peak, error_bound_bytes, max_rss_bytes| Figures {
            ours: Seen {
                needed_peak_bytes: peak,
                error_bound_bytes,
                from_start: true,
            },
            counter_bytes: 2 * MIB,
            max_rss_bytes,
        };
        let row: Row = SETUPS
            .iter()
            .flat_map(|setup| {
                [
                    (setup, figures(MIB, Some(0), None)),
                    (setup, figures(3 * MIB / 2, None, Some(MIB))),
                ]
            })
            .collect();
        let rows = vec![row; JOBS.len()];
        let report = markdown("a machine", "slurm 1", 2, &rows);
        let tables: Vec<&str> = report
            .split("\n\n")
            .filter(|part| part.starts_with('|'))
            .collect();
        assert_eq!(tables.len(), 2, "{report}");
        for table in tables {
            let mut columns = table.lines().map(|line| line.matches('|').count());
            let head = columns.next();
            assert!(columns.all(|count| Some(count) == head), "{table}");
        }
        assert!(report.contains("| 1.0 to 1.5 | 2.0 | none to 1.0 |"), "{report}");
        let trust = "measured 48 from the first instruction. Its error bound was 0 in 24, unknown, because";
        assert!(report.contains(trust), "{report}");
    }
}
