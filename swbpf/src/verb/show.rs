//! `sw-bpf show`: what the record of a job says.

use std::{path::Path, process::ExitCode};

use super::client;
use crate::{
    cli::{self, DIR},
    error::Error,
    job::{
        id::{JobId, Recorded, StepName},
        slurm::Slurm,
    },
    out::{self, json, text, units},
    record::{self, Found, Records},
    snapshot::{Kind, Snapshot, Step},
    wire::{Ask, Shown},
};

/// Tells the last line of a record: the agent's word, who may read all, else what this user may read.
pub async fn show(asked: &cli::Show, socket: &Path) -> Result<ExitCode, Error> {
    let ask = Ask::Show {
        job: asked.job.id(),
        run: asked.run,
    };
    let answer = match asked.records {
        None => client::of_records(socket, ask, &asked.job.to_string(), |answer| answer.shown).await?,
        Some(_) => None,
    };
    let shown = match answer {
        Some(shown) => shown,
        None => { read(asked).await }
            .map_err(|error| client::without_agent(error, socket, asked.records.as_deref()))?,
    };
    tell(&shown, asked)
}

async fn read(asked: &cli::Show) -> Result<Shown, Error> {
    let records = Records::open(asked.records.as_deref().unwrap_or(Path::new(DIR)))?;
    let found = find(&records, asked).await?;
    Ok(Shown {
        record: found.name.file(),
        snapshot: found.last.snapshot,
        note: found.last.note,
    })
}

/// The record. Who may not look into all of them has Slurm tell by which id it is named.
async fn find(records: &Records, asked: &cli::Show) -> Result<Found, Error> {
    let found = record::find(records, &asked.job, asked.run, None);
    let (Err(Error::RecordDenied { action: "list", .. }), Recorded::Job(id)) = (&found, &asked.job) else {
        return found;
    };
    let known = Slurm::default().facts(id).await.unwrap_or_default();
    for facts in known {
        let sluid = facts.sluid.map(|sluid| sluid.to_string());
        for name in [Some(facts.job_id.to_string()), sluid].into_iter().flatten() {
            let Ok(named) = name.parse() else { continue };
            let of_name = record::find(records, &named, asked.run, None);
            if !matches!(of_name, Err(Error::RecordDenied { action: "list", .. })) {
                return of_name;
            }
        }
    }
    Err(Error::NoRecord {
        what: asked.job.to_string(),
        why: format!(
            "none has this name, and only root may search the others: name the raw id, as \
             `sacct -X -o JobIDRaw -j {}` tells it",
            id.job
        ),
    })
}

/// Answers on standard output with what was found.
fn tell(shown: &Shown, asked: &cli::Show) -> Result<ExitCode, Error> {
    let snapshot = &shown.snapshot;
    let step = match &asked.job {
        Recorded::Job(JobId { step: Some(step), .. }) => Some(step_of(snapshot, step, asked)?),
        _ => None,
    };
    let answer = match step {
        _ if asked.admin_comment => text::comment(snapshot) + "\n",
        Some(step) if asked.json => json::line(step)?,
        Some(step) => text::step(snapshot, step),
        None if asked.json => json::line(snapshot)?,
        None => text::summary(snapshot),
    };
    if snapshot.kind == Kind::Progress {
        out::tell_aside(&text::of_record(&format!(
            "there is no summary yet: this is as of {}",
            units::moment(&snapshot.timestamp)
        )));
    }
    if let Some(note) = &shown.note {
        out::tell_aside(&text::of_record(&format!("{}: {note}", shown.record)));
    }
    // A reader that has gone is success.
    let _ = out::tell(&answer)?;
    Ok(ExitCode::SUCCESS)
}

/// The step that is asked for.
fn step_of<'a>(snapshot: &'a Snapshot, step: &StepName, asked: &cli::Show) -> Result<&'a Step, Error> {
    let name = step.to_string();
    let steps = snapshot.steps.as_deref().unwrap_or_default();
    let found = steps.iter().find(|step| step.step_id == name);
    found.ok_or_else(|| {
        let why = match snapshot.kind {
            Kind::Progress => "it does not run now, and the steps that have ended are told in the summary",
            _ => "the job had no such step on this host, or so many that it was left out",
        };
        Error::NoRecord {
            what: asked.job.to_string(),
            why: why.to_owned(),
        }
    })
}
