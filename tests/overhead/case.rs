//! A load under several variants, visited in turn.

use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;

use crate::attach::{Kernel, Variant};
use crate::cgroups::Place;
use crate::interrupt::Interrupt;
use crate::load::Load;
use crate::outcome::Outcome;

/// What the kernel is given to clear away the programs and maps of the visit before.
const SETTLE: Duration = Duration::from_millis(30);

/// Runs of the load in a visit. The fastest counts: what disturbs a run makes it slower, never faster.
const RUNS: usize = 3;

/// A load, and what it is measured under.
pub struct Case<'a> {
    load: &'a Load,
    place: &'a Place,
    variants: &'a [Variant],
    /// Nanoseconds a unit, by variant, then by round.
    times: Vec<Vec<f64>>,
}

impl<'a> Case<'a> {
    /// Nothing is measured yet. The first variant is [`Variant::None`].
    pub fn new(load: &'a Load, place: &'a Place, variants: &'a [Variant]) -> Self {
        Self {
            load,
            place,
            variants,
            times: vec![Vec::new(); variants.len()],
        }
    }

    /// Visits every variant once.
    fn round(&mut self, round: usize, kernel: &Kernel, interrupt: &Interrupt) -> Result<()> {
        for variant in order(self.variants.len(), round) {
            let _attached = kernel.attach(self.variants[variant], self.place)?;
            sleep(SETTLE);
            let mut fastest = f64::INFINITY;
            for _ in 0..RUNS {
                fastest = fastest.min(self.load.run(self.place, interrupt)?.ns);
            }
            self.times[variant].push(fastest);
        }
        Ok(())
    }

    /// What was measured.
    pub fn outcome(&self) -> Outcome {
        let load = self.load;
        Outcome::new(load.letter, &load.title, load.unit, self.variants, &self.times)
    }
}

/// Goes through all cases, again and again.
pub fn alternate(cases: &mut [Case], rounds: u32, kernel: &Kernel, interrupt: &Interrupt) -> Result<()> {
    for round in 0..rounds as usize {
        eprintln!("round {} of {rounds}", round + 1);
        for case in &mut *cases {
            case.round(round, kernel, interrupt)?;
        }
    }
    Ok(())
}

/// The order in which a round visits `count` variants: each is at times first, and at times after either neighbour.
fn order(count: usize, round: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.rotate_left(round / 2 % count);
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_visits_all_in_another_order() {
        let orders: Vec<_> = (0..8).map(|round| order(4, round)).collect();
        for (index, visited) in orders.iter().enumerate() {
            let mut sorted = visited.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3]);
            assert!(!orders[..index].contains(visited));
        }
    }
}
