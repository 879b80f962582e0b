//! Attaches the programs, each by the best hook that takes it.

use anyhow::{Context, anyhow};
use aya::{
    Btf, Ebpf,
    programs::{Program, ProgramError, ProgramFd},
};
use nix::errno::Errno;

use crate::{
    error::Error,
    kernel::{
        ladder::{Choice, Hook, PlannedProgram, Rung, told},
        support::Plan,
    },
};

/// Characters of a verifier's refusal that are told.
const REFUSAL: usize = 200;

/// What was attached.
pub struct Climbed {
    /// By which kind of hook changes of memory are heard.
    pub rung: Rung,
    /// Why not by a better one.
    pub why_not_better: Option<String>,
    /// All programs; those that are absent with the reason.
    pub programs: Vec<PlannedProgram>,
}

impl Climbed {
    /// The attached programs, with their descriptors.
    pub fn attached(&self, ebpf: &mut Ebpf) -> Result<Vec<(PlannedProgram, ProgramFd)>, Error> {
        let attached = self.programs.iter().filter(|program| program.absent.is_none());
        attached
            .map(|planned| Ok((planned.clone(), program_fd(program(ebpf, planned.name)?)?)))
            .collect()
    }
}

/// Attaches what `plan` says.
pub fn climb(ebpf: &mut Ebpf, plan: &Plan, btf: &Btf) -> Result<Climbed, Error> {
    let memory = choose(ebpf, plan, &plan.memory, btf)?;
    let rung = memory
        .programs
        .first()
        .map_or(Rung::Tracepoint, |first| first.hook.rung);
    let mut programs = memory.programs;
    for other in &plan.others {
        programs.extend(choose(ebpf, plan, other, btf)?.programs);
    }
    Ok(Climbed {
        rung,
        why_not_better: memory.why_not_better,
        programs,
    })
}

/// How something is heard, or what stands for it.
struct Chosen {
    programs: Vec<PlannedProgram>,
    why_not_better: Option<String>,
}

/// The first way that attaches. An optional one may be absent.
fn choose(ebpf: &mut Ebpf, plan: &Plan, choice: &Choice, btf: &Btf) -> Result<Chosen, Error> {
    let mut refused = choice.refused.clone();
    for way in &choice.ways {
        let Some(rung) = way.first().map(|program| program.hook.rung) else {
            continue;
        };
        match take(ebpf, way, btf) {
            Ok(()) => {
                refused.retain(|(better, _)| *better < rung);
                return Ok(Chosen {
                    programs: way.clone(),
                    why_not_better: (!refused.is_empty()).then(|| told(&refused)),
                });
            }
            Err(error) => refused.push((rung, format!("{error:#}"))),
        }
    }
    let Some(without) = choice.without else {
        return Err(plan.hook_absent(&Choice {
            refused,
            ..choice.clone()
        }));
    };
    Ok(Chosen {
        programs: vec![choice.absent(format!("{}: {without}", told(&refused)))],
        why_not_better: None,
    })
}

/// Attaches all programs of a way, or none.
fn take(ebpf: &mut Ebpf, way: &[PlannedProgram], btf: &Btf) -> anyhow::Result<()> {
    for (number, planned) in way.iter().enumerate() {
        if let Err(error) = attach(ebpf, planned.name, planned.hook, btf) {
            for taken in &way[..=number] {
                unload(ebpf, taken.name)?;
            }
            return Err(error);
        }
    }
    Ok(())
}

/// Detaches a program and takes it out of the kernel, as far as it was in it.
fn unload(ebpf: &mut Ebpf, name: &str) -> anyhow::Result<()> {
    let unloaded = match program(ebpf, name)? {
        Program::BtfTracePoint(found) => found.unload(),
        Program::FEntry(found) => found.unload(),
        Program::KProbe(found) => found.unload(),
        _ => Ok(()),
    };
    match unloaded {
        Ok(()) | Err(ProgramError::NotLoaded) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("unload program {name}")),
    }
}

/// Loads a program and attaches it.
pub fn attach(ebpf: &mut Ebpf, name: &str, hook: Hook, btf: &Btf) -> anyhow::Result<()> {
    let attached = match (program(ebpf, name)?, hook.rung) {
        (Program::BtfTracePoint(found), Rung::Tracepoint) => {
            found.load(hook.name, btf).and_then(|()| found.attach().map(drop))
        }
        (Program::FEntry(found), Rung::Fentry) => {
            found.load(hook.name, btf).and_then(|()| found.attach().map(drop))
        }
        (Program::KProbe(found), Rung::Kprobe) => {
            found.load().and_then(|()| found.attach(hook.name, 0).map(drop))
        }
        _ => {
            return Err(anyhow!(
                "program {name} of the object has another type: rebuild it"
            ));
        }
    };
    attached
        .map_err(briefly)
        .with_context(|| format!("attach program {name} to {hook}"))
}

/// An error in one line: of a verifier's log, which may have thousands, the line that says what it refused.
fn briefly(error: ProgramError) -> anyhow::Error {
    let ProgramError::LoadError {
        io_error,
        verifier_log,
    } = error
    else {
        return error.into();
    };
    let log = verifier_log.to_string();
    let is_sum = |line: &str| {
        ["verification time", "stack depth", "processed"]
            .iter()
            .any(|sum| line.starts_with(sum))
    };
    let refusal = log.lines().rev().find(|line| !line.is_empty() && !is_sum(line));
    let Some(refusal) = refusal else {
        // Not the program, but the place or the user.
        let number = Errno::from_raw(io_error.raw_os_error().unwrap_or(0));
        return anyhow!("refused ({number:?})");
    };
    let refusal: String = refusal.chars().take(REFUSAL).collect();
    anyhow::Error::new(io_error).context(refusal)
}

/// A program of the object.
pub fn program<'a>(ebpf: &'a mut Ebpf, name: &str) -> anyhow::Result<&'a mut Program> {
    ebpf.program_mut(name)
        .ok_or_else(|| anyhow!("the object has no program {name}: rebuild it"))
}

/// A descriptor of a loaded program.
pub fn program_fd(program: &Program) -> anyhow::Result<ProgramFd> {
    let fd = program.fd().context("take the descriptor of a program")?;
    fd.try_clone().context("duplicate the descriptor of a program")
}
