//! Which cgroup belongs to which slot.

use std::os::fd::AsFd;

use anyhow::Context;
use aya::maps::{MapError, PerCpuValues};
use serde::{Deserialize, Serialize};
use swbpf_common::{
    level::{self, BANDS, BIAS, Band, Levels},
    running::{self, COUNTS, Concurrency},
    slot::{CELLS, KERNEL, NAME_LEN, PARTS, Peak, SHMEM, Slot, Timeline, Watched},
};

use super::{Probe, syscall};
use crate::error::Error;

/// Number of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SlotId(pub(super) u32);

impl SlotId {
    /// Its number.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// What the files say of a cgroup before it is tracked, in pages. All 0 for a cgroup just made.
#[derive(Debug, Clone, Copy, Default)]
pub struct Start {
    /// Anonymous memory.
    pub anon: u64,
    /// The parts, by their index in [`swbpf_common::slot`].
    pub parts: [u64; PARTS],
}

/// Which cgroups below a watched one are targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watch {
    /// How many levels below it they are born; 1: its children.
    pub levels: u32,
    /// In how many levels below a target cgroups get slots of their own.
    pub follow: u32,
    /// Only those below a child whose name begins with `slurm`.
    pub slurm_alone: bool,
}

impl Probe {
    /// Tracks a cgroup with all below it, from now on. What it holds already is entered as `start`; how far that is off
    /// is for the fold to find out. Cgroups born in the next `follow` levels below it get slots of their own.
    pub fn track(&mut self, cgroup_id: u64, start: Start, follow: u32) -> Result<SlotId, Error> {
        let number = match self.maps.free_targets.pop(0) {
            Ok(number) => number,
            Err(MapError::ElementNotFound) => {
                return Err(Error::TableFull {
                    capacity: self.room.targets,
                });
            }
            Err(error) => {
                return Err(anyhow::Error::from(error)
                    .context("take a free slot of a target")
                    .into());
            }
        };
        let state = Slot {
            cgroup_id,
            follow: u64::from(follow),
            ..self.first_state(start)?
        };
        self.enter(number, &state)?;
        self.maps
            .tracked
            .insert(cgroup_id, number, 0)
            .context("enter a cgroup into the table")?;
        self.look()?;
        Ok(SlotId(number))
    }

    /// Has the kernel give each cgroup that is born as `watch` says below this one a slot of a target, before its first process
    /// is in it.
    pub fn watch(&mut self, cgroup_id: u64, watch: Watch) -> Result<(), Error> {
        let watched = Watched {
            levels: watch.levels,
            follow: watch.follow,
            slurm_alone: u64::from(watch.slurm_alone),
        };
        self.maps
            .watched
            .insert(cgroup_id, watched, 0)
            .context("enter a cgroup to be watched")?;
        Ok(())
    }

    /// Whether what is born below a cgroup gets slots.
    pub fn is_watched(&self, cgroup_id: u64) -> bool {
        self.maps.watched.get(&cgroup_id, 0).is_ok()
    }

    /// Whether a cgroup has this very slot.
    pub fn is_tracked(&self, cgroup_id: u64, slot: SlotId) -> bool {
        self.maps
            .tracked
            .get(&cgroup_id, 0)
            .is_ok_and(|number| number == slot.0)
    }

    /// Forgets it and all below it; its slot is free for another one.
    pub fn untrack(&mut self, cgroup_id: u64, slot: SlotId) -> Result<(), Error> {
        // Nothing more is born below it.
        self.maps
            .tracked
            .remove(&cgroup_id)
            .context("take a cgroup out of the table")?;
        self.look()?;
        let below = self.read_all(self.slots_below_now(slot).into_iter())?;
        self.release(&below)?;
        // The next cgroup may be born with it.
        self.clear(slot.0).context("clear a slot")?;
        self.maps
            .free_targets
            .push(slot.0, 0)
            .context("give back a free slot of a target")?;
        Ok(())
    }

    /// Has each CPU look at what it runs now: all time until now is charged, and an older assignment is forgotten.
    pub fn look(&self) -> Result<(), Error> {
        for cpu in &self.cpus {
            match syscall::run_program(self.look.as_fd(), Some(*cpu)) {
                // The CPU went off since it was listed: it runs nothing.
                Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {}
                result => result.with_context(|| format!("look at CPU {cpu}"))?,
            }
        }
        let clocks = self.maps.clocks.get(&0, 0).context("read the kernel's clocks")?;
        self.ticks.learn(clocks);
        self.looked_ns.set(monotonic_ns());
        Ok(())
    }

    /// When each CPU had last been looked at: monotonic clock.
    pub fn looked_ns(&self) -> u64 {
        self.looked_ns.get()
    }

    /// A slot that begins now at the level that the files tell.
    pub(super) fn first_state(&self, start: Start) -> Result<Slot, Error> {
        self.look()?;
        let tick = self
            .maps
            .clocks
            .get(&0, 0)
            .context("read the kernel's clocks")?
            .tick;
        Ok(first_state(start, tick, self.bucket_shift))
    }

    /// Puts a state into a slot that no cgroup belongs to.
    pub(super) fn enter(&mut self, number: u32, state: &Slot) -> Result<(), Error> {
        self.clear_cpus(number).context("clear the times of a slot")?;
        let set = self.maps.slots.array.set(number, *state, 0);
        set.context("enter a slot")?;
        Ok(())
    }

    /// Clears a slot that no cgroup belongs to any more, before it is given back.
    pub(super) fn clear(&mut self, number: u32) -> anyhow::Result<()> {
        self.clear_cpus(number)?;
        if number < self.room.targets {
            self.clear_target(number)?;
        }
        let free = first_state(Start::default(), 0, self.bucket_shift);
        self.maps.slots.array.set(number, free, 0)?;
        Ok(())
    }

    /// Clears what each CPU keeps of a slot.
    fn clear_cpus(&mut self, number: u32) -> anyhow::Result<()> {
        let zeros = || PerCpuValues::try_from(vec![0; aya::util::nr_cpus().map_err(|(_, error)| error)?]);
        self.maps.busy.set(number, zeros()?, 0)?;
        self.maps.pending.set(number, zeros()?, 0)?;
        Ok(())
    }

    fn clear_target(&mut self, number: u32) -> anyhow::Result<()> {
        self.maps.timelines.array.set(
            number,
            Timeline {
                high: [0; CELLS],
                low: [0; CELLS],
            },
            0,
        )?;
        self.maps.levels.set(number, Levels { ns: [0; BANDS] }, 0)?;
        self.maps
            .concurrency
            .set(number, Concurrency { ns: [0; COUNTS] }, 0)?;
        Ok(())
    }
}

fn first_state(start: Start, tick: u64, bucket_shift: u32) -> Slot {
    let now_ns = monotonic_ns();
    let pages = start.anon + start.parts[SHMEM] + start.parts[KERNEL];
    let level = BIAS + pages;
    let word = level::pack(level::bucket(tick, bucket_shift), level);
    let parts = start.parts.map(|pages| pages as i64);
    let peak = Peak {
        reached_tick: tick,
        parts,
    };
    Slot {
        now: level,
        high: word,
        low: word,
        band: Band::of(pages).since(now_ns),
        rise_tick: tick,
        tell_above: level + pages / 128 + 256,
        running: running::pack(0, now_ns),
        parent: 0,
        parts,
        max: 0,
        high_peak: peak,
        max_peak: peak,
        started: 0,
        threads_started: 0,
        ended: 0,
        moved_in: 0,
        oom_kills: 0,
        follow: 0,
        cgroup_id: 0,
        born_ns: 0,
        gone_ns: 0,
        emptied_ns: 0,
        name: [0; NAME_LEN],
        above_id: 0,
        spare: 0,
    }
}

/// The clock of the kernel programs.
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
