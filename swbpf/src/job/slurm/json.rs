//! `scontrol --json show job`: the shapes of Slurm 23.02 and newer.
//!
//! A number that may be unset is `{"set": true, "infinite": false, "number": 7}`, or plain in older versions and where
//! the administrator chose so; a state is a word or a list of words.

use jiff::Timestamp;
use serde_json::Value;

use super::{ArrayIds, HetIds, JobFacts, MemoryRequest, NodeShare, State, TimeLimit, values};
use crate::job::id::{TaskSet, checked_job};

/// The jobs of an answer; `None` where it is no answer of that kind.
pub fn jobs(answer: &[u8]) -> Option<Vec<JobFacts>> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let jobs = answer.get("jobs")?.as_array()?;
    jobs.iter().map(facts).collect()
}

/// A number that may be none.
enum Number {
    Set(u64),
    Infinite,
    Unset,
}

fn number(job: &Value, key: &str) -> Number {
    let value = job.get(key).unwrap_or(&Value::Null);
    let is = |key| value.get(key).and_then(Value::as_bool).unwrap_or(false);
    match value {
        Value::Number(number) => number.as_u64().map_or(Number::Unset, Number::Set),
        Value::String(word) if word.eq_ignore_ascii_case("infinity") => Number::Infinite,
        Value::Object(_) if is("infinite") => Number::Infinite,
        Value::Object(_) if is("set") => {
            let number = value.get("number").and_then(Value::as_u64);
            number.map_or(Number::Unset, Number::Set)
        }
        _ => Number::Unset,
    }
}

fn set(job: &Value, key: &str) -> Option<u64> {
    match number(job, key) {
        Number::Set(number) => Some(number),
        Number::Infinite | Number::Unset => None,
    }
}

fn small(job: &Value, key: &str) -> Option<u32> {
    set(job, key).and_then(|number| u32::try_from(number).ok())
}

fn text(job: &Value, key: &str) -> Option<String> {
    job.get(key)?.as_str().and_then(values::text)
}

/// Seconds since 1970; 0 stands for no time.
fn time(job: &Value, key: &str) -> Option<Timestamp> {
    let seconds = set(job, key).filter(|&seconds| seconds > 0)?;
    Timestamp::from_second(i64::try_from(seconds).ok()?).ok()
}

fn facts(job: &Value) -> Option<JobFacts> {
    Some(JobFacts {
        job_id: small(job, "job_id").and_then(checked_job)?,
        array: array(job),
        het: het(job),
        sluid: text(job, "sluid").and_then(|sluid| sluid.parse().ok()),
        name: text(job, "name"),
        user: text(job, "user_name"),
        uid: small(job, "user_id"),
        account: text(job, "account"),
        partition: text(job, "partition"),
        state: state(job.get("job_state")?),
        reason: text(job, "state_reason"),
        dependency: text(job, "dependency"),
        submitted: time(job, "submit_time"),
        eligible: time(job, "eligible_time"),
        start: time(job, "start_time"),
        end: time(job, "end_time"),
        time_limit: time_limit(job),
        nodes: nodes(job),
        batch_host: text(job, "batch_host"),
        num_nodes: small(job, "node_count"),
        cpus: small(job, "cpus"),
        tasks: small(job, "tasks"),
        cpus_per_task: small(job, "cpus_per_task"),
        memory: memory(job),
        tres_requested: text(job, "tres_req_str").and_then(|tres| values::tres(&tres)),
        tres_allocated: text(job, "tres_alloc_str").and_then(|tres| values::tres(&tres)),
        shares: shares(job),
    })
}

/// Of a task the number, of those that wait the list.
fn array(job: &Value) -> Option<ArrayIds> {
    let waiting = || job.get("array_task_string")?.as_str()?.parse().ok();
    Some(ArrayIds {
        job: small(job, "array_job_id").and_then(checked_job)?,
        tasks: waiting().or_else(|| small(job, "array_task_id").map(TaskSet::one))?,
    })
}

fn het(job: &Value) -> Option<HetIds> {
    Some(HetIds {
        leader: small(job, "het_job_id").and_then(checked_job)?,
        offset: small(job, "het_job_offset")?,
    })
}

fn state(value: &Value) -> Option<State> {
    match value {
        Value::String(word) => State::of([word.clone()]),
        Value::Array(words) => State::of(words.iter().filter_map(Value::as_str).map(str::to_owned)),
        _ => None,
    }
}

/// In minutes.
fn time_limit(job: &Value) -> Option<TimeLimit> {
    match number(job, "time_limit") {
        Number::Set(minutes) => {
            let seconds = minutes.checked_mul(60)?;
            Some(TimeLimit::Limited(std::time::Duration::from_secs(seconds)))
        }
        Number::Infinite => Some(TimeLimit::Unlimited),
        Number::Unset => None,
    }
}

fn nodes(job: &Value) -> Option<Vec<String>> {
    super::expand(job.get("nodes")?.as_str()?).ok()
}

/// In MiB.
fn memory(job: &Value) -> Option<MemoryRequest> {
    let bytes = |key| set(job, key).and_then(values::mebibytes);
    let per_node = bytes("memory_per_node").map(MemoryRequest::PerNode);
    per_node.or_else(|| bytes("memory_per_cpu").map(MemoryRequest::PerCpu))
}

/// `job_resources`: `nodes.allocation` from Slurm 24.05 on, before that `allocated_nodes`.
fn shares(job: &Value) -> Vec<NodeShare> {
    let resources = job.get("job_resources").unwrap_or(&Value::Null);
    let allocation = resources
        .pointer("/nodes/allocation")
        .or_else(|| resources.get("allocated_nodes"))
        .and_then(Value::as_array);
    let gres = |index: usize| {
        let told = job.get("gres_detail")?.get(index)?.as_str()?;
        Some(values::gres(told))
    };
    let nodes = allocation.into_iter().flatten().enumerate();
    nodes
        .filter_map(|(index, node)| share(node, gres(index).unwrap_or_default()))
        .collect()
}

fn share(node: &Value, gres: Vec<super::Gres>) -> Option<NodeShare> {
    let name = text(node, "name").or_else(|| text(node, "nodename"))?;
    let null = &Value::Null;
    let cpus = small(node.get("cpus").unwrap_or(null), "count").filter(|&cpus| cpus > 0);
    let memory = set(node.get("memory").unwrap_or(null), "allocated");
    Some(NodeShare {
        nodes: super::expand(&name).ok()?,
        cpu_ids: None,
        cpus,
        memory_bytes: memory
            .or_else(|| set(node, "memory_allocated"))
            .and_then(values::mebibytes),
        gres,
    })
}
