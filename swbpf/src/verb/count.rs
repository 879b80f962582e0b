//! The kernel programs on a target, and how they are told.

use std::{cell::RefCell, rc::Rc};

use swbpf_common::slot::{FILE, FILE_MAPPED, KERNEL, PAGE_TABLES, PARTS, SHMEM, SWAP, THP};

use super::target::Chosen;
use crate::{
    cli::ForcedSource,
    error::Error,
    job::cgroup::{Cgroup, Controller, Hierarchies, Version},
    kernel::{
        ladder::Rung,
        layout::Hierarchy,
        support::{Facts, Plan, plan},
    },
    probe::{Probe, Room, SlotId, Start},
    sampled::cgroupfs::MemoryFiles,
    snapshot::{HeldBy, Probes, Program},
};

/// One target and a slot to try whether the programs hear, and the steps and tasks of a job that are told on their own at one
/// time.
const ROOM: Room = Room {
    targets: 2,
    below: 512,
};

/// The kernel programs on the target.
pub struct Counting {
    /// The programs, which may count for other targets too.
    pub probe: Rc<RefCell<Probe>>,
    /// The slot of the target.
    pub slot: SlotId,
}

/// The target as it is counted.
pub struct Counted {
    /// The programs.
    pub counting: Counting,
    /// What was loaded.
    pub plan: Plan,
    /// Whether nothing had been in the target before.
    pub from_birth: bool,
}

/// Loads the programs and tracks the cgroup; those born in the next `follow` levels below it get slots of their own.
pub fn count(
    facts: &mut Facts,
    hierarchies: &Hierarchies,
    chosen: &Chosen,
    follow: u32,
    force: Option<ForcedSource>,
) -> Result<Counted, Error> {
    if force == Some(ForcedSource::Sampled) {
        return Err(Error::Other(anyhow::anyhow!("sampling was asked for")));
    }
    let cgroup = &chosen.cgroup;
    let (hierarchy, controller) = hierarchy_of(cgroup);
    let mut plan = plan(facts, hierarchy, cgroup.version())?;
    if let Some(rung) = force.and_then(Rung::asked) {
        plan = plan.on(rung)?;
    }
    let own = hierarchies.own_cgroup().ok();
    let own = own.as_ref().and_then(|own| own.nearest_dir(controller));
    let mut probe = Probe::load(&plan, ROOM, own.map(|dir| dir.path.as_path()))?;
    // Megabytes that would count, and fall away, where the target is the caller's own cgroup.
    plan.btf = Vec::new();
    let start = if chosen.from_birth {
        Start::default()
    } else {
        start(&MemoryFiles::read(cgroup))
    };
    let slot = probe.track(cgroup.id(), start, follow)?;
    Ok(Counted {
        counting: Counting {
            probe: Rc::new(RefCell::new(probe)),
            slot,
        },
        plan,
        from_birth: chosen.from_birth || is_untouched(cgroup),
    })
}

/// Whether no process is in the cgroup, and nothing was ever charged to it: looked at after it is tracked, so whatever comes
/// is counted. Such is the directory of a job that a Prolog made before Slurm did.
fn is_untouched(cgroup: &Cgroup) -> bool {
    MemoryFiles::read(cgroup).peak_bytes == Some(0) && cgroup.procs().is_ok_and(|procs| procs.is_empty())
}

/// The hierarchy of the target's directory, and a controller that has it.
fn hierarchy_of(cgroup: &Cgroup) -> (Hierarchy, Controller) {
    let names = |controller: &Controller| {
        cgroup
            .dir(*controller)
            .is_some_and(|dir| dir.path == cgroup.path())
    };
    let controller = Controller::ALL
        .into_iter()
        .find(names)
        .unwrap_or(Controller::Memory);
    let has_no_state = cgroup.version() == Version::V2 && controller != Controller::Memory;
    (
        if has_no_state {
            Hierarchy::Unified
        } else {
            Hierarchy::Of(controller)
        },
        controller,
    )
}

/// What the files tell of a cgroup that existed before, as pages. What they do not tell counts from 0.
pub fn start(files: &MemoryFiles) -> Start {
    let page = rustix::param::page_size() as u64;
    let pages = |bytes: Option<u64>| bytes.unwrap_or(0) / page;
    let mut parts = [0; PARTS];
    parts[SHMEM] = pages(files.shmem_bytes);
    parts[KERNEL] = pages(files.kernel_bytes);
    parts[FILE] = pages(files.cache_bytes);
    parts[FILE_MAPPED] = pages(files.file_mapped_bytes);
    parts[THP] = pages(files.thp_bytes);
    parts[PAGE_TABLES] = pages(files.page_tables_bytes);
    parts[SWAP] = pages(files.swap_bytes);
    Start {
        anon: pages(files.anon_bytes),
        parts,
    }
}

/// The programs as they are told.
pub fn kernel_probes(plan: &Plan, probe: &Probe, held_by: HeldBy) -> Probes {
    Probes {
        held_by,
        rung: probe.rung().name().to_owned(),
        reason: probe.why_not_better().map(str::to_owned),
        kernel: plan.release.clone(),
        programs: probe
            .programs()
            .iter()
            .map(|program| Program {
                name: program.name.to_owned(),
                hook: program.hook.to_string(),
                attached: program.absent.is_none(),
                reason: program.absent.clone(),
            })
            .collect(),
    }
}

/// Why there are none.
pub fn sampled_probes(facts: &Facts, force: Option<ForcedSource>, error: &Error) -> Probes {
    let reason = match force {
        Some(ForcedSource::Sampled) => "sampling was asked for".to_owned(),
        _ => error.to_string(),
    };
    Probes {
        held_by: HeldBy::Nobody,
        rung: "none".to_owned(),
        reason: Some(reason),
        kernel: facts.release.clone(),
        programs: Vec::new(),
    }
}
