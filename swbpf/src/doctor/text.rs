//! The diagnosis that a person reads.

use super::diagnosis::{Check, Diagnosis, Verdict};
use crate::out::{
    escape,
    text::page::{WIDTH, wrapped},
};

/// Columns of the verdict and of the topic.
const VERDICT: usize = 10;
const TOPIC: usize = 14;
/// Columns of what is told of it.
const TOLD: usize = WIDTH - VERDICT - TOPIC;
/// Columns of one thing that is told, over its lines.
const MOST: usize = 12 * TOLD;

/// The whole in plain text: at most 80 columns of printable ASCII, whatever it holds.
pub fn text(diagnosis: &Diagnosis) -> String {
    let mut text = format!("sw-bpf doctor: {}\n\n", escape::head(&diagnosis.hostname, TOLD));
    for one in &diagnosis.checks {
        check(&mut text, one);
    }
    text.push('\n');
    text.push_str(&total(diagnosis));
    text
}

fn check(text: &mut String, check: &Check) {
    let begin = format!(
        "{:<VERDICT$}{:<TOPIC$}",
        check.verdict.word(),
        check.topic.title()
    );
    told(text, &begin, &check.found);
    told(text, "", &check.means);
    for change in &check.changes {
        told(text, "", &format!("-> {change}"));
    }
}

/// `what` in lines, the first of them behind `begin`.
fn told(text: &mut String, begin: &str, what: &str) {
    let lines = wrapped(&escape::head(what, MOST), TOLD);
    for (index, line) in lines.iter().enumerate() {
        let begin = if index == 0 { begin } else { "" };
        let line = format!("{begin:<width$}{line}", width = VERDICT + TOPIC);
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

/// What all of it comes to: the checks of the worst verdict, and in brackets those that are not well either.
fn total(diagnosis: &Diagnosis) -> String {
    let worst = diagnosis.verdict;
    let titles = |verdict| {
        let checks = diagnosis.checks.iter().filter(|check| check.verdict == verdict);
        checks
            .map(|check| check.topic.title())
            .collect::<Vec<_>>()
            .join(", ")
    };
    if worst == Verdict::Ok {
        return "ok: every number is exact\n".to_owned();
    }
    let lesser: Vec<_> = [Verdict::Degraded, Verdict::Unknown]
        .into_iter()
        .filter(|verdict| *verdict < worst)
        .map(|verdict| (verdict.word(), titles(verdict)))
        .filter(|(_, titles)| !titles.is_empty())
        .map(|(word, titles)| format!("{word}: {titles}"))
        .collect();
    let lesser = if lesser.is_empty() {
        String::new()
    } else {
        format!(" ({})", lesser.join("; "))
    };
    let line = format!("{}: {}{lesser}", worst.word(), titles(worst));
    wrapped(&line, WIDTH).join("\n") + "\n"
}
