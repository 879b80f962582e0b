//! An agent of its own.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use support::measure::program;
use tempfile::TempDir;

use crate::usage::Usage;

/// How long a start may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// It, and the directory of all that it makes. Dropped, both are gone.
pub struct Node {
    dir: TempDir,
    agent: Child,
}

impl Node {
    /// Starts it, and waits until it records. It finds no program of Slurm: those are no cost of its own.
    pub fn start() -> Result<Self> {
        let dir = tempfile::tempdir().context("make a directory")?;
        let at = |name: &str| dir.path().join(name);
        for name in ["bpf", "bin"] {
            fs::create_dir(at(name)).context("make a directory")?;
        }
        let mounted = Command::new("mount")
            .args(["-t", "bpf", "bpf"])
            .arg(at("bpf"))
            .status();
        ensure!(
            mounted.context("start mount")?.success(),
            "no BPF file system can be mounted: is this root?"
        );
        let told = File::create(at("told")).context("make a file")?;
        let mut command = Command::new(program("sw-bpf"));
        command
            .arg("agent")
            .arg("--socket")
            .arg(at("run/agent.sock"))
            .arg("--records")
            .arg(at("jobs"))
            .arg("--pin-dir")
            .arg(at("bpf/pins"))
            .env("PATH", at("bin"))
            .stdin(Stdio::null())
            .stderr(told);
        let agent = command.spawn().context("start the agent")?;
        let mut node = Self { dir, agent };
        let begin = Instant::now();
        while !node.told().contains("records the jobs") {
            node.check()?;
            ensure!(begin.elapsed() < PATIENCE, "the agent does not start");
            sleep(Duration::from_millis(20));
        }
        Ok(node)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// What it said.
    pub fn told(&self) -> String {
        fs::read_to_string(self.path("told")).unwrap_or_default()
    }

    /// An error where it has ended.
    pub fn check(&mut self) -> Result<()> {
        if let Some(status) = self.agent.try_wait().context("wait for the agent")? {
            bail!("the agent ended ({status}): {}", self.told());
        }
        Ok(())
    }

    /// What it has used.
    pub fn usage(&self) -> Result<Usage> {
        Usage::of(self.agent.id())
    }

    /// How many records there are.
    pub fn records(&self) -> Result<usize> {
        Ok(self.files()?.len())
    }

    /// How long they are together.
    pub fn record_bytes(&self) -> Result<u64> {
        Ok(self.files()?.into_iter().sum())
    }

    /// The length of each.
    fn files(&self) -> Result<Vec<u64>> {
        let entries = fs::read_dir(self.path("jobs")).context("list the records")?;
        entries
            .map(|entry| Ok(entry?.metadata()?.len()))
            .collect::<std::io::Result<_>>()
            .context("look at the records")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // What is left of it the system removes with its next start.
        let _ = self.agent.kill();
        let _ = self.agent.wait();
        let _ = Command::new("umount").arg("-l").arg(self.path("bpf")).status();
    }
}
