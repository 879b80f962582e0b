//! What Slurm has stored of a job: `sacct`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::{JobId, Slurm};
use crate::pace::scaled;

/// A character that no name of a job can hold, unlike the usual one.
const DELIMITER: char = '\u{1f}';

/// How long it may take until what has ended is stored.
const PATIENCE: Duration = Duration::from_secs(20);

/// One row: the job, or one of its steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// `12`, `12.batch`, `12.0`, …
    pub id: String,
    fields: BTreeMap<String, String>,
}

impl Row {
    /// A value, as `sacct` writes it; empty where it has none.
    ///
    /// # Panics
    ///
    /// Where it was not asked for.
    #[must_use]
    pub fn get(&self, field: &str) -> &str {
        self.fields
            .get(field)
            .unwrap_or_else(|| panic!("{field} was not asked for"))
    }

    /// `MaxRSS` in bytes; none where `sacct` has none, which it also does not tell from 0.
    ///
    /// # Panics
    ///
    /// Where it was not asked for, or is no size.
    #[must_use]
    pub fn max_rss_bytes(&self) -> Option<u64> {
        let text = self.get("MaxRSS");
        let bytes = (!text.is_empty()).then(|| size_bytes(text));
        bytes.map(|bytes| bytes.unwrap_or_else(|| panic!("no size: {text}")))
    }
}

impl Slurm {
    /// The rows of a job that has ended, the job first and then its steps.
    ///
    /// # Panics
    ///
    /// Where they are not stored in time, or this cluster has no accounting.
    #[must_use]
    pub fn sacct(&self, job: JobId, fields: &[&str]) -> Vec<Row> {
        let format = [&["JobIDRaw", "State", "End"], fields].concat();
        let options = [
            "--noheader",
            "--parsable2",
            &format!("--delimiter={DELIMITER}"),
            "--starttime=now-1day",
            "--jobs",
            &job.to_string(),
            &format!("--format={}", format.join(",")),
        ];
        let deadline = Instant::now() + scaled(PATIENCE);
        loop {
            let rows = rows(&self.client("sacct", &options), &format);
            let is_stored = |row: &Row| row.get("End") != "Unknown" && row.get("State") != "RUNNING";
            if !rows.is_empty() && rows.iter().all(is_stored) {
                return rows;
            }
            assert!(Instant::now() < deadline, "not stored: {rows:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The row of one step: `batch`, `0`, …
    ///
    /// # Panics
    ///
    /// As [`sacct`](Self::sacct), and where there is no such step.
    #[must_use]
    pub fn sacct_step(&self, job: JobId, step: &str, fields: &[&str]) -> Row {
        let id = format!("{job}.{step}");
        let rows = self.sacct(job, fields);
        let found = rows.iter().find(|row| row.id == id);
        found.unwrap_or_else(|| panic!("no {id}: {rows:?}")).clone()
    }
}

/// The rows of a text, those that have as many values as were asked for.
fn rows(text: &str, format: &[&str]) -> Vec<Row> {
    text.lines()
        .map(|line| line.split(DELIMITER).collect::<Vec<_>>())
        .filter(|values| values.len() == format.len())
        .map(|values| {
            let fields = format.iter().zip(&values);
            Row {
                id: values.first().copied().unwrap_or_default().to_owned(),
                fields: fields
                    .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                    .collect(),
            }
        })
        .collect()
}

/// A size as `sacct` writes it, in bytes: a number, which may have a fraction, and a unit that is a power of 1024.
#[must_use]
pub fn size_bytes(text: &str) -> Option<u64> {
    let units = [('K', 10), ('M', 20), ('G', 30), ('T', 40), ('P', 50)];
    let unit = units
        .iter()
        .find_map(|(unit, shift)| Some((text.strip_suffix(*unit)?, *shift)));
    let (number, shift) = unit.unwrap_or((text, 0));
    let is_plain = |char: char| char.is_ascii_digit() || char == '.';
    let value: f64 = number.chars().all(is_plain).then(|| number.parse().ok())??;
    let bytes = (value * f64::from(2_u32).powi(shift)).round();
    // Above that, a float does not tell neighbours apart.
    (bytes <= 9e15).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        let sizes = [
            ("0", Some(0)),
            ("4K", Some(4096)),
            ("3.50M", Some(3_670_016)),
            ("106936K", Some(109_502_464)),
            ("1G", Some(1 << 30)),
            ("", None),
            ("K", None),
            ("-1K", None),
            ("1KB", None),
            ("inf", None),
            ("1e3", None),
        ];
        for (text, bytes) in sizes {
            assert_eq!(size_bytes(text), bytes, "{text}");
        }
    }

    #[test]
    fn a_row_has_all_values_or_is_none() {
        let text = "7\u{1f}a|b\u{1f}\n7.batch\u{1f}batch\u{1f}4K\nsacct: error\n";
        let rows = rows(text, &["JobIDRaw", "JobName", "MaxRSS"]);
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].id.as_str(), rows[0].get("JobName")), ("7", "a|b"));
        assert_eq!(rows[0].max_rss_bytes(), None);
        assert_eq!(rows[1].max_rss_bytes(), Some(4096));
    }

    proptest! {
        #[test]
        fn whole_sizes_are_read_back(kib in 0_u64..1 << 40) {
            prop_assert_eq!(size_bytes(&format!("{kib}K")), Some(kib << 10));
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in "\\PC*") {
            let _ = size_bytes(&text);
            let _ = rows(&text, &["JobIDRaw"]);
        }
    }
}
