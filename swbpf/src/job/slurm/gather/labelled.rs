//! What `srun --label` writes, taken apart: each line has the number of its task before it.
//!
//! `srun` cuts a long line into parts of 1,024 bytes and puts a label before, and a line end behind, each of them; lines of
//! different tasks stand among one another.

/// Longest label: `P127 65535: ` and some room.
const MAX_LABEL: usize = 24;

/// How much is kept, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Most {
    /// Of each task, and of the lines without a label.
    pub a_task: usize,
    /// Of all tasks together.
    pub in_all: usize,
}

/// The text of one task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    /// Its lines, with their ends.
    pub bytes: Vec<u8>,
    /// Whether something was left out, since it was too much.
    pub is_cut: bool,
}

/// A stream that is taken apart as it comes.
#[derive(Debug)]
pub struct Labelled {
    most: Most,
    tasks: Vec<Text>,
    unlabelled: Text,
    kept: usize,
    line: Line,
}

/// Where in a line the stream is.
#[derive(Debug)]
enum Line {
    /// Within what may be a label.
    Label(Vec<u8>),
    /// Within the text of a task.
    OfTask(usize),
    /// Within a line that has no label.
    Unlabelled,
}

impl Labelled {
    /// Of the tasks from 0 to `tasks`.
    pub fn new(tasks: usize, most: Most) -> Self {
        Self {
            most,
            tasks: vec![Text::default(); tasks],
            unlabelled: Text::default(),
            kept: 0,
            line: Line::Label(Vec::new()),
        }
    }

    /// Takes the next part of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.push_part(part);
            if part.ends_with(b"\n") {
                self.end_label();
                self.line = Line::Label(Vec::new());
            }
        }
    }

    /// The text of each task, and that without a label.
    pub fn finish(mut self) -> (Vec<Text>, Text) {
        self.end_label();
        (self.tasks, self.unlabelled)
    }

    /// Takes a part of one line.
    fn push_part(&mut self, part: &[u8]) {
        let Line::Label(label) = &mut self.line else {
            return self.keep(part);
        };
        let begin = label.len();
        let looked = part.len().min(MAX_LABEL - begin);
        label.extend_from_slice(&part[..looked]);
        match of_label(label) {
            Parsed::Open if label.len() < MAX_LABEL => {}
            Parsed::Task(task, length) if task < self.tasks.len() => {
                self.line = Line::OfTask(task);
                self.keep(&part[length - begin..]);
            }
            _ => {
                let label = std::mem::take(label);
                self.line = Line::Unlabelled;
                self.keep(&label);
                self.keep(&part[looked..]);
            }
        }
    }

    /// What looked like a label and is none is a line.
    fn end_label(&mut self) {
        if let Line::Label(label) = &mut self.line {
            let label = std::mem::take(label);
            self.line = Line::Unlabelled;
            self.keep(&label);
        }
    }

    /// Adds to the line that the stream is in, up to a limit.
    fn keep(&mut self, bytes: &[u8]) {
        let (text, most) = match self.line {
            Line::OfTask(task) => {
                let Some(text) = self.tasks.get_mut(task) else {
                    return;
                };
                let room = self.most.in_all - self.kept;
                let most = room.min(self.most.a_task - text.bytes.len());
                self.kept += bytes.len().min(most);
                (text, most)
            }
            Line::Label(_) | Line::Unlabelled => {
                let most = self.most.a_task - self.unlabelled.bytes.len();
                (&mut self.unlabelled, most)
            }
        };
        let fits = bytes.len().min(most);
        text.bytes.extend_from_slice(&bytes[..fits]);
        text.is_cut |= fits < bytes.len();
    }
}

/// What the begin of a line is.
enum Parsed {
    /// The begin of a label.
    Open,
    /// The label of this task, which is so long.
    Task(usize, usize),
    /// No label.
    Not,
}

/// Reads `  7: `, `007: `, and `P1 7: ` where the step is of a heterogeneous job.
fn of_label(line: &[u8]) -> Parsed {
    let mut at = 0;
    if line.first() == Some(&b'P') {
        at = 1 + digits(&line[1..]);
        match line.get(at) {
            None => return Parsed::Open,
            Some(b' ') if at > 1 => {}
            Some(_) => return Parsed::Not,
        }
    }
    at += line[at..].iter().take_while(|byte| **byte == b' ').count();
    let end = at + digits(&line[at..]);
    match line.get(end..) {
        Some([] | [b':']) => Parsed::Open,
        Some([b':', b' ', ..]) => std::str::from_utf8(&line[at..end])
            .ok()
            .and_then(|number| number.parse().ok())
            .map_or(Parsed::Not, |task| Parsed::Task(task, end + 2)),
        _ => Parsed::Not,
    }
}

fn digits(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;

    use super::*;

    const MOST: Most = Most {
        a_task: 4096,
        in_all: 16_384,
    };

    fn apart(stream: &[u8], tasks: usize, most: Most) -> (Vec<Text>, Text) {
        let mut labelled = Labelled::new(tasks, most);
        labelled.push(stream);
        labelled.finish()
    }

    fn texts(stream: &str, tasks: usize) -> (Vec<String>, String) {
        let (texts, unlabelled) = apart(stream.as_bytes(), tasks, MOST);
        let text = |text: &Text| String::from_utf8_lossy(&text.bytes).into_owned();
        (texts.iter().map(text).collect(), text(&unlabelled))
    }

    #[test]
    fn lines_go_to_their_tasks() {
        let (tasks, unlabelled) = texts("0: a\n1: b\n0: c\n\nsrun: error: x\n1: d", 2);
        assert_eq!(tasks, ["a\nc\n", "b\nd"]);
        assert_eq!(unlabelled, "\nsrun: error: x\n");
    }

    #[test]
    fn labels_have_the_width_of_the_longest_and_may_name_a_component() {
        for stream in ["  1: a\n 10: b\n", "001: a\n010: b\n", "P1  1: a\nP1 10: b\n"] {
            let (tasks, unlabelled) = texts(stream, 11);
            assert_eq!(
                (tasks[1].as_str(), tasks[10].as_str()),
                ("a\n", "b\n"),
                "{stream}"
            );
            assert_eq!(unlabelled, "");
        }
    }

    #[test]
    fn what_has_no_label_or_that_of_no_task_is_kept_apart() {
        for line in [
            "2: a\n",
            "-1: a\n",
            "1:a\n",
            "1 : a\n",
            ": a\n",
            "P: 1\n",
            "P1: a\n",
            "P1x 1: a\n",
            "99999999999999999999999: a\n",
            "                                  1: a\n",
            "1",
            "1:",
        ] {
            let (tasks, unlabelled) = texts(line, 2);
            assert_eq!(
                (tasks.concat().as_str(), unlabelled.as_str()),
                ("", line),
                "{line}"
            );
        }
    }

    #[test]
    fn what_is_too_much_is_cut_and_said_to_be() {
        let most = Most { a_task: 4, in_all: 6 };
        let (tasks, unlabelled) = apart(b"0: abcd\n1: ef\n2: g\nlonger than four\n", 3, most);
        let told: Vec<_> = tasks
            .iter()
            .map(|text| (text.bytes.as_slice(), text.is_cut))
            .collect();
        assert_eq!(told, [(&b"abcd"[..], true), (b"ef", true), (b"", true)]);
        assert_eq!(
            (unlabelled.bytes.as_slice(), unlabelled.is_cut),
            (&b"long"[..], true)
        );
    }

    proptest! {
        /// As `srun` does it: cut anywhere, with those of others between, and read in parts of any length.
        #[test]
        fn parts_among_one_another_come_together(
            texts in prop::collection::vec("[ -~]{1,40}", 1..12), cut in 1_usize..9, read in 1_usize..30,
        ) {
            let width = 2;
            let mut stream = String::new();
            let parts: Vec<Vec<&[u8]>> = texts.iter().map(|text| text.as_bytes().chunks(cut).collect()).collect();
            for round in 0..parts.iter().map(Vec::len).max().unwrap_or(0) {
                for (task, parts) in parts.iter().enumerate() {
                    if let Some(part) = parts.get(round) {
                        let part = std::str::from_utf8(part).expect("ASCII");
                        writeln!(stream, "{task:>width$}: {part}").expect("a String takes everything");
                    }
                }
            }
            let mut labelled = Labelled::new(texts.len(), MOST);
            for bytes in stream.as_bytes().chunks(read) {
                labelled.push(bytes);
            }
            let (tasks, unlabelled) = labelled.finish();
            prop_assert_eq!(unlabelled, Text::default());
            for (task, text) in tasks.iter().zip(&texts) {
                let whole: Vec<u8> = task.bytes.iter().copied().filter(|byte| *byte != b'\n').collect();
                prop_assert_eq!(&whole, text.as_bytes());
            }
        }

        #[test]
        fn any_bytes_are_kept_once_and_within_bounds(
            bytes: Vec<u8>, near in "[0-3P: \n]{0,60}", read in 1_usize..9, tasks in 0_usize..4,
            a_task in 0_usize..20, in_all in 0_usize..40,
        ) {
            for stream in [&bytes, near.as_bytes()] {
                let mut labelled = Labelled::new(tasks, Most { a_task, in_all });
                for part in stream.chunks(read) {
                    labelled.push(part);
                }
                let (texts, unlabelled) = labelled.finish();
                let kept: usize = texts.iter().map(|text| text.bytes.len()).sum();
                prop_assert!(kept <= in_all && kept + unlabelled.bytes.len() <= stream.len());
                prop_assert!(texts.iter().chain([&unlabelled]).all(|text| text.bytes.len() <= a_task));
                // Whether in one part or in many, it is the same.
                prop_assert_eq!((texts, unlabelled), apart(stream, tasks, Most { a_task, in_all }));
            }
        }
    }
}
