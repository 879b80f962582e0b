//! What the agent is told.

use std::path::PathBuf;

use clap::Args;

use super::DIR;

/// `sw-bpf agent`.
#[derive(Debug, PartialEq, Eq, Args)]
pub struct Agent {
    /// Directory of the records: one file for each job
    #[arg(long, value_name = "DIR", default_value = DIR)]
    pub records: PathBuf,
    /// Directory of a BPF file system, in which what counts outlives the agent
    #[arg(long, value_name = "DIR", default_value = "/sys/fs/bpf/sw-bpf")]
    pub pin_dir: PathBuf,
    /// Record each cgroup below this one too, beside the jobs of Slurm; may be given several times
    #[arg(long, value_name = "CGROUP")]
    pub watch: Vec<PathBuf>,
    /// Users of this group see the jobs of all, as root does
    #[arg(long, value_name = "GROUP")]
    pub admin_group: Option<String>,
}
