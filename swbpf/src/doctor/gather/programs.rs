//! The kernel programs: what would be loaded, and whether it can be.

use std::{fs, io};

use crate::cli::ForcedSource;
use crate::doctor::facts::{Bpf, Heard, Known, Programs, Trial};
use crate::error::Error;
use crate::job::cgroup::{CgroupError, Controller, Hierarchies, Version};
use crate::kernel::btf::Btf;
use crate::kernel::ladder::{self, Choice, PlannedProgram, Rung};
use crate::kernel::layout::Hierarchy;
use crate::kernel::support::{self, Plan, plan};
use crate::probe::{Probe, Room};

/// What `/proc/self/fdinfo` says of the descriptor of a program.
const COMPILED: &str = "prog_jited:";
/// Longest reason, in characters: the kernel's verifier can be asked to say more than a person would read.
const MAX_REASON: usize = 600;
/// So many descriptors are looked at.
const MAX_DESCRIPTORS: usize = 1000;

/// Length of the kernel's BTF, where it is understood.
pub fn btf(blob: &Result<Vec<u8>, io::Error>) -> Known<u64> {
    let blob = blob
        .as_ref()
        .map_err(|error| super::cannot_read(super::BTF, error))?;
    match Btf::parse(blob) {
        Ok(_) => Ok(blob.len() as u64),
        Err(error) => Err(format!("{} of {} bytes: {error}", super::BTF, blob.len())),
    }
}

/// The programs, and how far a peak can be below the truth for the number of CPUs, in bytes. Takes the BTF out of `kernel`.
pub fn programs(
    kernel: &mut support::Facts,
    bpf: &Bpf,
    hierarchies: Option<&Hierarchies>,
    force: Option<ForcedSource>,
) -> (Programs, Option<u64>) {
    // Who may not load programs is told what would be loaded for others.
    kernel.capabilities = u64::MAX;
    kernel.is_of_host = true;
    let asked = force.and_then(Rung::asked);
    if force == Some(ForcedSource::Sampled) {
        return (none(asked, "sampling was asked for"), None);
    }
    let (hierarchy, controller, version) = by_which(hierarchies);
    let plan = plan(kernel, hierarchy, version);
    let plan = match asked {
        Some(rung) => plan.and_then(|plan| plan.on(rung)),
        None => plan,
    };
    let plan = match plan {
        Ok(plan) => plan,
        Err(error) => {
            return (none(asked, &on_one_line(&error.to_string())), None);
        }
    };
    let trial = if !super::has_proc() {
        Trial::Hindered(CgroupError::NoProc.to_string())
    } else if bpf.may_load() {
        tried(&plan, hierarchies, controller)
    } else if bpf.is_of_host {
        Trial::NotTried(format!("without {}", bpf.lacking.join(" and ")))
    } else {
        Trial::NotTried("in a user namespace".to_owned())
    };
    let bound = plan.batch_bound_pages * rustix::param::page_size() as u64;
    let plan = Ok(planned(&plan));
    (Programs { asked, plan, trial }, Some(bound))
}

/// No programs, for this reason.
fn none(asked: Option<Rung>, reason: &str) -> Programs {
    Programs {
        asked,
        plan: Err(reason.to_owned()),
        trial: Trial::NotTried(reason.to_owned()),
    }
}

/// The hierarchy by which jobs would be told apart here.
fn by_which(hierarchies: Option<&Hierarchies>) -> (Hierarchy, Controller, Version) {
    let found = hierarchies.and_then(|hierarchies| {
        let version = |controller| Some((controller, hierarchies.version_of(controller)?));
        Controller::ALL.into_iter().find_map(version)
    });
    match found {
        Some((Controller::Memory, version)) => {
            (Hierarchy::Of(Controller::Memory), Controller::Memory, version)
        }
        Some((controller, Version::V1)) => (Hierarchy::Of(controller), controller, Version::V1),
        Some((controller, Version::V2)) => (Hierarchy::Unified, controller, Version::V2),
        None => (Hierarchy::Unified, Controller::Memory, Version::V2),
    }
}

fn tried(plan: &Plan, hierarchies: Option<&Hierarchies>, controller: Controller) -> Trial {
    let own = hierarchies.and_then(|hierarchies| hierarchies.own_cgroup().ok());
    let own = own.as_ref().and_then(|own| own.nearest_dir(controller));
    match Probe::load(plan, Room::targets(1), own.map(|dir| dir.path.as_path())) {
        // The descriptors are those of the programs for as long as the probe is there.
        Ok(probe) => Trial::Good {
            heard: heard(probe.rung(), probe.why_not_better(), probe.programs()),
            is_compiled: are_compiled(),
        },
        Err(error @ Error::TooManyFiles { .. }) => Trial::Hindered(error.to_string()),
        Err(error) => Trial::Failed(on_one_line(&error.to_string())),
    }
}

/// The begin of a reason, without line ends.
fn on_one_line(reason: &str) -> String {
    let line = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_REASON) {
        Some((end, _)) => format!("{} ...", &line[..end]),
        None => line,
    }
}

/// Whether all programs that this process holds are compiled; `None` where the kernel does not say.
fn are_compiled() -> Option<bool> {
    let entries = fs::read_dir("/proc/self/fdinfo")
        .ok()?
        .flatten()
        .take(MAX_DESCRIPTORS);
    let texts = entries.filter_map(|entry| crate::job::kernfile::read_text(&entry.path()).ok());
    let told: Vec<bool> = texts.filter_map(|text| is_compiled(&text)).collect();
    (!told.is_empty()).then(|| told.iter().all(|compiled| *compiled))
}

fn is_compiled(fdinfo: &str) -> Option<bool> {
    let value = fdinfo.lines().find_map(|line| line.strip_prefix(COMPILED))?;
    Some(value.trim() == "1")
}

/// What would be tried first.
fn planned(plan: &Plan) -> Heard {
    let best = |choice: &Choice| match choice.ways.first() {
        Some(way) => way.clone(),
        None => vec![choice.absent(without(choice))],
    };
    let memory = best(&plan.memory);
    let rung = memory.first().map_or(Rung::Tracepoint, |first| first.hook.rung);
    let programs: Vec<_> = memory
        .into_iter()
        .chain(plan.others.iter().flat_map(best))
        .collect();
    let better: Vec<_> = plan
        .memory
        .refused
        .iter()
        .filter(|(refused, _)| *refused < rung)
        .cloned()
        .collect();
    let why_not_better = (!better.is_empty()).then(|| ladder::told(&better));
    heard(rung, why_not_better.as_deref(), &programs)
}

fn without(choice: &Choice) -> String {
    let without = choice.without.unwrap_or("nothing is counted");
    format!("{}: {without}", ladder::told(&choice.refused))
}

fn heard(rung: Rung, why_not_better: Option<&str>, programs: &[PlannedProgram]) -> Heard {
    let mut hooks: Vec<String> = Vec::new();
    for program in programs.iter().filter(|program| program.absent.is_none()) {
        let hook = program.hook.to_string();
        // Several programs may be on one.
        if !hooks.contains(&hook) {
            hooks.push(hook);
        }
    }
    let absent = programs
        .iter()
        .filter_map(|program| Some((program.name.to_owned(), program.absent.clone()?)));
    Heard {
        rung,
        hooks,
        why_not_better: why_not_better.map(str::to_owned),
        absent: absent.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_is_cut_and_stays_on_one_line() {
        assert_eq!(
            on_one_line("attach: refused\n  at 1:\n\n"),
            "attach: refused at 1:"
        );
        let long = on_one_line(&"\u{e9}\n".repeat(5000));
        assert_eq!(long.chars().count(), MAX_REASON + 4);
        assert!(long.ends_with(" ...") && !long.contains('\n'), "{long}");
    }

    #[test]
    fn descriptors_of_programs_say_whether_they_are_compiled() {
        let text = |value| format!("pos:\t0\nprog_type:\t26\nprog_jited:\t{value}\nprog_tag:\t00\n");
        assert_eq!(is_compiled(&text(1)), Some(true));
        assert_eq!(is_compiled(&text(0)), Some(false));
        assert_eq!(is_compiled("pos:\t0\n"), None);
    }
}
