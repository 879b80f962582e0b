//! `sw-bpf --once`: one window, one answer.

use std::process::ExitCode;

use tokio::time::sleep;

use super::{
    listen::{Empty, listen},
    meter::Meter,
    outside::{Left, leave},
    signals::Signals,
    target::{Room, choose},
};
use crate::{
    cli::{ForcedSource, Once},
    error::Error,
    job::cgroup::Hierarchies,
    out::{self, json, text},
    snapshot::Kind,
};

/// Measures for the window and answers on standard output.
pub async fn once(once: &Once, force: Option<ForcedSource>) -> Result<ExitCode, Error> {
    let signals = Signals::catch()?;
    let hierarchies = Hierarchies::detect()?;
    let left = Left::look(&hierarchies);
    let room = if once.json {
        Room::ForTheAnswerAlone
    } else {
        Room::ForWords
    };
    let mut chosen = choose(&hierarchies, &once.target, room).await?;
    let whereabouts = leave(&hierarchies, &chosen.cgroup, left);
    chosen.told.own_processes = whereabouts.own;
    chosen.stand_in = whereabouts.stand_in();
    let mut meter = Meter::begin(&hierarchies, chosen, force)?;
    // Of a measurement that cannot begin, its failure alone is told.
    if let Some(reason) = &whereabouts.reason {
        out::tell_aside(&text::cannot_leave(reason));
    }
    // A target that ends within the window has its answer all the same.
    let end = async {
        tokio::select! {
            () = sleep(once.window) => {}
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
