//! `sw-bpf --once`: one window, one answer.

use std::{path::Path, process::ExitCode};

use serde_json::value::RawValue;
use tokio::time::sleep;

use super::{
    client::{self, Told},
    listen::{Empty, listen},
    meter::Meter,
    outside::{Left, leave},
    signals::Signals,
    target::{Chosen, Room, choose},
};
use crate::{
    cli::{ForcedSource, Once, WINDOW},
    error::Error,
    job::cgroup::Hierarchies,
    out::{self, json, text},
    snapshot::Kind,
    wire::Target,
};

/// Asks the agent, else measures for the window, and answers on standard output.
pub async fn once(once: &Once, socket: &Path, force: Option<ForcedSource>) -> Result<ExitCode, Error> {
    let mut may_know = false;
    if let Some(target) = client::target(socket, &once.target, force).await? {
        match client::once(socket, target, once.window).await {
            Told::This(snapshot) => return tell(once, &snapshot),
            Told::NotYet => may_know = true,
            Told::Nothing => {}
        }
    }
    let signals = Signals::catch()?;
    let hierarchies = Hierarchies::detect()?;
    let left = Left::look(&hierarchies);
    let room = if once.json {
        Room::ForTheAnswerAlone
    } else {
        Room::ForWords
    };
    let chosen = match choose(&hierarchies, &once.target, room).await {
        Ok(chosen) => chosen,
        Err(error) => return Err(client::or_recorded(error, socket, &once.target).await),
    };
    // It may have been waited for.
    if may_know {
        match client::once(socket, Target::CgroupId(chosen.cgroup.id()), once.window).await {
            Told::This(snapshot) => return tell(once, &snapshot),
            Told::NotYet => client::tell_who_may_ask(),
            Told::Nothing => {}
        }
    }
    measure(once, &hierarchies, left, chosen, signals, force).await
}

/// Answers with what the agent said.
fn tell(once: &Once, snapshot: &RawValue) -> Result<ExitCode, Error> {
    let answer = if once.json {
        format!("{snapshot}\n")
    } else {
        text::summary(&client::understood(snapshot)?)
    };
    // A reader that has gone is success.
    let _ = out::tell(&answer)?;
    Ok(ExitCode::SUCCESS)
}

async fn measure(
    once: &Once,
    hierarchies: &Hierarchies,
    left: Option<Left>,
    mut chosen: Chosen,
    signals: Signals,
    force: Option<ForcedSource>,
) -> Result<ExitCode, Error> {
    let whereabouts = leave(hierarchies, &chosen.cgroup, left);
    chosen.told.own_processes = whereabouts.own;
    chosen.stand_in = whereabouts.stand_in();
    let mut meter = Meter::begin(hierarchies, chosen, force)?;
    // Of a measurement that cannot begin, its failure alone is told.
    if let Some(reason) = &whereabouts.reason {
        out::tell_aside(&text::cannot_leave(reason));
    }
    // A target that ends within the window has its answer all the same.
    let end = async {
        tokio::select! {
            () = sleep(once.window.unwrap_or(WINDOW)) => {}
            // Who interrupts it has the answer for the time until then.
            _ = signals.next() => {}
            () = whereabouts.ended() => {}
        }
    };
    listen(&mut meter, Empty::IsNoMatter, end, |_| Ok(false)).await?;
    meter.finish()?;
    let snapshot = meter.snapshot(Kind::Once, None);
    let answer = if once.json {
        json::line(&snapshot)?
    } else {
        text::summary(&snapshot)
    };
    // A reader that has gone is success.
    let _ = out::tell(&answer)?;
    Ok(ExitCode::SUCCESS)
}
