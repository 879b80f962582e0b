//! `sw-bpf run` on a workload.

use std::fs::{self, File};
use std::path::PathBuf;

use swbpf::job::cgroup::{Cgroup, Hierarchies};
use swbpf::snapshot::{Kind, Snapshot};
use tempfile::TempDir;

use super::{Process, program, wait_until};
use crate::command::sw_bpf;

/// The file of the record.
const RECORD: &str = "record.jsonl";
/// The file of what is said on standard error.
const TOLD: &str = "stderr";

/// A run under way.
#[derive(Debug)]
pub struct Run {
    /// `sw-bpf`; the workload has its standard input and output.
    pub process: Process,
    dir: TempDir,
}

/// A run that has ended.
#[derive(Debug)]
pub struct Measured {
    /// The last line of its record.
    pub summary: Snapshot,
    /// What the workload wrote on standard output, and the test has not read.
    pub output: String,
    /// Exit code of `sw-bpf`.
    pub code: Option<i32>,
}

impl Run {
    /// Starts a workload under `sw-bpf run` with these options.
    ///
    /// # Panics
    ///
    /// Where it cannot be started.
    #[must_use]
    pub fn start(options: &[&str], workload: &[&str]) -> Self {
        let dir = TempDir::new().expect("a directory");
        let mut command = sw_bpf(&[&["run"], options, &["--json"]].concat());
        command.arg(dir.path().join(RECORD));
        command.arg("--").arg(program("workload")).args(workload);
        command.stderr(File::create(dir.path().join(TOLD)).expect("a file"));
        Self {
            process: Process::start(&mut command),
            dir,
        }
    }

    /// Waits for a line of the record, which gets one a second, of which something holds.
    ///
    /// # Panics
    ///
    /// Where none comes.
    pub fn progress(&self, what: &str, holds: impl Fn(&Snapshot) -> bool) -> Snapshot {
        let mut found = None;
        wait_until(what, || {
            found = self.record().into_iter().find(&holds);
            found.is_some()
        });
        found.expect("it came")
    }

    /// The cgroup that was made for the workload.
    ///
    /// # Panics
    ///
    /// Where it is gone.
    #[must_use]
    pub fn cgroup(&self) -> Cgroup {
        let path = PathBuf::from(self.progress("a line of the record", |_| true).target.cgroup);
        let hierarchies = Hierarchies::detect().expect("a cgroup hierarchy");
        hierarchies.cgroup_at(&path).expect("the workload's cgroup")
    }

    /// Lets the workload end, and waits for it.
    ///
    /// # Panics
    ///
    /// Where nothing was told of it.
    #[must_use]
    pub fn finish(mut self) -> Measured {
        let (status, output) = self.process.finish();
        let told = fs::read_to_string(self.dir.path().join(TOLD)).unwrap_or_default();
        let summary = self.record().pop();
        let summary = summary.unwrap_or_else(|| panic!("{status}, and no record: {told}"));
        assert_eq!(summary.kind, Kind::Summary, "{status}: {told}");
        Measured {
            summary,
            output,
            code: status.code(),
        }
    }

    /// The lines of the record that are complete.
    fn record(&self) -> Vec<Snapshot> {
        let text = fs::read_to_string(self.dir.path().join(RECORD)).unwrap_or_default();
        let complete = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        complete
            .map(|line| serde_json::from_str(line).expect("a snapshot"))
            .collect()
    }
}
