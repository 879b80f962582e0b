//! The maps of the kernel programs, as the reader holds them.

use anyhow::{Context, anyhow};
use aya::{
    Ebpf,
    maps::{Array, HashMap, Map, MapData, PerCpuArray, Queue, RingBuf},
};
use swbpf_common::{
    health::{Clocks, Health},
    level::Levels,
    running::Concurrency,
    slot::{Slot, Timeline, Watched},
};

use super::{Room, view::Viewed};
use crate::error::Error;

/// One handle for each map that outlives the loading.
pub struct Maps {
    pub tracked: HashMap<MapData, u64, u32>,
    pub watched: HashMap<MapData, u64, Watched>,
    pub slots: Viewed<Slot>,
    pub free_targets: Queue<MapData, u32>,
    pub free_below: Queue<MapData, u32>,
    pub timelines: Viewed<Timeline>,
    pub levels: Array<MapData, Levels>,
    pub concurrency: Array<MapData, Concurrency>,
    pub busy: PerCpuArray<MapData, u64>,
    pub pending: PerCpuArray<MapData, u64>,
    pub health: PerCpuArray<MapData, Health>,
    pub flushed: Array<MapData, u64>,
    pub clocks: Array<MapData, Clocks>,
    pub notices: RingBuf<MapData>,
}

impl Maps {
    /// Opens each by its name.
    pub fn open(mut map: impl FnMut(&str) -> Result<Map, Error>) -> Result<Self, Error> {
        macro_rules! open {
            ($kind:ident, $name:literal) => {
                $kind::try_from(map($name)?).context(concat!("map ", $name))?
            };
        }
        Ok(Self {
            tracked: open!(HashMap, "TRACKED"),
            watched: open!(HashMap, "WATCHED"),
            slots: Viewed::open(map("SLOTS")?, "SLOTS")?,
            free_targets: open!(Queue, "FREE_TARGETS"),
            free_below: open!(Queue, "FREE"),
            timelines: Viewed::open(map("TIMELINES")?, "TIMELINES")?,
            levels: open!(Array, "LEVELS"),
            concurrency: open!(Array, "CONCURRENCY"),
            busy: open!(PerCpuArray, "BUSY"),
            pending: open!(PerCpuArray, "PENDING"),
            health: open!(PerCpuArray, "HEALTH"),
            flushed: open!(Array, "FLUSHED"),
            clocks: open!(Array, "CLOCKS"),
            notices: open!(RingBuf, "NOTICES"),
        })
    }

    /// Gives all slots out to be taken.
    pub fn enter_free(&mut self, room: Room) -> Result<(), Error> {
        for number in 0..room.targets {
            self.free_targets
                .push(number, 0)
                .context("enter a free slot of a target")?;
        }
        for number in room.targets..room.all() {
            self.free_below.push(number, 0).context("enter a free slot")?;
        }
        Ok(())
    }
}

/// A map of the object, taken out of it.
pub fn taken(ebpf: &mut Ebpf, name: &str) -> Result<Map, Error> {
    Ok(ebpf
        .take_map(name)
        .ok_or_else(|| anyhow!("the object has no map {name}: rebuild it"))?)
}
