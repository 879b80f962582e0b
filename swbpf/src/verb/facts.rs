//! What Slurm says of a job, as it is told.

use jiff::Timestamp;

use crate::{
    job::slurm::{JobFacts, MemoryRequest, NodeShare, TimeLimit},
    snapshot::{Gres, Job, NodePart, Requested},
};

/// The job with its part on `node`, the one that the path of its cgroup names, if any. `host` is this host's name.
pub fn told(facts: &JobFacts, node: Option<&str>, host: &str) -> Job {
    let moment = |time: Option<Timestamp>| time.map(|time| format!("{time:.0}"));
    Job {
        job_id: facts.job_id,
        array_job_id: facts.array.as_ref().map(|array| array.job),
        array_task_id: facts.array.as_ref().and_then(|array| array.tasks.single()),
        het_job_id: facts.het.as_ref().map(|het| het.leader),
        het_job_offset: facts.het.as_ref().map(|het| het.offset),
        sluid: facts.sluid.map(|sluid| sluid.to_string()),
        name: facts.name.clone(),
        user: facts.user.clone(),
        account: facts.account.clone(),
        partition: facts.partition.clone(),
        state: facts.state.as_ref().map(ToString::to_string),
        started_at: moment(facts.start),
        ends_at: moment(facts.end),
        time_limit_seconds: match facts.time_limit {
            Some(TimeLimit::Limited(limit)) => Some(limit.as_secs()),
            Some(TimeLimit::Unlimited) | None => None,
        },
        nodes: facts.nodes.clone(),
        node_count: facts.num_nodes,
        requested: requested(facts),
        here: part(facts, node, host),
    }
}

/// Why none of what Slurm says is of a job of this user.
pub fn why_none(all: &[JobFacts], uid: Option<u32>) -> String {
    let other = all.iter().find(|facts| !facts.can_be_of(uid));
    match other.and_then(|facts| facts.uid).zip(uid) {
        Some((told, uid)) => format!(
            "what Slurm says of this id is of a job of uid {told}, and this one is of uid {uid}: the id is used anew, or another \
             cluster's Slurm answers"
        ),
        None => "Slurm does not know this job, or no more".to_owned(),
    }
}

fn requested(facts: &JobFacts) -> Requested {
    let (memory_per_node_bytes, memory_per_cpu_bytes) = match facts.memory {
        Some(MemoryRequest::PerNode(bytes)) => (Some(bytes), None),
        Some(MemoryRequest::PerCpu(bytes)) => (None, Some(bytes)),
        None => (None, None),
    };
    Requested {
        memory_per_node_bytes,
        memory_per_cpu_bytes,
        cpus: facts.cpus,
        tasks: facts.tasks,
        cpus_per_task: facts.cpus_per_task,
        tres: facts.tres_requested.clone(),
    }
}

/// What the job was given on the node that its cgroup or this host is named by, or on its only one.
fn part(facts: &JobFacts, node: Option<&str>, host: &str) -> Option<NodePart> {
    let short = host.split('.').next().unwrap_or(host);
    let nodes = facts.nodes.as_deref().unwrap_or_default();
    let node = match (node, nodes) {
        (Some(node), _) => node,
        (None, [only]) => only,
        (None, _) => nodes.iter().find(|node| *node == short || *node == host)?,
    };
    let share = facts.share_of(node)?;
    Some(part_of(node, share))
}

fn part_of(node: &str, share: &NodeShare) -> NodePart {
    NodePart {
        node: node.to_owned(),
        cpus: share.cpus,
        cpu_ids: share.cpu_ids.clone(),
        memory_bytes: share.memory_bytes,
        gres: share
            .gres
            .iter()
            .map(|gres| Gres {
                name: gres.name.clone(),
                kind: gres.kind.clone(),
                count: gres.count,
                indices: gres.indices.clone(),
            })
            .collect(),
    }
}
