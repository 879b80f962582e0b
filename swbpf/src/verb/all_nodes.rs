//! `sw-bpf --once --all-nodes`: one window on each node of a job, one answer.

use std::{env, process::ExitCode, time::Duration};

use anyhow::{Context, anyhow};
use jiff::Timestamp;
use tokio::signal::unix::{SignalKind, signal};

use super::{
    mine,
    signals::survive_file_limit,
    target::{Room, explain_pending},
};
use crate::{
    cli::{AllNodes, ForcedSource},
    error::Error,
    job::{
        cgroup::Hierarchies,
        find::{self, Caller, Question},
        id::{JobId, JobRef},
        slurm::{JobFacts, OnEachNode, Slurm},
    },
    out::{self, json, text},
    snapshot::{Gathered, NodeAnswer},
};

/// How long the nodes may take beside the window: Slurm waits 10 s for a node that does not react, and a busy controller takes
/// its time.
const BESIDE_THE_WINDOW: Duration = Duration::from_secs(30);

/// Most nodes that are named in the failure; the answer names all.
const NAMED: usize = 8;

/// Has every node measure for the window, and answers on standard output with what came.
pub async fn all_nodes(asked: &AllNodes, force: Option<ForcedSource>) -> Result<ExitCode, Error> {
    survive_file_limit()?;
    let slurm = Slurm::default();
    let id = match &asked.job {
        Some(id) => id.clone(),
        None => mine::job(&Hierarchies::detect()?, None).await?,
    };
    let room = if asked.json {
        Room::ForTheAnswerAlone
    } else {
        Room::ForWords
    };
    let facts = running(&slurm, &id, room).await?;
    let gathered = gather(&slurm, &facts, asked.window, force).await?;
    let answer = if asked.json {
        json::line(&gathered)?
    } else {
        text::gathered(&gathered)
    };
    // A reader that has gone is success.
    let _ = out::tell(&answer)?;
    complete(&gathered)
}

/// The job, which runs, and whose nodes are known.
async fn running(slurm: &Slurm, id: &JobId, room: Room) -> Result<JobFacts, Error> {
    let unknown = |why| Error::NoSuchJob {
        id: id.to_string(),
        why,
    };
    let asked = slurm.facts(id).await.map_err(|error| {
        unknown(format!(
            "Slurm could not be asked for its nodes: {error}; on one of them `sw-bpf --once {id}` does without"
        ))
    })?;
    let caller = Caller {
        uid: rustix::process::geteuid().as_raw(),
        ..Caller::default()
    };
    let question = Question {
        id,
        wanted_node: None,
        asked: Ok(&asked),
        caller: &caller,
    };
    let facts = match find::running(&question) {
        Ok(facts) => facts,
        Err(found) => {
            explain_pending(slurm, &found, room).await?;
            return Err(match found.or_refuse(id) {
                Err(refusal) => refusal,
                Ok(_) => unknown("it does not run".to_owned()),
            });
        }
    };
    if facts.nodes.as_ref().is_none_or(Vec::is_empty) {
        let why = "Slurm does not say on which nodes it runs; look at `scontrol show job`";
        return Err(unknown(why.to_owned()));
    }
    Ok(facts)
}

async fn gather(
    slurm: &Slurm,
    facts: &JobFacts,
    window: Duration,
    force: Option<ForcedSource>,
) -> Result<Gathered, Error> {
    let program = env::current_exe().context("find the own path")?;
    let nodes = facts.nodes.as_deref().unwrap_or_default();
    let het = facts.het.as_ref();
    let what = OnEachNode {
        job: het.map_or(facts.job_id, |het| het.leader),
        het_group: het.map(|het| het.offset),
        nodes,
        program: &program,
        args: &arguments(facts, window, force),
        limit: window + BESIDE_THE_WINDOW,
    };
    let answers = slurm.on_each_node(&what, stop()?).await.map_err(|unknown| {
        let shown = facts.shown_id();
        anyhow!(
            "cannot ask the nodes of job {shown}: {unknown}: on each, `sw-bpf --once {shown}` does without"
        )
    })?;
    let answers = nodes
        .iter()
        .zip(answers)
        .map(|(node, answer)| NodeAnswer::read(node, facts.job_id, answer))
        .collect();
    Ok(Gathered::of(
        facts.shown_id().to_string(),
        window.as_secs_f64(),
        format!("{:.3}", Timestamp::now()),
        answers,
    ))
}

/// What sw-bpf is given on each node. The raw id of a task of an array can be the array's.
fn arguments(facts: &JobFacts, window: Duration, force: Option<ForcedSource>) -> Vec<String> {
    let id = match facts.shown_id() {
        JobRef::ArrayTasks { .. } => JobRef::Raw(facts.job_id),
        shown => shown,
    };
    let mut arguments = vec![
        "--once".to_owned(),
        "--json".to_owned(),
        format!("--window={}", window.as_secs_f64()),
    ];
    arguments.extend(force.map(|source| format!("--force-source={}", source.name())));
    arguments.push(id.to_string());
    arguments
}

/// Waits until someone asks sw-bpf to end.
fn stop() -> Result<impl Future<Output = ()>, Error> {
    let catch = |kind| signal(kind).context("catch a signal");
    let mut interrupt = catch(SignalKind::interrupt())?;
    let mut terminate = catch(SignalKind::terminate())?;
    let mut hang_up = catch(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
    })
}

/// Success where every node answered.
fn complete(gathered: &Gathered) -> Result<ExitCode, Error> {
    let missing = gathered.missing.len();
    if missing == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    let named = gathered.missing[..missing.min(NAMED)].join(", ");
    let nodes = match missing.saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    };
    Err(Error::NodesMissing {
        id: gathered.job_id.clone(),
        missing,
        all: gathered.nodes.len(),
        nodes,
    })
}
