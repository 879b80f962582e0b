//! Loads the programs by the plan, attaches them, and checks that they see what the reader sees.

use std::{
    collections::VecDeque,
    fs,
    os::{fd::AsFd, unix::fs::MetadataExt},
    path::Path,
};

use anyhow::{Context, anyhow};
use aya::{
    Btf, Ebpf, EbpfLoader, Endianness,
    maps::{Array, HashMap, MapData, PerCpuArray, Queue, RingBuf},
    programs::{Program, ProgramFd},
};
use swbpf_common::{
    health::{Check, Clocks, Health},
    level::Levels,
    offsets::Offsets,
    running::Concurrency,
    slot::{Slot, Timeline},
};

use super::climb::{Climbed, attach, climb, program, program_fd};
use super::{
    syscall::{self, ProgramStats},
    ticks::Ticks,
};
use crate::{
    error::Error,
    kernel::{
        ladder::{Hook, PlannedProgram, Rung},
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
const BY_TARGET: [&str; 3] = ["TIMELINES", "LEVELS", "CONCURRENCY"];

/// How many slots there are.
#[derive(Debug, Clone, Copy)]
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

    fn all(self) -> u32 {
        self.targets + self.below
    }
}

/// Programs and maps in the kernel. Dropped: detached and gone.
pub struct Probe {
    /// Keeps the links: dropped, the programs are detached.
    _ebpf: Ebpf,
    climbed: Climbed,
    pub(super) lru_is_missable: bool,
    pub(super) attached: Vec<(PlannedProgram, ProgramFd)>,
    pub(super) look: ProgramFd,
    pub(super) tracked: HashMap<MapData, u64, u32>,
    pub(super) slots: Array<MapData, Slot>,
    pub(super) free_below: Queue<MapData, u32>,
    pub(super) timelines: Array<MapData, Timeline>,
    pub(super) levels: Array<MapData, Levels>,
    pub(super) concurrency: Array<MapData, Concurrency>,
    pub(super) busy: PerCpuArray<MapData, u64>,
    pub(super) pending: PerCpuArray<MapData, u64>,
    pub(super) health: PerCpuArray<MapData, Health>,
    pub(super) flushed: Array<MapData, u64>,
    pub(super) clocks: Array<MapData, Clocks>,
    pub(super) ticks: Ticks,
    pub(super) bucket_shift: u32,
    pub(super) notices: RingBuf<MapData>,
    pub(super) free: VecDeque<u32>,
    pub(super) room: Room,
    pub(super) cpus: Vec<u32>,
}

impl Probe {
    /// Loads and attaches what `plan` says, with this much `room`. `own_cgroup` is the directory of this
    /// process in the hierarchy by which the programs tell jobs apart, where it can be seen: the self-check compares its
    /// inode number.
    pub fn load(plan: &Plan, room: Room, own_cgroup: Option<&Path>) -> Result<Self, Error> {
        let btf = Btf::parse(&plan.btf, Endianness::default()).context("read the kernel's BTF")?;
        let mut ebpf = open(plan, room, &btf)?;
        let check = program_fd(load_raw(&mut ebpf, "check")?)?;
        self_check(&mut ebpf, &check, own_cgroup)?;
        let look = program_fd(load_raw(&mut ebpf, "look")?)?;
        let mut free_below = Queue::try_from(map(&mut ebpf, "FREE")?).context("map FREE")?;
        for number in room.targets..room.all() {
            free_below.push(number, 0).context("enter a free slot")?;
        }
        let climbed = climb(&mut ebpf, plan, &btf)?;
        Ok(Self {
            attached: climbed.attached(&mut ebpf)?,
            lru_is_missable: match climbed.rung {
                Rung::Tracepoint => false,
                Rung::Fentry => plan.is_preemptible,
                Rung::Kprobe => true,
            },
            climbed,
            look,
            tracked: HashMap::try_from(map(&mut ebpf, "TRACKED")?).context("map TRACKED")?,
            slots: Array::try_from(map(&mut ebpf, "SLOTS")?).context("map SLOTS")?,
            free_below,
            timelines: Array::try_from(map(&mut ebpf, "TIMELINES")?).context("map TIMELINES")?,
            levels: Array::try_from(map(&mut ebpf, "LEVELS")?).context("map LEVELS")?,
            concurrency: Array::try_from(map(&mut ebpf, "CONCURRENCY")?).context("map CONCURRENCY")?,
            busy: PerCpuArray::try_from(map(&mut ebpf, "BUSY")?).context("map BUSY")?,
            pending: PerCpuArray::try_from(map(&mut ebpf, "PENDING")?).context("map PENDING")?,
            health: PerCpuArray::try_from(map(&mut ebpf, "HEALTH")?).context("map HEALTH")?,
            flushed: Array::try_from(map(&mut ebpf, "FLUSHED")?).context("map FLUSHED")?,
            clocks: Array::try_from(map(&mut ebpf, "CLOCKS")?).context("map CLOCKS")?,
            ticks: Ticks::new(plan.offsets.bucket_shift),
            bucket_shift: plan.offsets.bucket_shift,
            notices: RingBuf::try_from(map(&mut ebpf, "NOTICES")?).context("map NOTICES")?,
            _ebpf: ebpf,
            free: (0..room.targets).collect(),
            room,
            cpus: online_cpus()?,
        })
    }

    /// What the kernel counts of each attached program.
    pub fn program_stats(&self) -> Result<Vec<(&PlannedProgram, ProgramStats)>, Error> {
        self.attached
            .iter()
            .map(|(program, fd)| {
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
    /// Keeps the links: dropped, the programs are detached.
    _ebpf: Ebpf,
    memory: ProgramFd,
}

impl Floor {
    /// Loads and attaches them, where the programs of `plan` would be.
    pub fn load(plan: &Plan) -> Result<Self, Error> {
        let btf = Btf::parse(&plan.btf, Endianness::default()).context("read the kernel's BTF")?;
        let mut ebpf = open(plan, Room::targets(1), &btf)?;
        let hook = plan.memory.ways.first().and_then(|way| way.first());
        let hook = hook.context("no hook for changes of memory")?.hook;
        let name = match hook.rung {
            Rung::Tracepoint => "floor_memory",
            Rung::Fentry => "floor_fentry",
            Rung::Kprobe => "floor_kprobe",
        };
        attach(&mut ebpf, name, hook, &btf)?;
        let switch = Hook {
            rung: Rung::Tracepoint,
            name: "sched_switch",
        };
        attach(&mut ebpf, "floor_switch", switch, &btf)?;
        Ok(Self {
            memory: program_fd(program(&mut ebpf, name)?)?,
            _ebpf: ebpf,
        })
    }

    /// What the kernel counts of the one that changes of memory meet.
    pub fn memory_stats(&self) -> Result<ProgramStats, Error> {
        let stats = syscall::program_stats(self.memory.as_fd());
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

fn map(ebpf: &mut Ebpf, name: &str) -> Result<aya::maps::Map, Error> {
    Ok(ebpf
        .take_map(name)
        .ok_or_else(|| anyhow!("the object has no map {name}: rebuild it"))?)
}

fn online_cpus() -> Result<Vec<u32>, Error> {
    Ok(aya::util::online_cpus().map_err(|(path, error)| anyhow!("read {path}: {error}"))?)
}

/// The programs must see this very task through the offsets before a number of theirs is told.
fn self_check(ebpf: &mut Ebpf, program: &ProgramFd, own_cgroup: Option<&Path>) -> Result<(), Error> {
    syscall::run_program(program.as_fd(), None).context("run the self-check in the kernel")?;
    let seen: Array<MapData, Check> = Array::try_from(map(ebpf, "CHECK")?).context("map CHECK")?;
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
        return Ok(());
    }
    Err(anyhow!("the self-check failed: this kernel is laid out otherwise than its BTF says ({seen:?}, not {expected:?})")
        .into())
}
