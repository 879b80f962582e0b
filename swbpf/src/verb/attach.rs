//! `sw-bpf attach`: what runs already, until it ends or Ctrl-C.

use std::{ops::ControlFlow, path::Path, process::ExitCode, time::Instant};

use anyhow::Context;
use serde_json::value::RawValue;

use super::{
    client::{self, Following, Told},
    listen::{Empty, End, listen},
    meter::Meter,
    outside::{Left, leave},
    pace::{News, Pace},
    signals::Signals,
    target::{Chosen, Room, choose},
};
use crate::{
    cli::{self, ForcedSource},
    error::Error,
    job::cgroup::Hierarchies,
    out::{self, text},
    record::Keeper,
    snapshot::{Kind, Snapshot},
    wire::Target,
};

/// A line a second on standard output, and the summary at the end. Lines of the record become fewer with time, where there is
/// no news: each has all that came before it, some 20 kB, and a job may run for weeks.
pub async fn attach(
    attach: &cli::Attach,
    socket: &Path,
    force: Option<ForcedSource>,
) -> Result<ExitCode, Error> {
    let mut may_know = false;
    if let Some(target) = client::target(socket, &attach.target, force).await? {
        match Following::begin(socket, target).await {
            Told::This((first, following)) => return follow(attach, &first, following).await,
            Told::NotYet => may_know = true,
            Told::Nothing => {}
        }
    }
    let hierarchies = Hierarchies::detect()?;
    let left = Left::look(&hierarchies);
    let chosen = match choose(&hierarchies, &attach.target, Room::ForWords).await {
        Ok(chosen) => chosen,
        Err(error) => return Err(client::or_recorded(error, socket, &attach.target).await),
    };
    // It may have been waited for.
    if may_know {
        match Following::begin(socket, Target::CgroupId(chosen.cgroup.id())).await {
            Told::This((first, following)) => return follow(attach, &first, following).await,
            Told::NotYet => client::tell_who_may_ask(),
            Told::Nothing => {}
        }
    }
    measure(attach, &hierarchies, left, chosen, force).await
}

/// Tells what the agent says of a job until it ends, or until Ctrl-C.
async fn follow(attach: &cli::Attach, first: &RawValue, mut following: Following) -> Result<ExitCode, Error> {
    let signals = Signals::catch()?;
    let mut keeper = Keeper::begin(attach.json.as_deref())?;
    let mut pace = Pace::begin(Instant::now());
    let mut news = News::default();
    let mut snapshot = client::understood(first)?;
    keeper.keep(|| snapshot.clone());
    while snapshot.kind != Kind::Summary {
        if out::tell(&text::progress(&snapshot))? == ControlFlow::Break(()) {
            break;
        }
        let next = tokio::select! {
            signal = signals.next() => {
                signal.context("read a signal")?;
                break;
            }
            next = next(&mut following, &snapshot) => next?,
        };
        snapshot = client::understood(&next)?;
        let is_due = pace.takes_line(Instant::now());
        if (news.are_in(&snapshot) || is_due) && snapshot.kind != Kind::Summary {
            keeper.keep(|| snapshot.clone());
        }
    }
    // Who has seen enough has what was known until then, and who has said so twice does not wait for it.
    if snapshot.kind != Kind::Summary {
        let whole = tokio::select! {
            whole = following.whole() => whole,
            _ = signals.next() => None,
        };
        if let Some(whole) = whole {
            snapshot = client::understood(&whole)?;
        }
    }
    let _ = out::tell(&text::summary(&snapshot))?;
    keeper.keep(|| snapshot);
    keeper.end().map_or(Ok(ExitCode::SUCCESS), Err)
}

/// The next snapshot after `last`. Where it is long in coming, its user is told that what stands there is old.
async fn next(following: &mut Following, last: &Snapshot) -> Result<Box<RawValue>, Error> {
    client::patiently(client::SILENCE, following.next(), |silence| {
        text::stale(last, silence)
    })
    .await
}

async fn measure(
    attach: &cli::Attach,
    hierarchies: &Hierarchies,
    left: Option<Left>,
    mut chosen: Chosen,
    force: Option<ForcedSource>,
) -> Result<ExitCode, Error> {
    let mut keeper = Keeper::begin(attach.json.as_deref())?;
    let signals = Signals::catch()?;
    let whereabouts = leave(hierarchies, &chosen.cgroup, left);
    chosen.told.own_processes = whereabouts.own;
    chosen.stand_in = whereabouts.stand_in();
    let mut meter = Meter::begin(hierarchies, chosen, force)?;
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
        let is_due = pace.takes_line(Instant::now());
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
