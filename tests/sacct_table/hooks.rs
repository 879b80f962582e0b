//! What root runs before and after each job, so that sw-bpf is there before the job is and the kernel's counters are
//! read after it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use support::slurm::JobId;
use tempfile::TempDir;

/// Longer than a job waits for its turn, or runs.
const PATIENCE: Duration = Duration::from_mins(1);

/// A hook has no `PATH`. Slurm takes the directory that it finds. The empty one inside keeps it until the Epilog; it is
/// charged to the job, so it is made under watch. The Prolog does not wait for ever: a cluster whose test was killed is to
/// come to its end.
const PROLOG: &str = "mkdir -p $job\n\
    : >$dir/made.$SLURM_JOB_ID\n\
    for turn in $(seq 500); do\n\
    [ -e $dir/watched.$SLURM_JOB_ID ] && break\n\
    sleep 0.02\n\
    done\n\
    mkdir $job/hold";
const EPILOG: &str = "cat $job/memory.max_usage_in_bytes >$dir/counter.new\n\
    rmdir $job/hold $job\n\
    mv $dir/counter.new $dir/counter.$SLURM_JOB_ID";

/// The scripts, and the files by which they talk.
pub struct Hooks {
    dir: TempDir,
}

impl Hooks {
    /// Writes the scripts.
    pub fn write() -> Result<Self> {
        let hooks = Self {
            dir: tempfile::tempdir().context("make a temporary directory")?,
        };
        hooks.script("prolog", PROLOG)?;
        hooks.script("epilog", EPILOG)?;
        Ok(hooks)
    }

    /// A path in their directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Waits until the Prolog has made the directory of a job.
    pub fn wait_made(&self, job: JobId) -> Result<()> {
        wait_for(&self.path(&format!("made.{job}")))
    }

    /// Lets the Prolog end.
    pub fn let_start(&self, job: JobId) -> Result<()> {
        let path = self.path(&format!("watched.{job}"));
        fs::write(&path, "").with_context(|| path.display().to_string())
    }

    /// The kernel's own counter of a job, page cache among it, as the Epilog read it.
    pub fn counter_bytes(&self, job: JobId) -> Result<u64> {
        let path = self.path(&format!("counter.{job}"));
        wait_for(&path)?;
        let text = fs::read_to_string(&path)?;
        text.trim()
            .parse()
            .with_context(|| format!("the counter: {text}"))
    }

    fn script(&self, name: &str, body: &str) -> Result<()> {
        let path = self.path(name);
        let dir = self.dir.path().display();
        let text = format!(
            "#!/bin/sh\nPATH=/usr/bin:/bin\ndir={dir}\n\
             job=/sys/fs/cgroup/memory/slurm_$SLURMD_NODENAME/uid_$SLURM_JOB_UID/job_$SLURM_JOB_ID\n\
             {body}\nexit 0\n"
        );
        fs::write(&path, text)
            .and_then(|()| fs::set_permissions(&path, Permissions::from_mode(0o755)))
            .with_context(|| path.display().to_string())
    }
}

fn wait_for(path: &Path) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !path.exists() {
        ensure!(Instant::now() < deadline, "{} did not come", path.display());
        sleep(Duration::from_millis(10));
    }
    Ok(())
}
