//! The grid of the summary: a label, a value, how it compares, and a note.

use std::fmt::Write;

/// Columns of a terminal that everything fits in.
pub const WIDTH: usize = 80;

const INDENT: usize = 2;
/// Columns of a label.
pub const LABEL: usize = 17;
const VALUE: usize = 12;
const COMPARED: usize = 10;
const GAP: usize = 2;

/// Columns of a note.
pub const NOTE: usize = WIDTH - INDENT - LABEL - VALUE - COMPARED - GAP;

/// Text that grows line by line.
#[derive(Default)]
pub struct Page(String);

impl Page {
    /// Adds a line.
    pub fn line(&mut self, line: &str) {
        self.0.push_str(line.trim_end());
        self.0.push('\n');
    }

    /// Begins a section.
    pub fn section(&mut self, title: &str) {
        self.line("");
        self.line(title);
    }

    /// Adds a row.
    pub fn row(&mut self, label: &str, value: &str, note: &str) {
        self.compared(label, value, "", note);
    }

    /// Adds a row whose value is set against another; a note that is too long goes on below itself.
    pub fn compared(&mut self, label: &str, value: &str, compared: &str, note: &str) {
        let mut lines = wrapped(note, NOTE).into_iter();
        let first = lines.next().unwrap_or_default();
        self.line(&format!(
            "{:INDENT$}{label:<LABEL$}{value:>VALUE$}{compared:>COMPARED$}{:GAP$}{first}",
            "", ""
        ));
        for rest in lines {
            self.line(&format!("{:width$}{rest}", "", width = WIDTH - NOTE));
        }
    }

    /// The text.
    pub fn finish(self) -> String {
        self.0
    }
}

/// `text`, which is ASCII, in lines of at most so many columns, broken between words, and within one only where it is wider than
/// a line.
pub fn wrapped(text: &str, columns: usize) -> Vec<String> {
    if text.len() <= columns {
        return vec![text.to_owned()];
    }
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        for part in word.as_bytes().chunks(columns).map(String::from_utf8_lossy) {
            match lines.last_mut() {
                Some(line) if line.is_empty() => line.push_str(&part),
                // Writing to a String cannot fail.
                Some(line) if line.len() + 1 + part.len() <= columns => drop(write!(line, " {part}")),
                _ => lines.push(part.into_owned()),
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_keeps_its_columns_and_a_long_note_goes_on_below() {
        let mut page = Page::default();
        page.compared("needed", "300.0 MiB", "1.00 x", "short");
        page.row("source", "sampled", "the kernel programs could not be used here");
        let expected = "  \
  needed              300.0 MiB    1.00 x  short
  source                sampled            the kernel programs could not be used
                                           here
";
        assert_eq!(page.finish(), expected);
    }
}
