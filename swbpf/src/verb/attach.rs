//! `sw-bpf attach`: what runs already, until it ends or Ctrl-C.

use std::{ops::ControlFlow, process::ExitCode, time::Instant};

use super::{
    listen::{Empty, End, listen},
    meter::Meter,
    outside::{Left, leave},
    pace::{News, Pace},
    signals::Signals,
    target::{Room, choose},
};
use crate::{
    cli::{self, ForcedSource},
    error::Error,
    job::cgroup::Hierarchies,
    out::{self, text},
    record::Keeper,
    snapshot::Kind,
};

/// A line a second on standard output, and the summary at the end. Lines of the record become fewer with time, where there is
/// no news: each has all that came before it, some 20 kB, and a job may run for weeks.
pub async fn attach(attach: &cli::Attach, force: Option<ForcedSource>) -> Result<ExitCode, Error> {
    let hierarchies = Hierarchies::detect()?;
    let left = Left::look(&hierarchies);
    let mut chosen = choose(&hierarchies, &attach.target, Room::ForWords).await?;
    let mut keeper = Keeper::begin(attach.json.as_deref())?;
    let signals = Signals::catch()?;
    let whereabouts = leave(&hierarchies, &chosen.cgroup, left);
    chosen.told.own_processes = whereabouts.own;
    chosen.stand_in = whereabouts.stand_in();
    let mut meter = Meter::begin(&hierarchies, chosen, force)?;
    // Of a measurement that cannot begin, its failure alone is told.
    if let Some(reason) = &whereabouts.reason {
        out::tell_aside(&text::cannot_leave(reason));
    }
    // From this line on, nothing is missed: who waits for it may let the job begin.
    keeper.keep(|| meter.snapshot(Kind::Progress, None));
    let mut pace = Pace::begin(Instant::now());
    let mut news = News::default();
    let told_to_end = async {
        tokio::select! {
            signal = signals.next() => signal.map(drop),
            () = whereabouts.ended() => Ok(()),
        }
    };
    let end = listen(&mut meter, Empty::IsTheEnd, told_to_end, |meter| {
        let snapshot = meter.snapshot(Kind::Progress, None);
        let told = out::tell(&text::progress(&snapshot))?;
        let is_due = pace.is_due(Instant::now());
        if news.are_in(&snapshot) || is_due {
            keeper.keep(|| snapshot);
        }
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
