//! What the doctor says. The doc comment of each field is its description in `docs/doctor.schema.json`.

use schemars::JsonSchema;
use serde::Serialize;

/// Version of this layout: raised when a key changes its meaning or goes.
pub const SCHEMA_VERSION: u32 = 1;

/// What `sw-bpf doctor --json` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Diagnosis {
    /// Version of this layout.
    pub schema_version: u32,
    /// Version of sw-bpf.
    pub tool_version: String,
    /// What this line is.
    pub kind: DiagnosisKind,
    /// Moment, RFC 3339, UTC.
    pub timestamp: String,
    /// Name of this host.
    pub hostname: String,
    /// The worst verdict of all checks.
    pub verdict: Verdict,
    /// Each thing that was looked at, always all of them and in this order.
    pub checks: Vec<Check>,
}

/// Kind of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiagnosisKind {
    /// Of `sw-bpf doctor`.
    Doctor,
}

/// What something means for the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// They are exact, as far as this goes.
    Ok,
    /// It could not be looked at.
    Unknown,
    /// Some are sampled, bounded or missing, or cost more than they need to.
    Degraded,
    /// There are none.
    Broken,
}

impl Verdict {
    /// The exit code of the doctor.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Unknown | Self::Degraded => 1,
            Self::Broken => 2,
        }
    }

    /// As it is written.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unknown => "unknown",
            Self::Degraded => "degraded",
            Self::Broken => "broken",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Check {
    /// Which.
    pub topic: Topic,
    /// What it means for the numbers, in a word.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// The same, one by one, where it is many things: the hooks of `events`.
    pub list: Vec<String>,
    /// What it means for the numbers.
    pub means: String,
    /// What to change; empty where there is nothing to.
    pub changes: Vec<String>,
}

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// Release of the kernel and architecture of the machine.
    Kernel,
    /// The kernel's description of its own types.
    Btf,
    /// The system call, and whether programs are compiled.
    Bpf,
    /// What this user may.
    Capabilities,
    /// What the kernel refuses to everybody.
    Lockdown,
    /// The programs without which nothing is exact, and how they are attached.
    Programs,
    /// The programs that each add something.
    Events,
    /// The cgroup hierarchies.
    Cgroups,
    /// Whether a cgroup can be made for a command.
    Run,
    /// The cgroups of the jobs that run here now.
    Jobs,
    /// How Slurm is set up.
    Slurm,
    /// GPUs of NVIDIA, and their library.
    Gpus,
    /// The file system that keeps kernel programs.
    Bpffs,
    /// The node's agent.
    Agent,
    /// Where the kernel can be interrupted.
    Preemption,
    /// Processors.
    Cpus,
    /// Size of a page.
    Pages,
    /// The kernel's clock and tick.
    Clock,
}

impl Topic {
    /// For a person.
    pub fn title(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Btf => "BTF",
            Self::Bpf => "BPF",
            Self::Capabilities => "capabilities",
            Self::Lockdown => "lockdown",
            Self::Programs => "programs",
            Self::Events => "events",
            Self::Cgroups => "cgroups",
            Self::Run => "run",
            Self::Jobs => "jobs here",
            Self::Slurm => "Slurm",
            Self::Gpus => "GPUs",
            Self::Bpffs => "bpffs",
            Self::Agent => "agent",
            Self::Preemption => "preemption",
            Self::Cpus => "CPUs",
            Self::Pages => "pages",
            Self::Clock => "clock",
        }
    }
}

impl Check {
    /// With nothing to change.
    pub(super) fn new(
        topic: Topic,
        verdict: Verdict,
        found: impl Into<String>,
        means: impl Into<String>,
    ) -> Self {
        Self {
            topic,
            verdict,
            found: found.into(),
            list: Vec::new(),
            means: means.into(),
            changes: Vec::new(),
        }
    }

    /// With this list.
    pub(super) fn listing(mut self, list: &[String]) -> Self {
        self.list = list.to_vec();
        self
    }

    /// With one more thing to change.
    pub(super) fn change(mut self, what: impl Into<String>) -> Self {
        self.changes.push(what.into());
        self
    }
}
