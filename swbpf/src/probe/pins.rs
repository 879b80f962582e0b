//! Programs and maps that outlive this process: pinned in a BPF file system, they go on counting while nobody reads.
//!
//! All pins of one loading are in a directory of their own. A file outside of it names it and tells what was loaded. It is
//! written last, so a directory that it does not name is what a reader left that was killed meanwhile.

use std::{
    collections::BTreeSet,
    fs,
    io::{ErrorKind, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    thread::sleep,
    time::Duration,
};

use anyhow::{Context, anyhow};
use aya::{
    maps::{Map, MapData, MapError, Queue},
    programs::ProgramInfo,
};
use serde::{Deserialize, Serialize};
use swbpf_common::ABI;

use super::{
    Home, Probe, Room, SlotId,
    climb::{Attached, Climbed, program},
    load::Parts,
    maps::Maps,
    monotonic_ns,
};
use crate::{error::Error, job::kernfile, kernel::support::Plan};

/// Far longer than a program takes from the queue of free slots to the table of tracked cgroups.
const BIRTH: Duration = Duration::from_millis(20);
/// Longest description of what was loaded.
const MAX_LOADED: u64 = 1 << 20;

/// Where the pins and their description are.
#[derive(Debug, Clone)]
pub struct Pins {
    /// A directory of a BPF file system; it is made where it is not there.
    pub dir: PathBuf,
    /// The file that names the pins, on a file system that is new with each start of the host, as the pins are.
    pub loaded: PathBuf,
}

/// What was loaded.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
struct Loaded {
    /// [`ABI`] of the maps.
    abi: u64,
    room: Room,
    /// By what jobs are told apart: `Offsets::css_set_css`.
    hierarchy: u32,
    /// Name of the directory of the pins.
    pins: String,
    climbed: Climbed,
}

/// Programs that are pinned, and where they come from.
pub struct Pinned {
    /// The programs.
    pub probe: Probe,
    /// Their directory, which is held.
    pub home: Home,
    /// Why they are new, where there were others before; `None` where they were taken over, or are the first.
    pub why_anew: Option<String>,
    /// Whether they were taken over from a reader before this one: then they hold what it had tracked.
    pub is_taken_over: bool,
}

impl Probe {
    /// Takes over what is pinned, else loads and pins it. What is pinned and cannot be taken over is removed.
    pub fn pinned(pins: &Pins, plan: &Plan, room: Room, own_cgroup: Option<&Path>) -> Result<Pinned, Error> {
        let mut home = Home::take(&pins.dir)?;
        let loaded = read(pins);
        let why_anew = match loaded {
            Ok(None) => None,
            Ok(Some(loaded)) => match take_over(pins, &mut home, plan, room, own_cgroup, loaded) {
                Ok(probe) => {
                    return Ok(Pinned {
                        probe,
                        home,
                        why_anew: None,
                        is_taken_over: true,
                    });
                }
                Err(error) => Some(format!("{error:#}")),
            },
            Err(error) => Some(format!("{error:#}")),
        };
        home.remove_all_but(None)?;
        Ok(Pinned {
            probe: load(pins, &mut home, plan, room, own_cgroup)?,
            home,
            why_anew,
            is_taken_over: false,
        })
    }
}

/// The description, where there is one.
fn read(pins: &Pins) -> anyhow::Result<Option<Loaded>> {
    let text = match kernfile::read_up_to(&pins.loaded, MAX_LOADED) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("read {}", pins.loaded.display())),
    };
    // Names of programs and hooks live as long as this process, as those of the tables do.
    let text: &'static [u8] = text.leak();
    serde_json::from_slice(text)
        .map(Some)
        .with_context(|| format!("{} is no description of programs", pins.loaded.display()))
}

fn take_over(
    pins: &Pins,
    home: &mut Home,
    plan: &Plan,
    room: Room,
    own_cgroup: Option<&Path>,
    loaded: Loaded,
) -> anyhow::Result<Probe> {
    if loaded.abi != ABI {
        return Err(anyhow!(
            "the programs before were of another version (layout {}, now {ABI})",
            loaded.abi
        ));
    }
    if (loaded.room, loaded.hierarchy) != (room, plan.offsets.css_set_css) {
        return Err(anyhow!(
            "the programs before were for another hierarchy or number of jobs"
        ));
    }
    let dir = pins.dir.join(&loaded.pins);
    if !dir.exists() {
        return Err(anyhow!(
            "the programs before are not in {}: they were removed, or another --pin-dir was given",
            pins.dir.display()
        ));
    }
    let map = |name: &str| {
        let path = dir.join(format!("map_{name}"));
        let map = MapData::from_pin(&path).and_then(Map::from_map_data);
        Ok(map.with_context(|| format!("open {}", path.display()))?)
    };
    let program = |name: &str| {
        let path = dir.join(format!("prog_{name}"));
        let info = ProgramInfo::from_pin(&path).and_then(|info| info.fd());
        info.with_context(|| format!("open {}", path.display()))
    };
    let planned = loaded
        .climbed
        .programs
        .iter()
        .filter(|planned| planned.absent.is_none());
    let attached: anyhow::Result<Vec<Attached>> = planned
        .map(|planned| {
            // Without it, the program is there and not on its hook.
            let link = dir.join(format!("link_{}", planned.name));
            fs::symlink_metadata(&link).with_context(|| format!("look at {}", link.display()))?;
            Ok(Attached {
                program: planned.clone(),
                fd: program(planned.name)?,
                link: None,
            })
        })
        .collect();
    let parts = Parts {
        attached: attached?,
        look: program("look")?,
        maps: Maps::open(map)?,
        climbed: loaded.climbed,
        own_cgroup_id: own_cgroup.map_or(0, |own| fs::metadata(own).map_or(0, |own| own.ino())),
    };
    home.remove_all_but(Some(&loaded.pins))?;
    home.uses(&loaded.pins)?;
    let mut probe = Probe::of(plan, room, parts)?;
    probe.find_lost()?;
    Ok(probe)
}

fn load(
    pins: &Pins,
    home: &mut Home,
    plan: &Plan,
    room: Room,
    own_cgroup: Option<&Path>,
) -> Result<Probe, Error> {
    let name = format!("{}-{}", std::process::id(), monotonic_ns());
    let dir = pins.dir.join(&name);
    fs::create_dir(&dir).with_context(|| format!("make {}", dir.display()))?;
    let pin_map = |name: &str, map: &Map| {
        let pinned = map.pin(dir.join(format!("map_{name}")));
        Ok(pinned.with_context(|| format!("pin map {name} in {}", dir.display()))?)
    };
    let (mut probe, mut ebpf) = Probe::load_with_object(plan, room, own_cgroup, pin_map)?;
    let mut pin_program = |name: &str| {
        let pinned = program(&mut ebpf, name)?.pin(dir.join(format!("prog_{name}")));
        pinned.with_context(|| format!("pin program {name} in {}", dir.display()))
    };
    pin_program("look")?;
    for attached in &mut probe.attached {
        let name = attached.program.name;
        pin_program(name)?;
        if let Some(link) = attached.link.take() {
            let link = link
                .into_fd()
                .with_context(|| format!("pin the link of {name}"))?;
            link.pin(dir.join(format!("link_{name}")))
                .with_context(|| format!("pin the link of {name} in {}", dir.display()))?;
        }
    }
    let loaded = Loaded {
        abi: ABI,
        room,
        hierarchy: plan.offsets.css_set_css,
        pins: name,
        climbed: probe.climbed.clone(),
    };
    write(&pins.loaded, &loaded).with_context(|| format!("write {}", pins.loaded.display()))?;
    home.uses(&loaded.pins)?;
    Ok(probe)
}

/// Puts the description in its place, whole or not at all.
fn write(path: &Path, loaded: &Loaded) -> anyhow::Result<()> {
    let text = serde_json::to_vec(loaded)?;
    let new = path.with_extension("new");
    let mut file = fs::File::create(&new)?;
    file.write_all(&text)?;
    fs::rename(&new, path)?;
    Ok(())
}

impl Probe {
    /// Gives slots back that belong to no cgroup and are not free: a reader was killed while it gave them back.
    fn find_lost(&mut self) -> Result<(), Error> {
        let suspects = self.neither_free_nor_used()?;
        if suspects.is_empty() {
            return Ok(());
        }
        // One that was just being entered for a cgroup in its birth is in use by then.
        sleep(BIRTH);
        for number in self.neither_free_nor_used()?.intersection(&suspects) {
            self.clear(*number).context("clear a lost slot")?;
            let free = if *number < self.room.targets {
                &mut self.maps.free_targets
            } else {
                &mut self.maps.free_below
            };
            free.push(*number, 0).context("give back a lost slot")?;
        }
        // Its target was given back first.
        let targets: BTreeSet<SlotId> = self.used_targets().map(|(slot, _)| slot).collect();
        let is_orphan = |slot: &SlotId| self.top_of(*slot).is_none_or(|top| !targets.contains(&top));
        let orphans = self.read_all(self.used_below().filter(is_orphan))?;
        self.release(&orphans)
    }

    fn neither_free_nor_used(&mut self) -> Result<BTreeSet<u32>, Error> {
        let mut known: BTreeSet<u32> = BTreeSet::new();
        turn(&mut self.maps.free_targets, self.room.targets, &mut known)?;
        turn(&mut self.maps.free_below, self.room.below, &mut known)?;
        known.extend(self.tracked_slots()?);
        Ok((0..self.room.all())
            .filter(|number| !known.contains(number))
            .collect())
    }
}

/// Takes each out and puts it in again, so that what is born meanwhile finds one.
fn turn(free: &mut Queue<MapData, u32>, capacity: u32, seen: &mut BTreeSet<u32>) -> Result<(), Error> {
    for _ in 0..capacity {
        match free.pop(0) {
            Ok(number) => {
                free.push(number, 0).context("put back a free slot")?;
                if !seen.insert(number) {
                    break;
                }
            }
            Err(MapError::ElementNotFound) => break,
            Err(error) => return Err(anyhow::Error::from(error).context("take a free slot").into()),
        }
    }
    Ok(())
}
