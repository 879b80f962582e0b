//! `scontrol show job -d` as text, which nothing escapes.
//!
//! A record is lines in a fixed order, `JobId=` at the beginning of the first and three spaces before each other. The
//! name of a job ends the first line, and can go on for lines that look like any others; comments and paths can do so
//! below. So a line of facts counts only if no other of the record begins as it does. The real one is always there: one
//! that is forged can make a fact unknown, and not another one. Lines that are there for some jobs only count between
//! their neighbours.

use super::{ArrayIds, HetIds, JobFacts, MemoryRequest, Phase, State, TimeLimit, values};
use crate::job::id::{Sluid, checked_job, number};

/// The jobs of an answer. What stands before the first record is left out.
pub fn jobs(answer: &[u8]) -> Vec<JobFacts> {
    let answer = String::from_utf8_lossy(answer);
    let mut records: Vec<Vec<&str>> = Vec::new();
    let mut is_after_blank = true;
    for line in answer.split('\n') {
        if is_after_blank && begin(line).is_some() {
            records.push(Vec::new());
        }
        is_after_blank = line.trim().is_empty();
        if let Some(record) = records.last_mut() {
            record.push(line);
        }
    }
    records
        .iter()
        .filter_map(|lines| Record { lines }.facts())
        .collect()
}

/// The id of the job whose record begins so, what else stands before its name, and the begin of that. A line that is less begins
/// none: a name that has it would cut the real lines off.
fn begin(line: &str) -> Option<(u32, &str, &str)> {
    let (head, name) = line.strip_prefix("JobId=")?.split_once(" JobName=")?;
    let id = head.split(' ').next().and_then(number)?;
    Some((checked_job(id)?, head, name))
}

/// `MaxTime` of the partition of this name in a line of `scontrol -o show partition`.
pub fn partition_limit(answer: &[u8], name: &str) -> Option<TimeLimit> {
    let answer = String::from_utf8_lossy(answer);
    let line = answer
        .lines()
        .find(|line| field(line, "PartitionName") == Some(name))?;
    values::time_limit(field(line, "MaxTime")?)
}

/// Value of the first `key=value` of a line.
fn field<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.split(' ')
        .find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
}

/// The lines of one job.
struct Record<'a> {
    lines: &'a [&'a str],
}

impl<'a> Record<'a> {
    /// Where the line is that begins with `key`, where one alone does.
    fn position(&self, key: &str) -> Option<usize> {
        let is_it = |line: &&str| {
            line.strip_prefix("   ")
                .and_then(|line| line.strip_prefix(key))
                .is_some_and(|line| line.starts_with('='))
        };
        let mut found = self.lines.iter().enumerate().filter(|(_, line)| is_it(line));
        let (index, _) = found.next()?;
        found.next().is_none().then_some(index)
    }

    /// Value of `key` in the line that begins with `first`.
    fn get(&self, first: &str, key: &str) -> Option<&'a str> {
        field(self.lines[self.position(first)?].trim_start(), key)
    }

    /// The line that begins with `key` between those that begin with `after` and `before`.
    fn between(&self, after: &str, before: &str) -> &'a [&'a str] {
        match (self.position(after), self.position(before)) {
            (Some(after), Some(before)) if after < before => &self.lines[after + 1..before],
            _ => &[],
        }
    }

    fn facts(&self) -> Option<JobFacts> {
        let (job_id, head, name) = begin(self.lines.first()?)?;
        let mut facts = JobFacts {
            job_id,
            array: array(head),
            het: het(head),
            ..JobFacts::default()
        };
        self.read_name(name, &mut facts);
        self.read_user(&mut facts);
        self.read_state(&mut facts);
        self.read_times(&mut facts);
        self.read_resources(&mut facts);
        Some(facts)
    }

    /// The name goes on up to the lines that Slurm writes next.
    fn read_name(&self, begin: &str, facts: &mut JobFacts) {
        let Some(mut end) = self.position("UserId") else {
            return;
        };
        if self.lines[end - 1].starts_with("   HetJobIdSet=") {
            end -= 1;
        }
        if let Some(sluid) = self.lines[end - 1].strip_prefix("   SLUID=") {
            facts.sluid = Sluid::from_canonical(sluid).filter(|_| end == 2);
            end -= 1;
        }
        let name: Vec<&str> = std::iter::once(begin)
            .chain(self.lines[1..end.max(1)].iter().copied())
            .collect();
        facts.name = values::text(&name.join("\n"));
    }

    /// `UserId=alice(1001)`.
    fn read_user(&self, facts: &mut JobFacts) {
        let user = self
            .get("UserId", "UserId")
            .and_then(|user| user.strip_suffix(')'))
            .and_then(|user| user.rsplit_once('('));
        if let Some((name, uid)) = user {
            facts.user = values::text(name);
            facts.uid = number(uid);
        }
        facts.account = self.get("Priority", "Account").and_then(values::text);
    }

    fn read_state(&self, facts: &mut JobFacts) {
        let state = |key| self.get("JobState", key);
        facts.state = state("JobState").and_then(|word| State::of([values::text(word)?]));
        facts.reason = state("Reason").and_then(values::text);
        facts.dependency = state("Dependency").and_then(values::text);
        facts.partition = self.get("Partition", "Partition").and_then(values::text);
    }

    fn read_times(&self, facts: &mut JobFacts) {
        facts.time_limit = self.get("RunTime", "TimeLimit").and_then(values::time_limit);
        facts.submitted = self.get("SubmitTime", "SubmitTime").and_then(values::time);
        facts.eligible = self.get("SubmitTime", "EligibleTime").and_then(values::time);
        facts.start = self.get("StartTime", "StartTime").and_then(values::time);
        facts.end = self.get("StartTime", "EndTime").and_then(values::time);
    }

    fn read_resources(&self, facts: &mut JobFacts) {
        facts.nodes = self
            .get("NodeList", "NodeList")
            .and_then(|list| super::expand(list).ok());
        facts.batch_host = self
            .between("NodeList", "NumNodes")
            .iter()
            .find_map(|line| field(line.trim_start(), "BatchHost"))
            .and_then(values::text);
        let size = |key| self.get("NumNodes", key).and_then(values::count);
        facts.num_nodes = size("NumNodes");
        facts.cpus = size("NumCPUs");
        facts.tasks = size("NumTasks");
        facts.cpus_per_task = size("CPUs/Task");
        let memory = |key| self.get("MinCPUsNode", key).and_then(values::memory);
        let per_node = memory("MinMemoryNode").map(MemoryRequest::PerNode);
        facts.memory = per_node.or_else(|| memory("MinMemoryCPU").map(MemoryRequest::PerCpu));
        self.read_tres(facts);
        facts.shares = self
            .between("Socks/Node", "MinCPUsNode")
            .iter()
            .filter_map(|line| line.strip_prefix("     "))
            .filter_map(values::share)
            .collect();
    }

    /// Two lines from Slurm 23.02 on. One before that, which says what was asked for until there is more to say.
    fn read_tres(&self, facts: &mut JobFacts) {
        let tres = |key: &str| {
            let line = self.lines[self.position(key)?].trim_start();
            values::tres(line.split_once('=')?.1)
        };
        facts.tres_requested = tres("ReqTRES");
        facts.tres_allocated = tres("AllocTRES");
        let only = match facts.phase() {
            Some(Phase::Pending) => &mut facts.tres_requested,
            Some(Phase::Running | Phase::Ended) => &mut facts.tres_allocated,
            None => return,
        };
        if only.is_none() {
            *only = tres("TRES");
        }
    }
}

/// `ArrayJobId=4 ArrayTaskId=2-6%1`, before the name and so not to be forged.
fn array(head: &str) -> Option<ArrayIds> {
    Some(ArrayIds {
        job: number(field(head, "ArrayJobId")?).and_then(checked_job)?,
        tasks: field(head, "ArrayTaskId")?.parse().ok()?,
    })
}

/// `HetJobId=2 HetJobOffset=1`.
fn het(head: &str) -> Option<HetIds> {
    Some(HetIds {
        leader: number(field(head, "HetJobId")?).and_then(checked_job)?,
        offset: number(field(head, "HetJobOffset")?)?,
    })
}
