//! What each test program told, kept in the directory that is shared with a machine.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::tally::Tally;
use crate::test::SKIPPED;

/// The files of one program. The script `guest` writes the same.
pub struct Told {
    directory: PathBuf,
}

impl Told {
    /// Those of the program `name`, of a run that shares `share`.
    pub fn of(share: &Path, name: &str) -> Self {
        Self {
            directory: share.join("told").join(name),
        }
    }

    /// Makes the place for them.
    pub fn make(&self) -> io::Result<()> {
        fs::create_dir_all(&self.directory)
    }

    /// Its standard output.
    pub fn output(&self) -> PathBuf {
        self.directory.join("output")
    }

    /// Its exit code. It has none where it did not come to its end.
    pub fn code(&self) -> PathBuf {
        self.directory.join("code")
    }

    /// The variable that has it add reasons of skipped tests to a file, and that file.
    pub fn skipped(&self) -> (&'static str, PathBuf) {
        (SKIPPED, self.directory.join("skipped"))
    }

    /// Counts what it reported. One that was started and ended without a report is a failure, as one is that did not end.
    pub fn count(&self) -> io::Result<Tally> {
        let mut tally = Tally::default();
        if !self.directory.exists() {
            return Ok(tally);
        }
        let output = fs::read(self.output()).unwrap_or_default();
        tally.listen(output.as_slice(), io::sink())?;
        // There is no such file where nothing was skipped.
        tally.move_skipped(&fs::read_to_string(self.skipped().1).unwrap_or_default());
        let code = fs::read_to_string(self.code()).unwrap_or_default();
        if code.trim() != "0" && tally.failed == 0 {
            tally.failed += 1;
        }
        Ok(tally)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str =
        "test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n";

    fn counted(output: &str, code: Option<&str>, skipped: &str) -> [u64; 3] {
        let share = tempfile::tempdir().unwrap();
        let told = Told::of(share.path(), "live_run");
        told.make().unwrap();
        fs::write(told.output(), output).unwrap();
        if let Some(code) = code {
            fs::write(told.code(), code).unwrap();
        }
        fs::write(told.skipped().1, skipped).unwrap();
        let tally = told.count().unwrap();
        [tally.passed, tally.failed, tally.skipped]
    }

    #[test]
    fn a_program_without_an_end_or_a_report_is_a_failure() {
        assert_eq!(counted(REPORT, Some("0\n"), "needs root\n"), [4, 0, 1]);
        assert_eq!(counted(REPORT, None, ""), [5, 1, 0]);
        assert_eq!(counted("", Some("134\n"), ""), [0, 1, 0]);
        let failed = REPORT.replace("0 failed", "2 failed");
        assert_eq!(counted(&failed, Some("101\n"), ""), [5, 2, 0]);
    }

    #[test]
    fn a_program_that_was_not_started_has_no_counts() {
        let share = tempfile::tempdir().unwrap();
        let tally = Told::of(share.path(), "live_run").count().unwrap();
        assert!(tally.is_empty());
    }
}
