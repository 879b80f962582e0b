//! Answers of Slurm's programs, parts of which the users of jobs write.

use swbpf::job::slurm::{JobFacts, parse};

/// Bytes of a name in an answer of `squeue`.
const SQUEUE_NAME: usize = 64;
/// Nodes that `srun` is asked to answer for.
const NODES: [&str; 3] = ["cn1", "cn2", "cn10"];
/// Longest reason that is told of a node, in characters.
const LONGEST_REASON: usize = 300;

/// What all facts must be good for.
fn check_facts(jobs: &[JobFacts]) {
    for facts in jobs {
        let id = facts.shown_id();
        assert!(facts.is_meant_by(&id), "{id}");
        let _ = (facts.phase(), facts.share_of(NODES[0]));
        if let Some(limit) = &facts.time_limit {
            let _ = limit.to_string();
        }
        if let Ok(family) = parse::family(jobs.to_vec(), &id) {
            assert!(family.len() <= jobs.len());
            assert!(family.iter().all(|member| member.is_meant_by(&id)));
        }
    }
}

/// `scontrol show job -d`, and `scontrol -o show partition`. There are no more jobs than records.
pub fn scontrol_text(data: &[u8]) {
    let jobs = parse::text(data);
    let records = data.windows(6).filter(|window| *window == b"JobId=").count();
    assert!(jobs.len() <= records);
    check_facts(&jobs);
    let _ = parse::partition_limit(data, "main");
}

/// `scontrol show job -d --json`.
pub fn scontrol_json(data: &[u8]) {
    if let Some(jobs) = parse::json(data) {
        check_facts(&jobs);
    }
}

/// `scontrol show config`: a value is part of the answer.
pub fn scontrol_config(data: &[u8]) {
    let Some(settings) = parse::settings(data) else {
        return;
    };
    assert!(settings.version().is_some());
    for name in ["ProctrackType", "TaskPlugin", "ConstrainRAMSpace"] {
        if let Some(value) = settings.get(name) {
            assert!(String::from_utf8_lossy(data).contains(value), "{value:?}");
            let _ = (settings.lists(name, "task/cgroup"), settings.is_on(name));
        }
    }
}

/// `squeue`: what was read is read again as it is written.
pub fn squeue(data: &[u8]) {
    let Ok(jobs) = parse::queue(data) else { return };
    assert!(jobs.len() * SQUEUE_NAME <= data.len());
    let mut written = Vec::new();
    for job in &jobs {
        if job.name.len() > SQUEUE_NAME {
            // A byte that is no text is longer when it is replaced.
            return;
        }
        written.extend(format!("{}|{}|", job.raw, job.id).into_bytes());
        let mut name = job.name.clone().into_bytes();
        name.resize(SQUEUE_NAME, b' ');
        written.extend(name);
        written.extend(b"|\n");
    }
    assert_eq!(parse::queue(&written), Ok(jobs));
}

/// `srun --label`: standard output, and after a byte 0 standard error. No answer has more than was written.
pub fn srun(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (written, complained) = data.split_at(end);
    let answers = parse::answers(&NODES.map(str::to_owned), written, complained);
    assert_eq!(answers.len(), NODES.len());
    let mut length = 0;
    for answer in answers {
        match answer {
            Ok(answer) => length += answer.len(),
            Err(reason) => assert!(reason.chars().count() <= LONGEST_REASON, "{reason}"),
        }
    }
    assert!(length <= written.len());
}
