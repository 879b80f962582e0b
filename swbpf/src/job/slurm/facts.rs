//! What Slurm knows of a job.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use super::Unknown;
use crate::job::id::{JobRef, Sluid, TaskSet};

/// What Slurm knows of one job, one task of an array, or one component of a heterogeneous job.
///
/// `None` is what Slurm does not say, or says in a way that is not clear. Texts are as Slurm has them: to be escaped
/// where they are shown.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JobFacts {
    /// The raw id: that of the cgroup.
    pub job_id: u32,
    /// The array that it is of.
    pub array: Option<ArrayIds>,
    /// The heterogeneous job that it is of.
    pub het: Option<HetIds>,
    /// The unique id, from Slurm 25.11 on.
    pub sluid: Option<Sluid>,
    /// Its name, which its user chose.
    pub name: Option<String>,
    /// Name of its user.
    pub user: Option<String>,
    /// Number of its user.
    pub uid: Option<u32>,
    /// The account that pays.
    pub account: Option<String>,
    /// The partition, or, while it waits, several with commas between.
    pub partition: Option<String>,
    /// Its state.
    pub state: Option<State>,
    /// Why it waits or failed, in Slurm's word, as `Priority`; `None` where there is no reason.
    pub reason: Option<String>,
    /// What it waits for, as `afterok:12(unfulfilled)`.
    pub dependency: Option<String>,
    /// When it was handed in.
    pub submitted: Option<Timestamp>,
    /// From when on it may start.
    pub eligible: Option<Timestamp>,
    /// When it started; while it waits, when Slurm expects it to start.
    pub start: Option<Timestamp>,
    /// When it ended; before that, when its time limit will end it.
    pub end: Option<Timestamp>,
    /// Its time limit.
    pub time_limit: Option<TimeLimit>,
    /// Names of its nodes; none while it waits.
    pub nodes: Option<Vec<String>>,
    /// The node of its batch script.
    pub batch_host: Option<String>,
    /// How many nodes.
    pub num_nodes: Option<u32>,
    /// How many CPUs, on all nodes together.
    pub cpus: Option<u32>,
    /// How many tasks.
    pub tasks: Option<u32>,
    /// CPUs of each task.
    pub cpus_per_task: Option<u32>,
    /// Memory that was asked for; `None` also where the whole node's was.
    pub memory: Option<MemoryRequest>,
    /// Countable things that were asked for, by Slurm's name as `gres/gpu`; `mem` in bytes.
    pub tres_requested: Option<BTreeMap<String, u64>>,
    /// What it was given of them.
    pub tres_allocated: Option<BTreeMap<String, u64>>,
    /// What it was given on which nodes; none while it waits.
    pub shares: Vec<NodeShare>,
}

/// The array that a job is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayIds {
    /// Id of the array.
    pub job: u32,
    /// The task, or those that still wait.
    pub tasks: TaskSet,
}

/// The heterogeneous job that a component is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HetIds {
    /// Id of the first component.
    pub leader: u32,
    /// Which component, from 0.
    pub offset: u32,
}

/// State of a job, in Slurm's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State(Vec<String>);

/// What a state means for who looks for the job's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It has not started, or waits again.
    Pending,
    /// It has nodes.
    Running,
    /// It has ended.
    Ended,
}

impl State {
    /// The state of these words: one, and with it `COMPLETING` and the like; `None` where there are none.
    pub fn of(words: impl IntoIterator<Item = String>) -> Option<Self> {
        let words: Vec<_> = words
            .into_iter()
            .filter(|word| !word.is_empty())
            .take(8)
            .collect();
        (!words.is_empty()).then_some(Self(words))
    }

    /// Whether one of its words is `word`.
    pub fn is(&self, word: &str) -> bool {
        self.0.iter().any(|own| own == word)
    }

    /// What it means; `None` for a word that is not known.
    pub fn phase(&self) -> Option<Phase> {
        const RUNNING: [&str; 8] = [
            "COMPLETING",
            "RUNNING",
            "SUSPENDED",
            "CONFIGURING",
            "RESIZING",
            "SIGNALING",
            "STAGE_OUT",
            "STOPPED",
        ];
        const PENDING: [&str; 5] = [
            "PENDING",
            "REQUEUED",
            "REQUEUE_FED",
            "REQUEUE_HOLD",
            "SPECIAL_EXIT",
        ];
        const ENDED: [&str; 10] = [
            "COMPLETED",
            "CANCELLED",
            "FAILED",
            "TIMEOUT",
            "NODE_FAIL",
            "PREEMPTED",
            "BOOT_FAIL",
            "DEADLINE",
            "OUT_OF_MEMORY",
            "REVOKED",
        ];
        let has = |words: &[&str]| words.iter().any(|word| self.is(word));
        // What is completing has ended for its user, and has processes left.
        if has(&RUNNING[..1]) {
            Some(Phase::Running)
        } else if has(&PENDING) {
            Some(Phase::Pending)
        } else if has(&ENDED) {
            Some(Phase::Ended)
        } else {
            has(&RUNNING).then_some(Phase::Running)
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("+"))
    }
}

/// A limit of running time. The greater lets a job run longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimeLimit {
    /// So long.
    Limited(Duration),
    /// None.
    Unlimited,
}

impl fmt::Display for TimeLimit {
    /// As `--time` takes it: `1-02:30:00`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Limited(limit) = self else {
            return f.write_str("UNLIMITED");
        };
        let seconds = limit.as_secs();
        let (days, hours) = (seconds / 86_400, seconds / 3_600 % 24);
        if days > 0 {
            write!(f, "{days}-")?;
        }
        write!(f, "{hours:02}:{:02}:{:02}", seconds / 60 % 60, seconds % 60)
    }
}

/// Memory that a job asked for, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryRequest {
    /// On each node: `--mem`.
    PerNode(u64),
    /// For each CPU: `--mem-per-cpu`, or the partition's default.
    PerCpu(u64),
}

/// What a job was given on some nodes, the same on each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeShare {
    /// Names of the nodes.
    pub nodes: Vec<String>,
    /// Slurm's own numbers of the CPUs, which are not always the kernel's; `None` where the answer was JSON.
    pub cpu_ids: Option<Vec<u32>>,
    /// How many CPUs.
    pub cpus: Option<u32>,
    /// Memory in bytes; `None` where Slurm does not hand out memory.
    pub memory_bytes: Option<u64>,
    /// GPUs and the like.
    pub gres: Vec<Gres>,
}

/// GPUs or the like on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gres {
    /// Slurm's name, as `gpu`.
    pub name: String,
    /// The type, as `a100`, where it has one.
    pub kind: Option<String>,
    /// How many.
    pub count: Option<u64>,
    /// Slurm's indices of them on that node: neither NVML's nor CUDA's.
    pub indices: Option<Vec<u32>>,
}

impl JobFacts {
    /// Its id as Slurm shows it: `123_4` for a task, `123+1` for a component, else the raw id.
    pub fn shown_id(&self) -> JobRef {
        match (&self.array, &self.het) {
            (Some(array), _) => match array.tasks.single() {
                Some(task) => JobRef::ArrayTask {
                    array: array.job,
                    task,
                },
                None => JobRef::ArrayTasks {
                    array: array.job,
                    tasks: array.tasks.clone(),
                },
            },
            (None, Some(het)) => JobRef::Component {
                leader: het.leader,
                offset: het.offset,
            },
            (None, None) => JobRef::Raw(self.job_id),
        }
    }

    /// Whether it can be a job of this user, as the kernel tells it; where one of the two is not known, it can.
    pub fn can_be_of(&self, uid: Option<u32>) -> bool {
        self.uid.zip(uid).is_none_or(|(told, uid)| told == uid)
    }

    /// What it was given on `node`.
    pub fn share_of(&self, node: &str) -> Option<&NodeShare> {
        self.shares
            .iter()
            .find(|share| share.nodes.iter().any(|name| name == node))
    }

    /// What its state means; `None` where that is not known.
    pub fn phase(&self) -> Option<Phase> {
        self.state.as_ref().and_then(State::phase)
    }

    /// Whether `job` means this one, alone or with others.
    pub fn is_meant_by(&self, job: &JobRef) -> bool {
        let array = self.array.as_ref();
        let het = self.het.as_ref();
        match job {
            JobRef::Raw(id) => {
                self.job_id == *id
                    || array.is_some_and(|a| a.job == *id)
                    || het.is_some_and(|h| h.leader == *id)
            }
            JobRef::ArrayTask { array: id, task } => {
                array.is_some_and(|a| a.job == *id && a.tasks.contains(*task))
            }
            JobRef::ArrayTasks { array: id, tasks } => array.is_some_and(|a| {
                // Those that wait are in one record together.
                a.job == *id && a.tasks.single().is_none_or(|task| tasks.contains(task))
            }),
            JobRef::Component { leader, offset } => {
                het.is_some_and(|h| h.leader == *leader && h.offset == *offset)
            }
            // Where the answer's own is not clear, the question decides.
            JobRef::Sluid(sluid) => self.sluid.is_none_or(|own| own == *sluid),
        }
    }

    /// Whether it is of the array or heterogeneous job that `job` is of.
    fn is_related_to(&self, job: &JobRef) -> bool {
        match job {
            JobRef::ArrayTask { array, .. } | JobRef::ArrayTasks { array, .. } => {
                self.is_meant_by(&JobRef::Raw(*array))
            }
            JobRef::Component { leader, .. } => self.is_meant_by(&JobRef::Raw(*leader)),
            JobRef::Raw(_) => self.is_meant_by(job),
            JobRef::Sluid(_) => true,
        }
    }
}

/// Those of `jobs` that `job` means. An answer that cannot be one to that question is refused: someone has put records
/// of his own into it.
pub fn family(mut jobs: Vec<JobFacts>, job: &JobRef) -> Result<Vec<JobFacts>, Unknown> {
    let odd = |what| {
        Err(Unknown::Odd {
            program: "scontrol",
            what,
        })
    };
    if jobs.is_empty() {
        return odd("it holds no job");
    }
    if !jobs.iter().all(|facts| facts.is_related_to(job)) {
        return odd("it holds another job");
    }
    let ids: BTreeSet<_> = jobs.iter().map(|facts| facts.job_id).collect();
    if ids.len() != jobs.len() {
        return odd("it holds a job twice");
    }
    let users: BTreeSet<_> = jobs.iter().filter_map(|facts| facts.uid).collect();
    if users.len() > 1 {
        return odd("it holds jobs of several users");
    }
    jobs.retain(|facts| facts.is_meant_by(job));
    jobs.sort_by_key(|facts| facts.job_id);
    Ok(jobs)
}
