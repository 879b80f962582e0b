//! The lines of a file from its end, without reading all of it.

use std::{fs::File, io, os::unix::fs::FileExt};

/// Longest line that is read: a job of very many steps has some hundred kilobytes.
pub const MAX_LINE: u64 = 16 << 20;
/// How much is read of one file, whatever is in it.
const MAX_READ: u64 = 4 * MAX_LINE;
/// How much is read at once.
const CHUNK: u64 = 64 << 10;

/// A line.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// With its end, which is not among these bytes.
    Whole(Vec<u8>),
    /// The last one, which has no end yet, or lost it.
    Torn,
    /// Longer than what is read; no more follow.
    TooLong,
}

/// Gives the lines of a file, the last one first.
pub struct Backward<'a> {
    file: &'a File,
    /// End of what has not been given.
    end: u64,
    left_to_read: u64,
    is_first: bool,
}

impl<'a> Backward<'a> {
    /// Those of a file as long as it is now.
    pub fn begin(file: &'a File) -> io::Result<Self> {
        Ok(Self {
            file,
            end: file.metadata()?.len(),
            left_to_read: MAX_READ,
            is_first: true,
        })
    }

    /// The line before the one that was given last.
    pub fn line(&mut self) -> io::Result<Option<Line>> {
        let Some(last) = self.end.checked_sub(1) else {
            return Ok(None);
        };
        let is_first = std::mem::replace(&mut self.is_first, false);
        let is_torn = is_first && self.read(last, self.end)? != b"\n";
        // An end is no part of its line, and where there is none the last byte can be any.
        let behind = if is_torn { self.end } else { last };
        let Some(begin) = self.begin_of(behind)? else {
            self.end = 0;
            return Ok(Some(Line::TooLong));
        };
        self.end = begin;
        if is_torn {
            return Ok(Some(Line::Torn));
        }
        self.read(begin, behind).map(|line| Some(Line::Whole(line)))
    }

    /// Where the line begins that goes up to `end`; `None` where that is too far away.
    fn begin_of(&mut self, end: u64) -> io::Result<Option<u64>> {
        let furthest = end.saturating_sub(MAX_LINE);
        let mut to = end;
        while to > furthest {
            let from = to.saturating_sub(CHUNK).max(furthest);
            let Some(left) = self.left_to_read.checked_sub(to - from) else {
                return Ok(None);
            };
            self.left_to_read = left;
            let chunk = self.read(from, to)?;
            if let Some(at) = chunk.iter().rposition(|byte| *byte == b'\n') {
                return Ok(Some(from + at as u64 + 1));
            }
            to = from;
        }
        Ok((furthest == 0).then_some(0))
    }

    fn read(&self, from: u64, to: u64) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; (to - from) as usize];
        self.file.read_exact_at(&mut bytes, from)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("written");
        file
    }

    fn lines(file: &File) -> Vec<Line> {
        let mut backward = Backward::begin(file).expect("a length");
        std::iter::from_fn(|| backward.line().expect("read")).collect()
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.as_bytes().to_vec())
    }

    #[test]
    fn lines_come_last_first() {
        for (text, expected) in [
            ("", vec![]),
            ("a\nbc\n", vec![whole("bc"), whole("a")]),
            ("a\nbc", vec![Line::Torn, whole("a")]),
            ("bc", vec![Line::Torn]),
            ("\n\n", vec![whole(""), whole("")]),
            ("a\n\nb", vec![Line::Torn, whole(""), whole("a")]),
        ] {
            assert_eq!(lines(&file(text.as_bytes())), expected, "{text:?}");
        }
    }

    #[test]
    fn a_line_as_long_as_may_be_is_read_and_a_longer_one_is_not() {
        let line = |length: u64| [b"a\n".to_vec(), vec![b'x'; length as usize], b"\n".to_vec()].concat();
        let longest = lines(&file(&line(MAX_LINE - 1)));
        assert!(matches!(&longest[..], [Line::Whole(long), Line::Whole(_)]
            if long.len() as u64 == MAX_LINE - 1));
        assert_eq!(lines(&file(&line(MAX_LINE + 1))), [Line::TooLong]);
        assert_eq!(lines(&file(&vec![b'x'; MAX_LINE as usize + 1])), [Line::TooLong]);
    }

    #[test]
    fn what_is_read_of_one_file_is_bounded() {
        let long = [vec![b'x'; (MAX_LINE - 1) as usize], b"\n".to_vec()].concat();
        let many = lines(&file(&long.repeat(6)));
        assert_eq!(many.last(), Some(&Line::TooLong));
        assert!(many.len() <= 5, "{}", many.len());
    }

    /// Parts of a file: about as long as what is read at once, too.
    fn parts() -> impl Strategy<Value = Vec<String>> {
        let long = (CHUNK as usize - 3..CHUNK as usize + 3).prop_map(|length| "a".repeat(length));
        proptest::collection::vec(prop_oneof!["[^\n]{0,5}", Just("\n".to_owned()), long], 0..12)
    }

    proptest! {
        #[test]
        fn they_are_those_that_stand_there(parts in parts()) {
            let text = parts.concat();
            let mut expected: Vec<Line> = text.split_terminator('\n').map(whole).rev().collect();
            if !text.is_empty() && !text.ends_with('\n') {
                expected[0] = Line::Torn;
            }
            prop_assert_eq!(lines(&file(text.as_bytes())), expected);
        }

        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let given: usize = lines(&file(&bytes))
                .into_iter()
                .map(|line| if let Line::Whole(line) = line { line.len() + 1 } else { 0 })
                .sum();
            let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            prop_assert_eq!(given, end);
        }
    }
}
