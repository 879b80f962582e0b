//! The tasks of sw-bpf, each with what it is told.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};

use super::{Agent, List, Show, quantity, record};
use crate::{error::EXIT_CODES_OF_DOCTOR, job::id::JobId};

/// A task of sw-bpf.
#[derive(Debug, PartialEq, Eq)]
pub enum Verb {
    /// Run a command and measure it.
    Run(Run),
    /// Measure what runs already, until it ends.
    Attach(Attach),
    /// Measure for one window and answer.
    Once(Once),
    /// The same on each node of a job.
    AllNodes(AllNodes),
    /// Record every job of this node.
    Agent(Agent),
    /// Tell of one record.
    Show(Show),
    /// Tell which records there are.
    List(List),
    /// Say what can be measured here.
    Doctor(Doctor),
}

/// `sw-bpf run`: its command is never empty.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(override_usage = "sw-bpf run [OPTIONS] -- COMMAND [ARGS]...")]
pub struct Run {
    /// Write a record: one JSON object a line, the last one the summary
    #[arg(long, value_name = "FILE", value_parser = record())]
    pub json: Option<PathBuf>,
    /// Limit the command's memory: 300M, 1.5G, or bytes, 1M at least; K, M, G, T are 1024-based
    #[arg(long, value_name = "SIZE", value_parser = quantity::limit)]
    pub limit_mem: Option<u64>,
    /// The command and its arguments
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

/// `sw-bpf doctor`.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_help = EXIT_CODES_OF_DOCTOR)]
pub struct Doctor {
    /// Answer with one JSON object on one line
    #[arg(long)]
    pub json: bool,
}

/// `sw-bpf attach`.
#[derive(Debug, PartialEq, Eq)]
pub struct Attach {
    /// What to measure.
    pub target: Target,
    /// Where to write a record.
    pub json: Option<PathBuf>,
}

/// `sw-bpf --once`.
#[derive(Debug, PartialEq, Eq)]
pub struct Once {
    /// What to measure.
    pub target: Target,
    /// For how long, where that is given.
    pub window: Option<Duration>,
    /// Whether to answer with JSON.
    pub json: bool,
}

/// `sw-bpf --once --all-nodes`.
#[derive(Debug, PartialEq, Eq)]
pub struct AllNodes {
    /// The job; `None` is the caller's own.
    pub job: Option<JobId>,
    /// For how long each node measures.
    pub window: Duration,
    /// Whether to answer with JSON.
    pub json: bool,
}

/// What to measure.
#[derive(Debug, PartialEq, Eq)]
pub enum Target {
    /// This job on this host.
    Job {
        /// Its id.
        id: JobId,
        /// Slurm's name of the node, where several of them share the host.
        node: Option<String>,
    },
    /// The job that the caller is in, else the only one of the caller's that runs here.
    Mine {
        /// As above.
        node: Option<String>,
    },
    /// The cgroup of this directory.
    Cgroup(PathBuf),
    /// The cgroup of this process.
    Pid(u32),
    /// The job that the caller is in, else the cgroup of the caller.
    Own,
}

/// A source that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ForcedSource {
    /// Fail instead of falling back to sampling.
    Kernel,
    /// The same, and count by tracepoints alone.
    Tracepoint,
    /// The same, and count at the entry of functions.
    Fentry,
    /// The same, and count by kprobes.
    Kprobe,
    /// Leave the kernel programs out.
    Sampled,
}

impl ForcedSource {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Tracepoint => "tracepoint",
            Self::Fentry => "fentry",
            Self::Kprobe => "kprobe",
            Self::Sampled => "sampled",
        }
    }
}
