//! Counting what test programs report.

use std::collections::BTreeMap;
use std::env;
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::process::ExitCode;

use anyhow::{Context as _, Result};

/// How many tests did what.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed, and test programs that ended without a report.
    pub failed: u64,
    /// Tests that could not run here.
    pub skipped: u64,
}

impl Tally {
    /// Passes `onward` what a `cargo test` prints, counting the reports in it.
    pub fn listen(&mut self, stdout: impl Read, mut onward: impl Write) -> io::Result<()> {
        let mut reader = BufReader::new(stdout);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            onward.write_all(&line)?;
            self.count(&String::from_utf8_lossy(&line));
            line.clear();
        }
        Ok(())
    }

    /// Counts what `other` has counted as well.
    pub fn add(&mut self, other: &Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Tells and counts one thing that could not be done.
    pub fn skip(&mut self, reason: &str) {
        println!("skipped: {reason}");
        self.skipped += 1;
    }

    /// Counts the tests whose reasons are the lines of `reasons` as skipped: libtest has told them as passed.
    pub fn move_skipped(&mut self, reasons: &str) {
        let mut by_reason = BTreeMap::<&str, u64>::new();
        for reason in reasons.lines() {
            *by_reason.entry(reason).or_default() += 1;
        }
        for (reason, count) in by_reason {
            println!("skipped: {count} tests: {reason}");
            self.passed = self.passed.saturating_sub(count);
            self.skipped += count;
        }
    }

    /// What the closing line of `printed` says, which [`Self::conclude`] printed last of all.
    pub fn concluded(printed: &str) -> Result<Self> {
        let last = printed.lines().last().unwrap_or_default();
        let mut counts = last
            .split(", ")
            .zip(["passed", "failed", "skipped"])
            .map(|(part, what)| {
                let count = part.strip_suffix(what)?.trim_end();
                count.parse::<u64>().ok()
            });
        let mut next = || {
            counts
                .next()
                .flatten()
                .with_context(|| format!("this is no count of tests: {last}"))
        };
        Ok(Self {
            passed: next()?,
            failed: next()?,
            skipped: next()?,
        })
    }

    /// Prints the closing line; in CI a skipped test is a failure.
    pub fn conclude(&self) -> ExitCode {
        let may_skip = env::var_os("CI").is_none_or(|ci| ci != "true");
        let good = self.failed == 0 && (self.skipped == 0 || may_skip);
        if !may_skip && self.skipped > 0 {
            println!("failed: CI must not skip");
        }
        println!(
            "{} passed, {} failed, {} skipped",
            self.passed, self.failed, self.skipped
        );
        if good {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }

    /// Counts `test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.01s`.
    fn count(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else {
            return;
        };
        let result = result.split_once(". ").map_or(result, |(_, counts)| counts);
        for part in result.split(';') {
            let Some((number, what)) = part.trim().split_once(' ') else {
                continue;
            };
            let number = number.parse::<u64>().unwrap_or(0);
            match what.trim() {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.skipped += number,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "test a ... ok\n\
        test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.01s\n\
        test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s\n";

    #[test]
    fn reports_are_summed() {
        let mut tally = Tally::default();
        tally.listen(OUTPUT.as_bytes(), io::sink()).unwrap();
        assert_eq!(
            tally,
            Tally {
                passed: 7,
                failed: 1,
                skipped: 1
            }
        );
    }

    #[test]
    fn the_closing_line_is_read_as_it_was_meant() {
        let tally = Tally {
            passed: 12,
            failed: 1,
            skipped: 3,
        };
        let printed = "exec/s\n12 passed, 1 failed, 3 skipped\n";
        assert_eq!(Tally::concluded(printed).unwrap(), tally);
        for other in [
            "",
            "12 passed, 1 failed",
            "failed: no kernel",
            "x passed, 1 failed, 3 skipped",
        ] {
            assert!(Tally::concluded(other).is_err(), "{other}");
        }
    }

    #[test]
    fn skips_are_taken_from_the_passed() {
        let mut tally = Tally {
            passed: 7,
            failed: 1,
            skipped: 1,
        };
        tally.move_skipped("needs root\nneeds root\nneeds BTF\n");
        assert_eq!(
            tally,
            Tally {
                passed: 4,
                failed: 1,
                skipped: 4
            }
        );
    }
}
