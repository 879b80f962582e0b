//! A look at all jobs, once a second.

use std::time::{Duration, Instant};

use super::{Job, Jobs, ROOM, files::Place, metrics, turns::Turn};
use crate::{
    error::Error,
    kernel::ladder::Rung,
    probe::{Seen, SlotId},
    snapshot::Kind,
    verb::{
        agent::{note, state::States},
        reading::own_cpu_ns,
    },
};

/// In so many looks, the directory of each job is looked at once.
const SEEN_EVERY: u64 = 30;

impl Jobs {
    /// Looks at all jobs, and ends those that have ended.
    pub fn look(&mut self) -> Result<(), Error> {
        self.looks += 1;
        self.need_pins()?;
        self.find_records();
        self.hearing.grow(Instant::now());
        // Those that had to wait, too: the kernel wakes no one again before all are taken.
        self.hear()?;
        let have_changed = self.nests.see_asked(&self.hierarchies);
        if have_changed || self.looks.is_multiple_of(self.nests.looked_at_every()) {
            self.find_nests()?;
        }
        self.nests.are_watched();
        if std::mem::take(&mut self.has_new_nests) {
            self.take_existing()?;
        }
        self.probe().look()?;
        self.calibrator.begin(&self.probe.borrow());
        if self.probe().rung() != Rung::Tracepoint {
            self.probe.borrow_mut().hears()?;
        }
        self.probe().begin_round()?;
        let ended = self.look_at_each();
        self.probe().end_round();
        if !ended.is_empty() {
            // What it told last.
            self.hear()?;
        }
        for slot in ended {
            self.end(slot)?;
        }
        self.write_summaries();
        self.take_missed()
    }

    /// Fails where the pins are gone, and with them what counts; makes those again that alone are.
    fn need_pins(&mut self) -> Result<(), Error> {
        let looked = match self.home.look() {
            Ok(Seen::Gone) => return Err(self.home.pins_are_gone()),
            Ok(Seen::MadeAgain(pins)) => {
                note(&format!(
                    "pins were removed, and are made again: {}",
                    pins.join(", ")
                ));
                Ok(())
            }
            Ok(Seen::Whole) => Ok(()),
            Err(error) => Err(error),
        };
        if let Some(error) = self.pins.new_one(looked) {
            note(&format!(
                "the pins are not whole: {error}; counting goes on, and the next agent begins anew"
            ));
        }
        Ok(())
    }

    /// Has what is born in nests that have come since counted.
    pub(super) fn find_nests(&mut self) -> Result<(), Error> {
        for (id, watch) in self.nests.new_ones(&self.hierarchies)? {
            let mut probe = self.probe.borrow_mut();
            // What the programs entered themselves, they have watched since its birth.
            if !probe.is_watched(id) {
                probe.watch(id, watch)?;
                self.has_new_nests = true;
            }
        }
        Ok(())
    }

    /// Looks at each job, and adds lines to the records; returns the slots of those that have ended.
    fn look_at_each(&mut self) -> Vec<SlotId> {
        let now = Instant::now();
        let mut ended = Vec::new();
        let mut wanted = Vec::new();
        for (slot, job) in &mut self.by_slot {
            // Its slot tells; its directory is looked at in case that was missed.
            let is_to_be_seen = (self.looks + u64::from(slot.number())).is_multiple_of(SEEN_EVERY);
            let has_ended = if is_to_be_seen {
                job.meter.is_removed()
            } else {
                Ok(job.meter.is_told_removed())
            };
            if matches!(has_ended, Ok(true)) {
                ended.push(*slot);
            } else if (job.has_news || job.pace.is_due(now)) && !job.pace.rests(now) {
                wanted.push(Turn {
                    last: job.pace.last(),
                    has_news: job.has_news,
                    slot: *slot,
                });
            } else {
                let looked = job.look(false, &self.records, &self.states);
                job.read(looked);
            }
        }
        self.turns.look(now, &mut wanted);
        for turn in wanted {
            let Some(job) = self.by_slot.get_mut(&turn.slot) else {
                continue;
            };
            let has_line = self.turns.has(turn);
            let begin_ns = own_cpu_ns();
            let looked = job.look(has_line, &self.records, &self.states);
            job.read(looked);
            if has_line {
                let spent = spent_since(begin_ns);
                self.turns.took(turn, spent);
                job.pace.took(now, spent);
            }
        }
        ended
    }

    /// Jobs whose birth was not told: the notice found no room.
    fn take_missed(&mut self) -> Result<(), Error> {
        let losses = self.probe().losses()?;
        if losses.without_target > self.without_slot {
            note(&format!(
                "{} jobs are not measured: more than {} at one time",
                losses.without_target, ROOM.targets
            ));
        }
        self.without_slot = losses.without_target;
        let mut missed: Vec<SlotId> = self.probe().used_targets().map(|(slot, _)| slot).collect();
        missed.retain(|slot| !self.by_slot.contains_key(slot));
        let mut begun = Ok(());
        for slot in missed {
            let top = self.probe().top(slot)?;
            begun = begun.and(self.born(&top));
        }
        if let Some(error) = self.beginning.new_one(begun) {
            note(&format!(
                "a job cannot be measured: {error}; it is tried again with each look, and counting goes on"
            ));
        }
        Ok(())
    }
}

/// CPU time of this process since it was `begin_ns`: where jobs take all CPUs, waiting is no cost.
pub(super) fn spent_since(begin_ns: u64) -> Duration {
    Duration::from_nanos(own_cpu_ns().saturating_sub(begin_ns))
}

impl Job {
    /// Looks at it.
    fn look(&mut self, has_line: bool, records: &Place, states: &States) -> Result<(), Error> {
        if has_line || !self.followers.is_empty() {
            self.meter.look()?;
        } else {
            self.meter.glance()?;
        }
        metrics::take(self);
        if !self.followers.is_empty() {
            let snapshot = self.meter.snapshot(Kind::Progress, None);
            self.tell_followers(&snapshot);
        }
        if has_line {
            self.write(records, states);
        }
        Ok(())
    }
}
