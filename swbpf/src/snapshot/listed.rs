//! The records of a host: one entry each.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SCHEMA_VERSION, Snapshot, Source};

/// The records of this host that were asked for: one line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Listing")]
pub struct Listing<E = Entry> {
    /// Version of this layout.
    pub schema_version: u32,
    /// Version of sw-bpf.
    pub tool_version: String,
    /// What this line is.
    pub kind: ListingKind,
    /// When they were listed, RFC 3339, UTC.
    pub timestamp: String,
    /// Name of this host.
    pub hostname: String,
    /// The records, in the order of their begin; before them those of which that is not known.
    pub jobs: Vec<E>,
}

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ListingKind {
    /// The answer of `list`.
    List,
}

/// Whether a job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// It is being recorded.
    Running,
    /// Its record has a summary.
    Ended,
    /// Neither is known; `unknown` says why.
    Unknown,
}

/// One record: one run of a job on this host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// Name of the file of the record.
    pub record: String,
    /// 0: the latest run of the job on this host; 1 and on: earlier ones, in their order.
    pub run: u32,
    /// Slurm job id, as Slurm shows it: `123`, `123_4`, `123+1`; the raw id where Slurm was not asked.
    pub job_id: Option<String>,
    /// Directory of the cgroup that was measured: of what is no job of Slurm, the name that it has.
    pub cgroup: Option<String>,
    /// Name of the job, as its user wrote it.
    pub name: Option<String>,
    /// Name of its user.
    pub user: Option<String>,
    /// Number of its user: who may read the record, beside root.
    pub uid: Option<u32>,
    /// Whether it runs.
    pub state: JobState,
    /// First moment covered, RFC 3339, UTC.
    pub from: Option<String>,
    /// Last moment covered, RFC 3339, UTC.
    pub to: Option<String>,
    /// Length of the covered span.
    pub seconds: Option<f64>,
    /// Whether it was measured from its first instruction.
    pub from_start: Option<bool>,
    /// Time since it began, at the end of the covered span.
    pub elapsed_seconds: Option<f64>,
    /// Source of `needed_peak_bytes`.
    pub source: Option<Source>,
    /// The highest needed memory within the covered span.
    pub needed_peak_bytes: Option<u64>,
    /// How far `needed_peak_bytes` can be from the truth, either way; sampled, how much more can have been needed than was seen.
    pub error_bound_bytes: Option<u64>,
    /// Limit of its memory; `null` where there is none.
    pub limit_bytes: Option<u64>,
    /// CPU time by wall time: the mean of the covered span.
    pub busy_cores: Option<f64>,
    /// Processors that it may use, by its cpuset and quota.
    pub cores_allocated: Option<f64>,
    /// Processes killed for want of memory.
    pub oom_kills: Option<u64>,
    /// For each `null` above, and for `state`: its key and the reason. Under `record`: what of the record could not be read.
    pub unknown: BTreeMap<String, String>,
}

/// Keys of an entry, and the snapshot's dotted key of the same.
const KEYS: [(&str, &str); 9] = [
    ("job_id", "job_id"),
    ("name", "job.name"),
    ("user", "job.user"),
    ("elapsed_seconds", "elapsed_seconds"),
    ("needed_peak_bytes", "memory.needed_peak_bytes"),
    ("error_bound_bytes", "memory.error_bound_bytes"),
    ("limit_bytes", "memory.limit_bytes"),
    ("busy_cores", "cpu.busy_seconds"),
    ("cores_allocated", "cpu.cores_allocated"),
];

impl<E> Listing<E> {
    /// That of these entries, which are in their order.
    pub fn of(timestamp: String, hostname: String, jobs: Vec<E>) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            kind: ListingKind::List,
            timestamp,
            hostname,
            jobs,
        }
    }
}

impl Entry {
    /// What the last line of a record tells. Whether the job runs is for others to say.
    pub fn of(record: String, run: u32, snapshot: &Snapshot) -> Self {
        let (memory, cpu, coverage) = (&snapshot.memory, &snapshot.cpu, &snapshot.coverage);
        let job = snapshot.job.as_ref();
        let mean = |busy: f64| busy / coverage.seconds;
        let kills = snapshot.oom_kills.len() as u64;
        let mut entry = Self {
            job_id: snapshot.job_id.clone(),
            cgroup: Some(snapshot.target.cgroup.clone()),
            name: job.and_then(|job| job.name.clone()),
            user: job.and_then(|job| job.user.clone()),
            from: Some(coverage.from.clone()),
            to: Some(coverage.to.clone()),
            seconds: Some(coverage.seconds),
            from_start: Some(coverage.from_start),
            elapsed_seconds: snapshot.elapsed_seconds,
            source: Some(memory.source),
            needed_peak_bytes: memory.needed_peak_bytes,
            error_bound_bytes: memory.error_bound_bytes,
            limit_bytes: memory.limit_bytes,
            busy_cores: cpu.busy_seconds.map(mean).filter(|cores| cores.is_finite()),
            cores_allocated: cpu.cores_allocated,
            oom_kills: Some(kills.saturating_add(snapshot.oom_kills_untold.unwrap_or(0))),
            ..Self::unread(record, run, "")
        };
        entry.unknown = reasons(&entry, snapshot);
        entry
    }

    /// A record of which nothing is known.
    pub fn unread(record: String, run: u32, why: &str) -> Self {
        let keys = [
            "job_id", "cgroup", "name", "user", "uid", "state", "from", "to", "seconds",
        ];
        let more = ["from_start", "source", "oom_kills"];
        let of_snapshot = KEYS.iter().map(|(key, _)| *key);
        let unknown = keys.into_iter().chain(more).chain(of_snapshot);
        Self {
            record,
            run,
            job_id: None,
            cgroup: None,
            name: None,
            user: None,
            uid: None,
            state: JobState::Unknown,
            from: None,
            to: None,
            seconds: None,
            from_start: None,
            elapsed_seconds: None,
            source: None,
            needed_peak_bytes: None,
            error_bound_bytes: None,
            limit_bytes: None,
            busy_cores: None,
            cores_allocated: None,
            oom_kills: None,
            unknown: unknown.map(|key| (key.to_owned(), why.to_owned())).collect(),
        }
    }

    /// Says whether it runs, and why that is not known.
    pub fn set_state(&mut self, state: JobState, why: &str) {
        self.state = state;
        match state {
            JobState::Unknown => drop(self.unknown.insert("state".to_owned(), why.to_owned())),
            _ => drop(self.unknown.remove("state")),
        }
    }

    /// Says whose it is, as far as that is known.
    pub fn set_user(&mut self, uid: Result<u32, &str>, name: Option<String>) {
        self.uid = uid.ok();
        match uid {
            Ok(_) => drop(self.unknown.remove("uid")),
            Err(why) => drop(self.unknown.insert("uid".to_owned(), why.to_owned())),
        }
        if self.user.is_none() && name.is_some() {
            self.user = name;
            self.unknown.remove("user");
        }
    }
}

/// Why the numbers of `entry` that are not known are not, by the snapshot's own word.
fn reasons(entry: &Entry, snapshot: &Snapshot) -> BTreeMap<String, String> {
    let is_known = [
        entry.job_id.is_some(),
        entry.name.is_some(),
        entry.user.is_some(),
        entry.elapsed_seconds.is_some(),
        entry.needed_peak_bytes.is_some(),
        entry.error_bound_bytes.is_some(),
        entry.limit_bytes.is_some(),
        entry.busy_cores.is_some(),
        entry.cores_allocated.is_some(),
    ];
    let missing = KEYS.into_iter().zip(is_known).filter(|(_, is_known)| !is_known);
    missing
        .map(|((key, told), _)| {
            // What stands for a whole section stands for its parts.
            let section = told.split('.').next().unwrap_or(told);
            let unknown = &snapshot.unknown;
            let why = unknown.get(told).or_else(|| unknown.get(section));
            let why = why.map_or("the record does not tell", String::as_str);
            (key.to_owned(), why.to_owned())
        })
        .collect()
}
