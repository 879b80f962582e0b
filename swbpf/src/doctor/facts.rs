//! What is known of this host, as plain data: all that the rules look at.

use std::path::PathBuf;

use crate::job::{cgroup::Version, slurm};
use crate::kernel::ladder::Rung;

/// A fact, or why it is not known, in words that follow a name: `cannot read /proc/x: …`.
pub type Known<T> = Result<T, String>;

/// Everything, gathered once.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The machine and its kernel.
    pub machine: Machine,
    /// What the kernel says of BPF, and may this process.
    pub bpf: Bpf,
    /// The kernel programs.
    pub programs: Programs,
    /// The cgroup hierarchies; none where none is mounted.
    pub cgroups: Known<Cgroups>,
    /// Whether `sw-bpf run` may make a cgroup here, as this user.
    pub run: Result<(), Refusal>,
    /// How Slurm is set up.
    pub slurm: Result<slurm::Settings, slurm::Unknown>,
    /// GPUs of NVIDIA.
    pub gpus: Gpus,
    /// The node's agent.
    pub agent: Agent,
}

/// The machine and its kernel.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Its name.
    pub hostname: String,
    /// Release of the kernel, as `uname -r`.
    pub release: String,
    /// Whether it is a kernel for real time.
    pub is_real_time: bool,
    /// Its build, as `uname -v`: it names the preemption model.
    pub build: String,
    /// Architecture, as `uname -m`.
    pub architecture: String,
    /// Number of CPUs that are on.
    pub cpus: usize,
    /// How far a peak can be below the truth because of what the CPUs keep to themselves, in bytes;
    /// `None` where nothing is counted.
    pub batch_bound_bytes: Option<u64>,
    /// Size of a page in bytes.
    pub page_bytes: u64,
    /// Length of the kernel's tick in nanoseconds.
    pub tick_ns: u64,
    /// The source of its clock, as `tsc`.
    pub clock: Known<String>,
    /// The model that is chosen where the kernel has several: `none`, `voluntary`, `full`, `lazy`.
    pub preemption: Known<String>,
}

/// What the kernel says of BPF, and may this process.
#[derive(Debug, Clone)]
pub struct Bpf {
    /// Length of the kernel's BTF in bytes, where it can be read and understood.
    pub btf: Known<u64>,
    /// `net.core.bpf_jit_enable`
    pub jit: Known<u64>,
    /// `kernel.unprivileged_bpf_disabled`, which every kernel with bpf(2) has.
    pub unprivileged: Known<u64>,
    /// Lockdown mode.
    pub lockdown: Known<String>,
    /// Capabilities that count here, and that this process lacks.
    pub lacking: Vec<&'static str>,
    /// Whether one of them is given by neither root nor `setcap`.
    pub is_withheld: bool,
    /// Whether this process is in the user namespace of the host, in which alone they hold for BPF.
    pub is_of_host: bool,
    /// Where bpffs is mounted.
    pub file_systems: Known<Vec<PathBuf>>,
}

impl Bpf {
    /// Whether this process may load the kernel programs, as far as its rights go.
    pub fn may_load(&self) -> bool {
        self.lacking.is_empty() && self.is_of_host
    }
}

/// That something is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What, and in which words.
    pub reason: String,
    /// What works; `None` where the reason says it.
    pub way: Option<&'static str>,
}

/// The kernel programs.
#[derive(Debug, Clone)]
pub struct Programs {
    /// The kind of hook that was asked for, which alone is tried.
    pub asked: Option<Rung>,
    /// What would be tried first with all capabilities, or what forbids it.
    pub plan: Known<Heard>,
    /// Whether it could be.
    pub trial: Trial,
}

/// By which hooks things are heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// The kind of hook by which changes of memory are heard.
    pub rung: Rung,
    /// All hooks that are used, each once, as `tp_btf/sched_switch`.
    pub hooks: Vec<String>,
    /// Why memory is not heard by a better kind; `None` on the best.
    pub why_not_better: Option<String>,
    /// What cannot be heard, each with the reason and what is not seen without it.
    pub absent: Vec<(String, String)>,
}

/// A trial of the programs: loaded, attached, held against what this process knows of itself, and taken off again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trial {
    /// It went well.
    Good {
        /// By which hooks things were heard.
        heard: Heard,
        /// Whether the kernel compiled the programs for its processor, where it says.
        is_compiled: Option<bool>,
    },
    /// It failed, for this reason.
    Failed(String),
    /// It failed for something that is no matter of the programs; the reason says what to change.
    Hindered(String),
    /// It was not tried, for this reason.
    NotTried(String),
}

/// The cgroup hierarchies.
#[derive(Debug, Clone)]
pub struct Cgroups {
    /// Whether a hierarchy of version 1 is mounted.
    pub has_v1: bool,
    /// Whether that of version 2 is.
    pub has_v2: bool,
    /// The hierarchy that counts memory.
    pub memory: Option<MemoryHierarchy>,
    /// Whether that of this process can be seen.
    pub sees_own: bool,
    /// The jobs of Slurm that have a cgroup here.
    pub jobs: Known<Jobs>,
}

/// The hierarchy that counts memory.
#[derive(Debug, Clone)]
pub struct MemoryHierarchy {
    /// Its version.
    pub version: Version,
    /// Where it is mounted.
    pub point: PathBuf,
}

/// The jobs of Slurm that have a cgroup here.
#[derive(Debug, Clone, Copy)]
pub struct Jobs {
    /// How many.
    pub all: usize,
    /// How many of them have none for memory.
    pub without_memory: usize,
}

/// GPUs of NVIDIA.
#[derive(Debug, Clone)]
pub struct Gpus {
    /// Device files of GPUs.
    pub device_files: Known<usize>,
    /// The driver's library.
    pub library: Library,
}

/// The driver's library, `libnvidia-ml.so.1`.
#[derive(Debug, Clone)]
pub enum Library {
    /// It is not there.
    Absent,
    /// It is there and cannot be used, for this reason.
    Unusable(String),
    /// It says that there is no driver or no GPU, in its words.
    Idle(String),
    /// It answers.
    Answers {
        /// Version of the driver.
        driver: String,
        /// Names of the GPUs, those of one kind once for each.
        names: Vec<String>,
    },
}

/// The node's agent.
#[derive(Debug, Clone)]
pub struct Agent {
    /// Where it is met.
    pub socket: PathBuf,
    /// Who is met there.
    pub met: Known<Met>,
}

/// Who is met at the path of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Met {
    /// There is nothing at the path.
    Nothing,
    /// There is something that is no socket.
    NoSocket,
    /// There is a socket at which nobody listens: who made it has ended.
    Nobody,
    /// An agent that answers.
    Agent,
    /// An agent that speaks another version.
    OtherVersion,
    /// Somebody who does not answer in time.
    Silent,
    /// Somebody whose answer is not that of an agent.
    Odd,
}
