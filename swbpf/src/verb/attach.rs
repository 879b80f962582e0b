//! `sw-bpf attach`: what runs already, until it ends or Ctrl-C.

use std::{ops::ControlFlow, process::ExitCode};

use super::{
    keep::Keeper,
    listen::{Empty, End, listen},
    meter::Meter,
    outside::leave,
    signals::Signals,
    target::{Room, choose},
};
use crate::{
    cli::{self, ForcedSource},
    error::Error,
    job::cgroup::Hierarchies,
    out::{self, text},
    snapshot::Kind,
};

/// A line a second on standard output, and the summary at the end.
pub async fn attach(attach: &cli::Attach, force: Option<ForcedSource>) -> Result<ExitCode, Error> {
    let hierarchies = Hierarchies::detect()?;
    let mut chosen = choose(&hierarchies, &attach.target, Room::ForWords).await?;
    let mut keeper = Keeper::begin(attach.json.as_deref())?;
    let signals = Signals::catch()?;
    let whereabouts = leave(&hierarchies, &chosen.cgroup);
    chosen.told.own_processes = whereabouts.own;
    if let Some(reason) = &whereabouts.reason {
        out::tell_aside(&text::cannot_leave(reason));
    }
    let mut meter = Meter::begin(&hierarchies, chosen, force)?;
    // From this line on, nothing is missed: who waits for it may let the job begin.
    keeper.keep(|| meter.snapshot(Kind::Progress, None));
    let end = listen(&mut meter, Empty::IsTheEnd, signals.next(), |meter| {
        let snapshot = meter.snapshot(Kind::Progress, None);
        let told = out::tell(&text::progress(&snapshot))?;
        keeper.keep(|| snapshot);
        Ok(meter.has_ended()? || told == ControlFlow::Break(()))
    })
    .await?;
    if let End::Came(signal) = end {
        signal.map_err(|error| Error::Other(anyhow::Error::new(error).context("read a signal")))?;
    }
    meter.finish()?;
    let snapshot = meter.snapshot(Kind::Summary, None);
    let _ = out::tell(&text::summary(&snapshot))?;
    keeper.keep(|| snapshot);
    keeper.end().map_or(Ok(ExitCode::SUCCESS), Err)
}
