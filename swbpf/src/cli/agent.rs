//! What the agent is told.

use std::{net::SocketAddr, path::PathBuf};

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
    /// Write metrics to this file each 15 s: *.prom for the node exporter, any other name in OpenMetrics
    #[arg(long, value_name = "FILE")]
    pub openmetrics: Option<PathBuf>,
    /// Answer GET /metrics at this loopback address: 127.0.0.1:9417
    #[arg(long, value_name = "ADDR:PORT", value_parser = loopback)]
    pub listen: Option<SocketAddr>,
}

/// Metrics tell of every job of the host: what carries them further also says to whom.
fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text
        .parse()
        .map_err(|_| "it is no address and port: 127.0.0.1:9417 or [::1]:9417".to_owned())?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err("it is no loopback address: listen at 127.0.0.1, and let a proxy that knows its clients carry it further".to_owned())
    }
}
