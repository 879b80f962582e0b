//! A job on all its nodes: what `sw-bpf` on each of them answered, and the sums.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Kind, SCHEMA_VERSION, Snapshot, Source, TargetKind};

/// Longest part of a fault of an answer that is told.
const MAX_FAULT: usize = 200;

/// What each node of a job answered: one line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gathered {
    /// Version of this layout, and of that of the nodes' own objects.
    pub schema_version: u32,
    /// Version of sw-bpf.
    pub tool_version: String,
    /// What this line is.
    pub kind: GatheredKind,
    /// When all was gathered, RFC 3339, UTC. Each node's own moment is in its `snapshot`.
    pub timestamp: String,
    /// Slurm job id, as Slurm shows it: `123`, `123_4`, `123+1`.
    pub job_id: String,
    /// Length of the window that was asked for on each node.
    pub window_seconds: f64,
    /// All nodes of the job, in Slurm's order.
    pub nodes: Vec<NodeAnswer>,
    /// Names of the nodes that did not answer.
    pub missing: Vec<String>,
    /// Sums over the nodes that answered.
    pub totals: Totals,
    /// For each `null` of `totals`: its dotted key and the reason.
    pub unknown: BTreeMap<String, String>,
}

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GatheredKind {
    /// The answer of `--once --all-nodes`.
    AllNodes,
}

/// What one node answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeAnswer {
    /// Slurm's name of the node.
    pub node: String,
    /// The node's own object, as `--once --json` prints it there.
    pub snapshot: Option<Box<Snapshot>>,
    /// Why there is none; `null` where there is one.
    pub reason: Option<String>,
}

/// Sums over the nodes that answered: `null` where one of them does not know its number, or none answered.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Source of `needed_bytes` and `needed_peak_sum_bytes`: `kernel` where every node counted.
    pub source: Source,
    /// Sum of the nodes' needed memory, each at its own moment, which are not the same: nodes begin and end a little apart.
    pub needed_bytes: Option<u64>,
    /// Sum of each node's own peak within its window. Nodes peak at different moments: where `source` is `kernel`, it is an upper
    /// bound of what these nodes needed together at any instant, within `error_bound_bytes`.
    pub needed_peak_sum_bytes: Option<u64>,
    /// How far both sums can be from the truth, either way; sampled, how much more can have been needed than was seen. The sum of
    /// the nodes' own bounds.
    pub error_bound_bytes: Option<u64>,
    /// Sum of the nodes' busy cores, each within its window.
    pub busy_cores: Option<f64>,
}

impl NodeAnswer {
    /// What `node` answered about job `job`; `answer` is a line of its, or why there is none.
    pub fn read(node: &str, job: u32, answer: Result<Vec<u8>, String>) -> Self {
        let read = answer.and_then(|answer| snapshot(&answer, node, job));
        let (snapshot, reason) = match read {
            Ok(snapshot) => (Some(Box::new(snapshot)), None),
            Err(reason) => (None, Some(reason)),
        };
        Self {
            node: node.to_owned(),
            snapshot,
            reason,
        }
    }
}

impl Gathered {
    /// The sums of what the nodes answered.
    pub fn of(job_id: String, window_seconds: f64, timestamp: String, nodes: Vec<NodeAnswer>) -> Self {
        let missing = nodes
            .iter()
            .filter(|answer| answer.snapshot.is_none())
            .map(|answer| answer.node.clone())
            .collect();
        let mut unknown = BTreeMap::new();
        let totals = totals(&nodes, &mut unknown);
        Self {
            schema_version: SCHEMA_VERSION,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            kind: GatheredKind::AllNodes,
            timestamp,
            job_id,
            window_seconds,
            nodes,
            missing,
            totals,
            unknown,
        }
    }
}

/// The object of a node, which is this node's, of this job and in this version.
fn snapshot(answer: &[u8], node: &str, job: u32) -> Result<Snapshot, String> {
    #[derive(Deserialize)]
    struct Version {
        schema_version: u32,
    }
    let fault = |error: serde_json::Error| {
        let fault: String = error.to_string().chars().take(MAX_FAULT).collect();
        format!("its answer is not understood: {fault}")
    };
    let version: Version = serde_json::from_slice(answer).map_err(fault)?;
    if version.schema_version != SCHEMA_VERSION {
        return Err(format!(
            "its answer has schema_version {}, and {SCHEMA_VERSION} is understood: another version of sw-bpf is there",
            version.schema_version
        ));
    }
    let snapshot: Snapshot = serde_json::from_slice(answer).map_err(fault)?;
    if snapshot.kind != Kind::Once || snapshot.target.kind != TargetKind::Job {
        return Err("its answer is not that of --once about a job".to_owned());
    }
    let told = snapshot.job.as_ref();
    if let Some(other) = told.map(|told| told.job_id).filter(|told| *told != job) {
        return Err(format!("its answer is about job {other}"));
    }
    let here = told.and_then(|told| told.here.as_ref());
    if let Some(other) = here.filter(|here| here.node != node) {
        let other: String = other.node.chars().take(MAX_FAULT).collect();
        return Err(format!("its answer says that it is node {other}"));
    }
    Ok(snapshot)
}

fn totals(nodes: &[NodeAnswer], unknown: &mut BTreeMap<String, String>) -> Totals {
    let answered: Vec<_> = nodes
        .iter()
        .filter_map(|answer| Some((answer.node.as_str(), answer.snapshot.as_deref()?)))
        .collect();
    let mut noted = Noted(unknown);
    Totals {
        source: least_source(&answered),
        needed_bytes: noted.known(
            "needed_bytes",
            bytes(&answered, "memory.needed_bytes", |of| of.memory.needed_bytes),
        ),
        needed_peak_sum_bytes: noted.known(
            "needed_peak_sum_bytes",
            bytes(&answered, "memory.needed_peak_bytes", |of| {
                of.memory.needed_peak_bytes
            }),
        ),
        error_bound_bytes: noted.known(
            "error_bound_bytes",
            bytes(&answered, "memory.error_bound_bytes", |of| {
                of.memory.error_bound_bytes
            }),
        ),
        busy_cores: noted.known("busy_cores", cores(&answered)),
    }
}

/// Reasons, noted where a sum is not known.
struct Noted<'a>(&'a mut BTreeMap<String, String>);

impl Noted<'_> {
    fn known<T>(&mut self, key: &str, sum: Result<T, String>) -> Option<T> {
        sum.map_err(|reason| self.0.insert(format!("totals.{key}"), reason))
            .ok()
    }
}

/// A node that answered, and what.
type Answered<'a> = (&'a str, &'a Snapshot);

/// That of the whole: no better than that of any part.
fn least_source(answered: &[Answered<'_>]) -> Source {
    let is = |source| answered.iter().any(|(_, of)| of.memory.source == source);
    if answered.is_empty() || is(Source::Unavailable) {
        Source::Unavailable
    } else if is(Source::Sampled) {
        Source::Sampled
    } else {
        Source::Kernel
    }
}

fn bytes(
    answered: &[Answered<'_>],
    key: &str,
    number: impl Fn(&Snapshot) -> Option<u64>,
) -> Result<u64, String> {
    each(answered, key, number)?
        .into_iter()
        .try_fold(0_u64, u64::checked_add)
        .ok_or_else(too_large)
}

fn cores(answered: &[Answered<'_>]) -> Result<f64, String> {
    let sum: f64 = each(answered, "cpu.busy_cores", |of| of.cpu.busy_cores)?
        .into_iter()
        .sum();
    if sum.is_finite() {
        Ok(sum)
    } else {
        Err(too_large())
    }
}

fn too_large() -> String {
    "the sum is larger than can be told".to_owned()
}

/// The number of each node, or why one does not know it.
fn each<T>(
    answered: &[Answered<'_>],
    key: &str,
    number: impl Fn(&Snapshot) -> Option<T>,
) -> Result<Vec<T>, String> {
    if answered.is_empty() {
        return Err("no node answered".to_owned());
    }
    let known = answered.iter().map(|(node, snapshot)| {
        number(snapshot).ok_or_else(|| {
            let why = snapshot.unknown.get(key);
            let why = why.map_or("it does not say why", String::as_str);
            let why: String = why.chars().take(MAX_FAULT).collect();
            format!("not known on {node}: {why}")
        })
    });
    known.collect()
}
