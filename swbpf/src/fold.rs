//! Mean: readings become rates, peaks and bounds; together, a [`Snapshot`](crate::snapshot::Snapshot).

mod base;
mod below;
mod clock;
mod cpu;
mod fresh;
mod glance;
mod kills;
mod levels;
mod looks;
mod memory;
mod overhead;
mod peak;
mod reading;
mod reasons;
mod series;
mod slurm;
mod steps;
mod times;
mod told;
mod whole;

pub use base::Evidence;
pub use below::{BelowReading, Rows, Values};
pub use clock::Clock;
pub use glance::Glance;
pub use kills::{Kill, is_hit};
pub use memory::compare;
pub use overhead::Calibration;
pub use reading::{KernelReading, Reading, Scan};
pub use slurm::SlurmJob;
pub use whole::{Fold, Subject};

/// For each number that is not known, by its dotted key, the reason.
type Unknown = std::collections::BTreeMap<String, String>;
