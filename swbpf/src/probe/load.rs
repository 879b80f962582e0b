//! Loads the programs by the plan, attaches them, and checks that they see what the reader sees.

use std::{
    cell::{Cell, RefCell},
    fs,
    os::{fd::AsFd, unix::fs::MetadataExt},
    path::Path,
};

use anyhow::{Context, anyhow};
use aya::{
    Btf, Ebpf, EbpfLoader, Endianness,
    maps::{Array, Map, MapData},
    programs::{Program, ProgramFd},
};
use serde::{Deserialize, Serialize};
use swbpf_common::{health::Check, offsets::Offsets};

use super::climb::{Attached, Climbed, attach, climb, program, program_fd};
use super::{
    census::Round,
    maps::{Maps, taken},
    syscall::{self, ProgramStats},
    ticks::Ticks,
};
use crate::{
    error::Error,
    kernel::{
        ladder::{Counts, Hook, PlannedProgram, Rung},
        support::Plan,
    },
};

/// The compiled programs, as `cargo xtask build-ebpf` left them.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../../bpf/swbpf.bpf.o");

/// The initial pid namespace: its number is fixed in the kernel (`PROC_PID_INIT_INO`).
const HOST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Maps with one element for each slot.
const BY_SLOT: [&str; 4] = ["TRACKED", "SLOTS", "BUSY", "PENDING"];
/// Maps with one element for each slot of a target.
const BY_TARGET: [&str; 4] = ["FREE_TARGETS", "TIMELINES", "LEVELS", "CONCURRENCY"];

/// How many slots there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Room {
    /// For targets.
    pub targets: u32,
    /// For cgroups below them that are told on their own.
    pub below: u32,
}

impl Room {
    /// For so many targets, and nothing below them on its own.
    pub fn targets(targets: u32) -> Self {
        Self { targets, below: 0 }
    }

    pub(super) fn all(self) -> u32 {
        self.targets + self.below
    }
}

/// Programs and maps in the kernel. Dropped: detached and gone, unless they are pinned.
pub struct Probe {
    pub(super) climbed: Climbed,
    pub(super) attached: Vec<Attached>,
    /// Whether a function can be entered anew on a CPU where a program on it has not ended.
    pub(super) is_preemptible: bool,
    pub(super) look: ProgramFd,
    pub(super) maps: Maps,
    pub(super) ticks: Ticks,
    pub(super) bucket_shift: u32,
    pub(super) room: Room,
    pub(super) cpus: Vec<u32>,
    /// That of this process, by which it tries whether the programs hear.
    pub(super) own_cgroup_id: u64,
    /// Whether they did not, once.
    pub(super) is_deaf: Cell<bool>,
    /// Whether CPUs keep changes to themselves for a time.
    pub(super) is_batching: bool,
    /// When the CPUs were last looked at.
    pub(super) looked_ns: Cell<u64>,
    /// Targets at the begin of the last round.
    pub(super) targets: Cell<u64>,
    /// What is looked at once for all targets, while that is under way.
    pub(super) round: RefCell<Option<Round>>,
}

/// What of the kernel a [`Probe`] holds.
pub(super) struct Parts {
    pub climbed: Climbed,
    pub attached: Vec<Attached>,
    pub look: ProgramFd,
    pub maps: Maps,
    pub own_cgroup_id: u64,
}

impl Probe {
    /// Loads and attaches what `plan` says, with this much `room`. `own_cgroup` is the directory of this
    /// process in the hierarchy by which the programs tell jobs apart, where it can be seen: the self-check compares its
    /// inode number.
    pub fn load(plan: &Plan, room: Room, own_cgroup: Option<&Path>) -> Result<Self, Error> {
        let (probe, _) = Self::load_with_object(plan, room, own_cgroup, |_, _| Ok(()))?;
        Ok(probe)
    }

    /// The same, with the object, which has the programs; `each_map` is called with each map that outlives the loading.
    pub(super) fn load_with_object(
        plan: &Plan,
        room: Room,
        own_cgroup: Option<&Path>,
        each_map: impl Fn(&str, &Map) -> Result<(), Error>,
    ) -> Result<(Self, Ebpf), Error> {
        let btf = Btf::parse(&plan.btf, Endianness::default()).context("read the kernel's BTF")?;
        let mut ebpf = open(plan, room, &btf)?;
        let check = program_fd(load_raw(&mut ebpf, "check")?)?;
        let own_cgroup_id = self_check(&mut ebpf, &check, own_cgroup)?;
        let look = program_fd(load_raw(&mut ebpf, "look")?)?;
        let mut maps = Maps::open(|name| {
            let map = taken(&mut ebpf, name)?;
            each_map(name, &map)?;
            Ok(map)
        })?;
        // Before the programs are attached: what is born from then on finds a slot.
        maps.enter_free(room)?;
        let nothing_attached = Parts {
            climbed: Climbed::default(),
            attached: Vec::new(),
            look,
            maps,
            own_cgroup_id,
        };
        let mut probe = Self::of(plan, room, nothing_attached)?;
        climb(&mut probe, &mut ebpf, plan, &btf)?;
        Ok((probe, ebpf))
    }

    pub(super) fn of(plan: &Plan, room: Room, parts: Parts) -> Result<Self, Error> {
        Ok(Self {
            climbed: parts.climbed,
            attached: parts.attached,
            is_preemptible: plan.is_preemptible,
            look: parts.look,
            maps: parts.maps,
            ticks: Ticks::new(plan.offsets.bucket_shift),
            bucket_shift: plan.offsets.bucket_shift,
            room,
            cpus: online_cpus()?,
            own_cgroup_id: parts.own_cgroup_id,
            is_deaf: Cell::new(false),
            is_batching: plan.offsets.batch_pages > 0,
            looked_ns: Cell::new(0),
            targets: Cell::new(0),
            round: RefCell::new(None),
        })
    }

    /// Whether changes of anonymous and shared memory can be among what is skipped.
    pub(super) fn lru_is_missable(&self) -> bool {
        match self.rung() {
            Rung::Tracepoint => false,
            Rung::Fentry => self.is_preemptible,
            Rung::Kprobe => true,
        }
    }

    /// What the kernel counts of each attached program.
    pub fn program_stats(&self) -> Result<Vec<(&PlannedProgram, ProgramStats)>, Error> {
        self.attached
            .iter()
            .map(|Attached { program, fd, .. }| {
                let stats = syscall::program_stats(fd.as_fd()).context("read the statistics of a program")?;
                Ok((program, stats))
            })
            .collect()
    }

    /// By which kind of hook changes of memory are heard.
    pub fn rung(&self) -> Rung {
        self.climbed.rung
    }

    /// Why not by a better one; `None` on the best.
    pub fn why_not_better(&self) -> Option<&str> {
        self.climbed.why_not_better.as_deref()
    }

    /// The programs, and what stands for those that could not be attached.
    pub fn programs(&self) -> &[PlannedProgram] {
        &self.climbed.programs
    }
}

/// Programs that do nothing, on the hooks of the hot paths: the floor of the overhead benchmark.
pub struct Floor {
    memory: Attached,
    /// Dropped, it is detached.
    _switch: Attached,
}

impl Floor {
    /// Loads and attaches them, where the programs of `plan` would be.
    pub fn load(plan: &Plan) -> Result<Self, Error> {
        let btf = Btf::parse(&plan.btf, Endianness::default()).context("read the kernel's BTF")?;
        let mut ebpf = open(plan, Room::targets(1), &btf)?;
        let first = plan.memory.ways.first().and_then(|way| way.first());
        let first = first.context("no hook for changes of memory")?;
        let memory = PlannedProgram {
            name: match first.hook.rung {
                Rung::Tracepoint => "floor_memory",
                Rung::Fentry => "floor_fentry",
                Rung::Kprobe => "floor_kprobe",
            },
            ..first.clone()
        };
        let switch = PlannedProgram {
            name: "floor_switch",
            hook: Hook {
                rung: Rung::Tracepoint,
                name: "sched_switch",
            },
            counts: Counts::Other,
            absent: None,
        };
        Ok(Self {
            memory: attach(&mut ebpf, &memory, &btf)?,
            _switch: attach(&mut ebpf, &switch, &btf)?,
        })
    }

    /// What the kernel counts of the one that changes of memory meet.
    pub fn memory_stats(&self) -> Result<ProgramStats, Error> {
        let stats = syscall::program_stats(self.memory.fd.as_fd());
        Ok(stats.context("read the statistics of a program")?)
    }
}

fn open(plan: &Plan, room: Room, btf: &Btf) -> Result<Ebpf, Error> {
    let offsets = Offsets {
        targets: room.targets,
        ..plan.offsets
    };
    let mut loader = EbpfLoader::new();
    loader.btf(Some(btf)).override_global("OFFSETS", &offsets, true);
    for name in BY_SLOT {
        loader.map_max_entries(name, room.all());
    }
    for name in BY_TARGET {
        loader.map_max_entries(name, room.targets);
    }
    // A queue of none is refused.
    loader.map_max_entries("FREE", room.below.max(1));
    Ok(loader.load(OBJECT).context("load the kernel programs")?)
}

fn load_raw<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a Program, Error> {
    let found = program(ebpf, name)?;
    let Program::RawTracePoint(raw) = &mut *found else {
        return Err(anyhow!("program {name} of the object has another type: rebuild it").into());
    };
    raw.load().with_context(|| format!("load program {name}"))?;
    Ok(found)
}

fn online_cpus() -> Result<Vec<u32>, Error> {
    Ok(aya::util::online_cpus()
        .map_err(|(path, error)| anyhow::Error::new(error).context(format!("read {path}")))?)
}

/// The programs must see this very task through the offsets before a number of theirs is told. Returns the id of its cgroup.
fn self_check(ebpf: &mut Ebpf, program: &ProgramFd, own_cgroup: Option<&Path>) -> Result<u64, Error> {
    syscall::run_program(program.as_fd(), None).context("run the self-check in the kernel")?;
    let seen: Array<MapData, Check> = Array::try_from(taken(ebpf, "CHECK")?).context("map CHECK")?;
    let seen = seen.get(&0, 0).context("read the self-check")?;
    let mut comm = [0; 16];
    let name = fs::read("/proc/thread-self/comm").context("read /proc/thread-self/comm")?;
    let name = name.strip_suffix(b"\n").unwrap_or(&name);
    comm[..name.len().min(15)].copy_from_slice(&name[..name.len().min(15)]);
    // The programs see the host's process ids. In another pid namespace this process is not told its own among them.
    let is_elsewhere =
        fs::read_link("/proc/self/ns/pid").is_ok_and(|own| own != Path::new(HOST_PID_NAMESPACE));
    let (pid, tgid) = if is_elsewhere {
        (seen.pid, seen.tgid)
    } else {
        let pid = rustix::thread::gettid().as_raw_nonzero().get() as u64;
        (pid, u64::from(std::process::id()))
    };
    let expected = Check {
        pid,
        tgid,
        cgroup_id: match own_cgroup {
            Some(path) => fs::metadata(path)
                .with_context(|| format!("look at {}", path.display()))?
                .ino(),
            None => seen.cgroup_id,
        },
        comm,
    };
    if seen == expected {
        return Ok(seen.cgroup_id);
    }
    Err(anyhow!("the self-check failed: this kernel is laid out otherwise than its BTF says ({seen:?}, not {expected:?})")
        .into())
}
