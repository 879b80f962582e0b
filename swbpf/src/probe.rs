//! Listen: the programs in the kernel and what they hold.

mod below;
mod census;
mod climb;
mod drain;
mod home;
mod left;
mod load;
mod losses;
mod maps;
mod notice;
mod pins;
mod syscall;
mod ticks;
mod track;
mod trial;
mod view;

pub use below::{Below, Top};
pub use drain::{BucketReading, Ended, Histograms, PeakReading, Peek, SlotReading};
pub use home::{Home, Seen};
pub use left::left_beside;
pub use load::{Floor, Probe, Room};
pub use losses::Losses;
pub use notice::{LimitHit, Notice, What};
pub use pins::{Pinned, Pins};
pub use syscall::ProgramStats;
pub use track::{SlotId, Start, Watch, monotonic_ns};
