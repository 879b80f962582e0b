//! The metrics of `sw-bpf agent`, as Prometheus, a collector of files and clients of ill will have them.

mod clients;
mod file;
mod http;
#[allow(dead_code, reason = "the tests of the agent use the rest")]
#[path = "../live_agent/node.rs"]
mod node;
mod prometheus;

use std::ops::RangeInclusive;
use std::process::Command;

use support::measure::{MIB, wait_until};

use node::{Job, Node};

/// Memory of a process besides what it is to have, and page tables.
const FOOTPRINT: u64 = 2 * MIB;

/// Starts an agent with these options, and waits until it records.
fn start(node: &mut Node, options: &[&str]) {
    let mut command: Command = node.command();
    node.spawn_as(command.args(options));
    wait_until("the agent", || node.told().contains("records the jobs"));
}

/// Where it answers: `127.0.0.1:PORT`.
fn address(node: &Node) -> String {
    let told = node.told();
    let (_, address) = told.split_once("metrics at http://").expect("an address");
    let (address, _) = address.split_once('/').expect("a path");
    address.to_owned()
}

/// What a process of `size` alone in a cgroup needs.
fn about(size: u64) -> RangeInclusive<u64> {
    size..=size + FOOTPRINT
}

/// The number of a metric of a target, or of one without a label; `None` where it has no series.
fn value(text: &str, name: &str, of: Option<&Job>) -> Option<u64> {
    let series = match of {
        Some(job) => format!("{name}{{cgroup=\"{}\"}} ", job.cgroup.path().display()),
        None => format!("{name} "),
    };
    let line = text.lines().find_map(|line| line.strip_prefix(&series))?;
    Some(line.parse::<f64>().expect("a number") as u64)
}

const WINDOW_PEAK: &str = "swbpf_job_needed_window_peak_bytes";
