//! The tables, in Markdown.

use crate::aims::{Verdict, judge};
use crate::attach::Variant;
use crate::outcome::{Outcome, Row};
use crate::programs::ProgramCost;
use crate::spread::Estimate;

/// Where there is no figure.
const HIDDEN: &str = "hidden by the noise";

/// All that was measured.
pub fn markdown(machine: &str, rounds: u32, outcomes: &[Outcome], programs: &[ProgramCost]) -> String {
    let aims: String = judge(outcomes).map(|verdict| aim_line(&verdict)).collect();
    let loads: String = outcomes.iter().flat_map(load_lines).collect();
    let programs: String = programs.iter().map(program_line).collect();
    format!(
        "Measured in {rounds} rounds on: {machine}.\n\n\
         ### Aims\n\n\
         | Load | Variant | Aim | Figure | Met |\n|---|---|---|---:|---|\n{aims}\n\
         ### Figures\n\n\
         | Load | Variant | Time | Ratio to none | Range of ratios | Added | By what the empty program adds |\n\
         |---|---|---:|---:|---:|---:|---:|\n{loads}\n\
         ### Programs, by the kernel's own statistics\n\n\
         | Load | Program | Runs | Time of a run, untracked | Tracked |\n|---|---|---:|---:|---:|\n{programs}"
    )
}

fn aim_line(verdict: &Verdict) -> String {
    let met = match verdict.met {
        Some(true) => "yes",
        Some(false) => "no",
        None => HIDDEN,
    };
    format!(
        "| ({}) {} | {} | {} | {} | {met} |\n",
        verdict.outcome.letter,
        verdict.outcome.title,
        verdict.variant,
        verdict.text,
        quotient(verdict.figure),
    )
}

fn load_lines(outcome: &Outcome) -> impl Iterator<Item = String> {
    outcome.rows.iter().map(|row| load_line(outcome, row))
}

fn load_line(outcome: &Outcome, row: &Row) -> String {
    let begin = format!(
        "| ({}) {} | {} | {} per {} ",
        outcome.letter,
        outcome.title,
        row.variant,
        time(row.ns.median),
        outcome.unit
    );
    if row.variant == Variant::None {
        return begin + "| | | | |\n";
    }
    let by_empty = match row.variant {
        Variant::Empty => String::new(),
        _ => quotient(outcome.added_by(row, Variant::Empty)),
    };
    format!(
        "{begin}| {} | {:.3} to {:.3} | {} | {by_empty} |\n",
        quotient(Some(row.ratio.median)),
        row.ratio.least,
        row.ratio.most,
        time(row.added_ns.median)
    )
}

fn program_line(cost: &ProgramCost) -> String {
    format!(
        "| {} | `{}` | {:.2} per {} | {} | {} |\n",
        cost.title,
        cost.program,
        cost.runs.median.value,
        cost.unit,
        time(cost.untracked_ns.median),
        time(cost.tracked_ns.median)
    )
}

fn quotient(figure: Option<Estimate>) -> String {
    figure.map_or(HIDDEN.to_owned(), |Estimate { value, error }| {
        format!("{value:.3} ± {error:.3}")
    })
}

/// Nanoseconds, in the unit that reads best.
fn time(Estimate { value, error }: Estimate) -> String {
    if value.abs().max(error) < 100_000.0 {
        format!("{value:.1} ± {error:.1} ns")
    } else {
        format!("{:.2} ± {:.2} ms", value / 1e6, error / 1e6)
    }
}

/// With a comma before each three digits.
pub fn grouped(number: usize) -> String {
    if number < 1000 {
        number.to_string()
    } else {
        format!("{},{:03}", grouped(number / 1000), number % 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spread::Spread;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([7, 1000, 1_234_567].map(grouped), ["7", "1,000", "1,234,567"]);
    }

    #[test]
    fn every_line_of_a_table_has_its_columns() {
        let variants = [Variant::None, Variant::Empty, Variant::Tracked(10_000)];
        let times = [vec![2000.0, 2100.0], vec![2100.0, 2200.0], vec![2.1e6, 2.2e6]];
        let outcome = Outcome::new('a', "faults", "page", &variants, &times);
        let cost = ProgramCost {
            title: "faults".to_owned(),
            unit: "page",
            program: "hook".to_owned(),
            runs: Spread::of([4.0, 4.1]),
            untracked_ns: Spread::of([50.0, 51.0]),
            tracked_ns: Spread::of([70.0, 71.0]),
        };
        let report = markdown("a machine", 2, &[outcome], &[cost]);
        let tables: Vec<&str> = report
            .split("\n\n")
            .filter(|part| part.starts_with('|'))
            .collect();
        assert_eq!(tables.len(), 3, "{report}");
        for table in tables {
            let mut columns = table.lines().map(|line| line.matches('|').count());
            let head = columns.next();
            assert!(columns.all(|count| Some(count) == head), "{table}");
        }
        assert!(report.contains("tracked among 10,000 | 2.15 ± "), "{report}");
    }
}
