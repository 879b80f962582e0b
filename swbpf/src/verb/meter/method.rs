//! How a target is measured: by the kernel programs, else by the files.

use crate::{
    cli::ForcedSource,
    error::Error,
    fold::Subject,
    job::cgroup::{Controller, Hierarchies, slurm::Role},
    kernel::support::Facts,
    snapshot::{HeldBy, OwnProcesses, Probes},
    verb::{
        count::{self, Counted, Counting},
        target::Chosen,
    },
};

/// How a target is measured.
pub struct Method {
    /// The programs on it; `None`: its files.
    pub counting: Option<Counting>,
    /// How they are told.
    pub probes: Probes,
    /// How far a peak can be below the truth because of what the CPUs keep to themselves, in pages.
    pub batch_bound_pages: u64,
    /// Number of CPUs that are on.
    pub cpus: usize,
    /// Whether nothing had been in it yet.
    pub from_birth: bool,
    /// Why it is measured from now on.
    pub from_reason: String,
    /// When it was born with a slot, on the monotonic clock: what has been counted since belongs to the measurement.
    pub born_ns: Option<u64>,
    /// Whether the programs count for other targets too.
    pub is_shared: bool,
}

impl Method {
    /// By the kernel programs, else by the files.
    pub fn find(
        hierarchies: &Hierarchies,
        chosen: &Chosen,
        levels: u32,
        force: Option<ForcedSource>,
    ) -> Result<Self, Error> {
        let mut facts = Facts::gather();
        let counted = count::count(&mut facts, hierarchies, chosen, levels, force);
        Ok(match counted {
            Ok(Counted {
                counting,
                plan,
                from_birth,
            }) => {
                let probes = count::kernel_probes(&plan, &counting.probe.borrow(), HeldBy::Command);
                Self {
                    counting: Some(counting),
                    probes,
                    batch_bound_pages: plan.batch_bound_pages,
                    cpus: facts.cpus,
                    from_birth,
                    from_reason: from_reason(from_birth).to_owned(),
                    born_ns: None,
                    is_shared: false,
                }
            }
            Err(error) if force.is_some_and(|force| force != ForcedSource::Sampled) => return Err(error),
            Err(error) => Self {
                counting: None,
                probes: count::sampled_probes(&facts, force, &error),
                batch_bound_pages: 0,
                cpus: facts.cpus,
                from_birth: chosen.from_birth,
                from_reason: from_reason(chosen.from_birth).to_owned(),
                born_ns: None,
                is_shared: false,
            },
        })
    }

    /// Whether the kernel tells that the last process has left.
    pub fn hears_end(&self) -> bool {
        let programs = &self.probes.programs;
        programs
            .iter()
            .any(|program| program.attached && program.name == "cgroup_notify_populated")
    }
}

/// Why a target is measured from now on.
pub fn from_reason(from_birth: bool) -> &'static str {
    if from_birth {
        "nothing had been in it before"
    } else {
        "it was there before it was measured"
    }
}

/// What is measured so.
pub fn subject(chosen: Chosen, method: Method, is_counting: bool) -> Subject {
    let role = chosen.role();
    let memory_not_counted = chosen
        .cgroup
        .dir(Controller::Memory)
        .is_none()
        .then(|| why_not_counted(role).to_owned());
    let mut target = chosen.told;
    // What the programs count cannot be taken apart.
    let is_sampled = !is_counting || memory_not_counted.is_some();
    if target.own_processes == OwnProcesses::Counted && is_sampled {
        target.own_processes = OwnProcesses::TakenOff;
    }
    Subject {
        target,
        role,
        slurm: chosen.slurm,
        from_start: method.from_birth,
        from_reason: method.from_reason,
        probes: method.probes,
        cpus: method.cpus,
        batch_bound_pages: method.batch_bound_pages,
        memory_not_counted,
        is_one_of_many: method.is_shared,
    }
}

/// Why the memory of a target is not counted that has no cgroup for it.
fn why_not_counted(role: Option<Role>) -> &'static str {
    match role {
        Some(_) => {
            "Slurm gave the job no memory cgroup: set ConstrainRAMSpace=yes in cgroup.conf, or \
             JobAcctGatherType=jobacct_gather/cgroup in slurm.conf"
        }
        None => "the target has no cgroup of its own in a hierarchy that counts memory",
    }
}
