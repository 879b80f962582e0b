//! What Slurm says of a job.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The job of the target by Slurm's own word, read once at the begin of the measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Job {
    /// The raw id: that of the cgroup.
    pub job_id: u32,
    /// Id of the array that it is of.
    pub array_job_id: Option<u32>,
    /// Its task in the array.
    pub array_task_id: Option<u32>,
    /// Id of the heterogeneous job that it is a component of.
    pub het_job_id: Option<u32>,
    /// Which component, from 0.
    pub het_job_offset: Option<u32>,
    /// The id that Slurm never uses again.
    pub sluid: Option<String>,
    /// Its name, as its user wrote it.
    pub name: Option<String>,
    /// Name of its user.
    pub user: Option<String>,
    /// The account that pays.
    pub account: Option<String>,
    /// The partition.
    pub partition: Option<String>,
    /// Its state, as `RUNNING`.
    pub state: Option<String>,
    /// When it started, RFC 3339, UTC.
    pub started_at: Option<String>,
    /// When its time limit ends it, RFC 3339, UTC.
    pub ends_at: Option<String>,
    /// Its time limit; `null` where it has none.
    pub time_limit_seconds: Option<u64>,
    /// Names of its nodes.
    pub nodes: Option<Vec<String>>,
    /// How many nodes it has.
    pub node_count: Option<u32>,
    /// What it asked for.
    pub requested: Requested,
    /// What it was given on this node; `null` where it is not known which of its nodes this is.
    pub here: Option<NodePart>,
}

/// What a job asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Requested {
    /// `--mem`: memory on each node.
    pub memory_per_node_bytes: Option<u64>,
    /// `--mem-per-cpu`, or the partition's default: memory for each CPU.
    pub memory_per_cpu_bytes: Option<u64>,
    /// CPUs on all nodes together.
    pub cpus: Option<u32>,
    /// Tasks on all nodes together.
    pub tasks: Option<u32>,
    /// `--cpus-per-task`
    pub cpus_per_task: Option<u32>,
    /// All countable things by Slurm's name, as `gres/gpu`; `mem` in bytes.
    pub tres: Option<BTreeMap<String, u64>>,
}

/// What a job was given on one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodePart {
    /// Slurm's name of the node.
    pub node: String,
    /// CPUs.
    pub cpus: Option<u32>,
    /// Slurm's own numbers of them, which are not always the kernel's.
    pub cpu_ids: Option<Vec<u32>>,
    /// Memory.
    pub memory_bytes: Option<u64>,
    /// GPUs and the like.
    pub gres: Vec<Gres>,
}

/// GPUs or the like on one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gres {
    /// Slurm's name, as `gpu`.
    pub name: String,
    /// The type, as `a100`, where it has one.
    pub kind: Option<String>,
    /// How many.
    pub count: Option<u64>,
    /// Slurm's indices of them on the node: neither NVML's nor CUDA's.
    pub indices: Option<Vec<u32>>,
}
