//! What the agent is told.

use std::{net::SocketAddr, path::PathBuf};

use clap::Args;

use super::{DIR, quantity};

/// `sw-bpf agent`.
#[derive(Debug, PartialEq, Eq, Args)]
pub struct Agent {
    /// Directory of the records: one file for each job
    #[arg(long, value_name = "DIR", default_value = DIR)]
    pub records: PathBuf,
    /// Remove a record so many days after its last line
    #[arg(long, value_name = "DAYS", default_value = "30", value_parser = quantity::days)]
    pub keep_days: u32,
    /// Remove the oldest records where all of them take more room than this on the disk; K, M, G, T are 1024-based
    #[arg(long, value_name = "SIZE", default_value = "2G", value_parser = quantity::size)]
    pub keep_size: u64,
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
    // That name alone has one meaning wherever it is asked (RFC 6761, section 6.3).
    let numeric = text
        .strip_prefix("localhost:")
        .map(|port| format!("127.0.0.1:{port}"));
    let address: SocketAddr = numeric
        .as_deref()
        .unwrap_or(text)
        .parse()
        .map_err(|_| "it is no address and port: 127.0.0.1:9417 or [::1]:9417".to_owned())?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err("it is no loopback address: listen at 127.0.0.1, and let a proxy that knows its clients carry it further".to_owned())
    }
}
