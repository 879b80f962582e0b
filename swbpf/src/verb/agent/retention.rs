//! Old records are removed: at the start, and each hour.

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};

use tokio::{
    task::{JoinHandle, spawn_blocking},
    time::{Interval, MissedTickBehavior, interval},
};

use super::note;
use crate::{
    cli,
    out::units::bytes,
    record::{Dir, Inode, Keep, Pruned},
};

/// Time between two rounds.
const ROUND: Duration = Duration::from_hours(1);

/// How long and how much is kept, and the round that is under way.
pub struct Retention {
    keep: Keep,
    rounds: Interval,
    round: Option<JoinHandle<()>>,
}

impl Retention {
    /// As it was asked for.
    pub fn of(asked: &cli::Agent) -> Self {
        let mut rounds = interval(ROUND);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Skip);
        Self {
            keep: Keep {
                age: Duration::from_hours(24) * asked.keep_days,
                bytes: asked.keep_size,
            },
            rounds,
            round: None,
        }
    }

    /// Waits until a round is due.
    pub async fn due(&mut self) {
        self.rounds.tick().await;
    }

    /// Begins a round, beside the agent: a directory of very many files, or a slow disk, takes its time. `writing` are the files
    /// that have to stay.
    pub fn begin(&mut self, dir: Option<Dir>, writing: BTreeSet<Inode>) {
        let is_busy = self.round.as_ref().is_some_and(|round| !round.is_finished());
        let Some(dir) = dir.filter(|_| !is_busy) else {
            return;
        };
        let keep = self.keep;
        self.round = Some(spawn_blocking(move || {
            match dir.prune(keep, &writing, SystemTime::now()) {
                Ok(pruned) => tell(&pruned, keep),
                Err(error) => note(&format!("old records are not removed: {error}")),
            }
        }));
    }
}

fn tell(pruned: &Pruned, keep: Keep) {
    if pruned.removed > 0 {
        note(&format!(
            "{} old records are removed, {}",
            pruned.removed,
            bytes(pruned.removed_bytes)
        ));
    }
    if let Some(error) = &pruned.failure {
        note(&format!("some old records are not removed: {error}"));
    }
    if pruned.left_bytes > keep.bytes {
        note(&format!(
            "the records that are left take {}, more than --keep-size {}",
            bytes(pruned.left_bytes),
            bytes(keep.bytes)
        ));
    }
}
