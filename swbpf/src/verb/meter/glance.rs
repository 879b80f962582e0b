//! A look at what the programs hold of the target alone.

use swbpf_common::running;

use super::Meter;
use crate::{error::Error, fold::Glance, probe::SlotReading};

impl Meter {
    /// Takes it, after the CPUs were looked at. Of a target that nothing has happened in, nothing is read but its slot.
    pub fn glance(&mut self) -> Result<(), Error> {
        let Some(counting) = &self.counting else {
            return Ok(());
        };
        let probe = counting.probe.borrow();
        let losses = probe.losses_of_round()?;
        let state = probe.whole_state(counting.slot)?;
        let last = self.fold.last();
        let unchanged = match (&state, &self.seen, &last.kernel) {
            (Some(state), Some(seen), Some(kernel))
                if state == seen && running::count_of(state.running) == 0 =>
            {
                Some(kernel)
            }
            _ => None,
        };
        let glance = match unchanged {
            Some(kernel) => Glance {
                slot: SlotReading {
                    read_ns: probe.looked_ns(),
                    ..kernel.slot.clone()
                },
                timeline: Vec::new(),
                losses,
            },
            None => Glance {
                timeline: probe.timeline_since(counting.slot, last.ns)?,
                slot: probe.read_after_look(counting.slot)?,
                losses,
            },
        };
        self.seen = state;
        self.fold.glance(glance);
        Ok(())
    }
}
