//! Listen: the programs in the kernel and what they hold.

mod below;
mod climb;
mod drain;
mod load;
mod notice;
mod syscall;
mod ticks;
mod track;

pub use below::Below;
pub use drain::{BucketReading, Ended, Histograms, Losses, PeakReading, Peek, SlotReading};
pub use load::{Floor, Probe, Room};
pub use notice::{LimitHit, Notice, What};
pub use syscall::ProgramStats;
pub use track::{SlotId, Start, monotonic_ns};
