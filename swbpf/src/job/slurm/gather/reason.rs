//! The answer of each node, or the best reason for that there is none.

use super::labelled::{Labelled, Text};
use super::{ANSWERS, Answer, End};
use crate::error::NOTE;
use crate::job::slurm::run::MAX_TOLD;

/// Slurm's words for a step that someone else asks for.
const DENIED: &str = "Access/permission denied";

/// Answers in the order of `nodes`.
pub(super) fn answers(nodes: &[String], answers: Labelled, complaints: Labelled, end: &End) -> Vec<Answer> {
    let (answers, _) = answers.finish();
    let (complaints, of_srun) = complaints.finish();
    let of_srun = String::from_utf8_lossy(&of_srun.bytes).into_owned();
    let each = nodes.iter().zip(answers).zip(&complaints);
    each.map(|((node, answer), complaint)| {
        answer_in(&answer).unwrap_or_else(|| Err(reason(node, complaint, &of_srun, end)))
    })
    .collect()
}

/// The answer begins where a line does; what is before it, the prologue of the task wrote.
fn answer_in(text: &Text) -> Option<Answer> {
    let begin = text
        .bytes
        .split_inclusive(|byte| *byte == b'\n')
        .scan(0, |at, line| {
            let begin = *at;
            *at += line.len();
            Some((begin, line))
        })
        .find(|(_, line)| line.starts_with(b"{"))
        .map(|(begin, _)| begin);
    if text.is_cut {
        let most = ANSWERS.a_task >> 20;
        let in_all = ANSWERS.in_all >> 20;
        return Some(Err(format!(
            "its answer is longer than {most} MiB, or all together than {in_all} MiB"
        )));
    }
    let whole = &text.bytes[begin?..];
    Some(Ok(whole.iter().copied().filter(|byte| *byte != b'\n').collect()))
}

/// In whose words there are any: its own, `srun`'s of it, what was seen of it, `srun`'s of all.
fn reason(node: &str, complaint: &Text, of_srun: &str, end: &End) -> String {
    let own = String::from_utf8_lossy(&complaint.bytes);
    let own = line_of_node(&own).or_else(|| line_of_srun(of_srun, |line| names(line, node)));
    if let Some(line) = own {
        return shortened(line);
    }
    match end {
        End::TimedOut(limit) => format!("it did not answer within {} s", limit.as_secs_f64()),
        End::Stopped => "it was not waited for: sw-bpf was told to end".to_owned(),
        End::Flooded => "it was not waited for: srun wrote without an end".to_owned(),
        End::Exited(status) => line_of_srun(of_srun, |_| true).map_or_else(
            || match status {
                Ok(status) => format!("srun ended ({status}) without its answer"),
                Err(error) => format!("srun could not be waited for: {error}"),
            },
            shortened,
        ),
    }
}

/// A failure that sw-bpf tells, or else Slurm's daemon of its step, or else anything.
fn line_of_node(text: &str) -> Option<&str> {
    let lines = || {
        text.lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with(NOTE))
    };
    lines()
        .find_map(|line| line.strip_prefix("sw-bpf: "))
        .or_else(|| lines().find(|line| line.starts_with("slurmstepd") && line.contains("error: ")))
        .or_else(|| lines().next())
}

/// An error of `srun` itself, without what stands before all of them.
fn line_of_srun(text: &str, holds: impl Fn(&str) -> bool) -> Option<&str> {
    text.lines()
        .filter_map(|line| line.trim().strip_prefix("srun: error: "))
        .find(|line| holds(line))
}

/// Whether `node` stands in `line` as a word.
fn names(line: &str, node: &str) -> bool {
    line.split(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)))
        .any(|word| word.trim_end_matches('.') == node)
}

fn shortened(line: &str) -> String {
    let line: String = line.chars().take(MAX_TOLD).collect();
    if line.ends_with(DENIED) {
        line + ": Slurm starts a step for the job's own user alone, be that as root"
    } else {
        line
    }
}
