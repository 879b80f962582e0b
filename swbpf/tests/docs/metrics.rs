//! `docs/metrics.md`.

use swbpf::out::openmetrics::{Described, described};

use super::{assert_doc, line};

#[test]
fn the_metrics_are_listed() {
    let mut text = String::from(METRICS);
    for (of, metrics) in described() {
        line(
            &mut text,
            &format!("\n## {of}\n\n| Metric | Type | Unit | Labels | Meaning |\n|---|---|---|---|---|"),
        );
        for Described {
            name,
            kind,
            unit,
            labels,
            help,
        } in metrics
        {
            let kind = format!("{kind:?}").to_lowercase();
            let labels: Vec<_> = labels.iter().map(|label| format!("`{label}`")).collect();
            line(
                &mut text,
                &format!("| `{name}` | {kind} | {unit} | {} | {help} |", labels.join(", ")),
            );
        }
    }
    assert_doc("metrics.md", &text);
}

/// What stands before their tables.
const METRICS: &str = include_str!("metrics.md");
