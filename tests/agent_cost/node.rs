//! An agent of its own.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
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

/// What answers for Slurm, as of a version that has no JSON: each question is a process of its own, which is no part of the agent's cost.
const SCONTROL: &str = "#!/bin/sh
[ \"$1\" != --json ] || exit 1
for id; do :; done
echo \"JobId=$id JobName=cost
   UserId=nobody(65534) GroupId=nogroup(65534) MCS_label=N/A
   JobState=RUNNING Reason=None Dependency=(null)
   RunTime=00:00:01 TimeLimit=00:20:00 TimeMin=N/A
   SubmitTime=2026-01-01T00:00:00 StartTime=2026-01-01T00:00:00
   Partition=main NodeList=node BatchHost=node
   NumNodes=1 NumCPUs=1 NumTasks=1\"
";

/// It, and the directory of all that it makes. Dropped, both are gone.
pub struct Node {
    dir: TempDir,
    agent: Child,
}

impl Node {
    /// Starts it, and waits until it records.
    pub fn start() -> Result<Self> {
        let dir = tempfile::tempdir().context("make a directory")?;
        let at = |name: &str| dir.path().join(name);
        for name in ["bpf", "bin"] {
            fs::create_dir(at(name)).context("make a directory")?;
        }
        let scontrol = at("bin/scontrol");
        fs::write(&scontrol, SCONTROL).context("write a program")?;
        fs::set_permissions(&scontrol, Permissions::from_mode(0o755)).context("write a program")?;
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
        Ok(self.files("jobs")?.len())
    }

    /// How long they are together.
    pub fn record_bytes(&self) -> Result<u64> {
        Ok(self.files("jobs")?.into_iter().sum())
    }

    /// What it keeps for the next agent, in bytes.
    pub fn saved_bytes(&self) -> Result<u64> {
        Ok(self.files("run/left")?.into_iter().sum())
    }

    /// The length of each file in one of its directories, as far as they do not go meanwhile.
    fn files(&self, name: &str) -> Result<Vec<u64>> {
        let entries = fs::read_dir(self.path(name)).with_context(|| format!("list {name}"))?;
        let lengths = entries.filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len()));
        Ok(lengths.collect())
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
