//! Attaches the programs, each by the best hook that takes it.

use anyhow::{Context, anyhow};
use aya::{
    Btf, Ebpf,
    programs::{
        Program, ProgramError, ProgramFd,
        fentry::FEntryLink,
        kprobe::KProbeLink,
        links::{FdLink, LinkError},
        tp_btf::BtfTracePointLink,
    },
};
use nix::errno::Errno;
use serde::{Deserialize, Serialize};

use super::Probe;
use crate::{
    error::{Error, is_for_too_many_files},
    kernel::{
        ladder::{Choice, PlannedProgram, Rung, told},
        support::Plan,
    },
};

/// Characters of a verifier's refusal that are told.
const REFUSAL: usize = 200;

/// What was attached.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Climbed {
    /// By which kind of hook changes of memory are heard.
    pub rung: Rung,
    /// Why not by a better one.
    pub why_not_better: Option<String>,
    /// All programs; those that are absent with the reason.
    pub programs: Vec<PlannedProgram>,
}

/// A program on its hook.
pub struct Attached {
    /// What it is.
    pub program: PlannedProgram,
    /// Its descriptor.
    pub fd: ProgramFd,
    /// Dropped, the program is detached; `None` where that is up to a pin.
    pub link: Option<Link>,
}

/// What holds a program on its hook.
pub enum Link {
    /// `tp_btf`
    Tracepoint(BtfTracePointLink),
    /// `fentry`
    Fentry(FEntryLink),
    /// `kprobe`
    Kprobe(KProbeLink),
}

impl Default for Climbed {
    /// Nothing is attached.
    fn default() -> Self {
        Self {
            rung: Rung::Tracepoint,
            why_not_better: None,
            programs: Vec::new(),
        }
    }
}

impl Link {
    /// As it can be pinned: kernels before 5.15 have no such link of a kprobe.
    pub fn into_fd(self) -> Result<FdLink, LinkError> {
        match self {
            Self::Tracepoint(link) => Ok(link.into()),
            Self::Fentry(link) => Ok(link.into()),
            Self::Kprobe(link) => link.try_into(),
        }
    }
}

/// Attaches what `plan` says. Changes of memory must be heard, beside that the kernel attaches the programs: where tracing of
/// functions is switched off, it attaches them and never calls them.
pub fn climb(probe: &mut Probe, ebpf: &mut Ebpf, plan: &Plan, btf: &Btf) -> Result<(), Error> {
    let memory = choose(ebpf, plan, &plan.memory, btf, || match probe.hears()? {
        Some(false) => Err(anyhow!(
            "the programs are attached, and the kernel does not call them: see `sysctl kernel.ftrace_enabled` and \
             /sys/kernel/debug/kprobes/enabled"
        )),
        Some(true) | None => Ok(()),
    })?;
    probe.climbed.rung = memory
        .programs
        .first()
        .map_or(Rung::Tracepoint, |first| first.hook.rung);
    probe.climbed.why_not_better.clone_from(&memory.why_not_better);
    let mut all = vec![memory];
    for other in &plan.others {
        all.push(choose(ebpf, plan, other, btf, || Ok(()))?);
    }
    for chosen in all {
        probe.climbed.programs.extend(chosen.programs);
        probe.attached.extend(chosen.attached);
    }
    Ok(())
}

/// How something is heard, or what stands for it.
struct Chosen {
    programs: Vec<PlannedProgram>,
    attached: Vec<Attached>,
    why_not_better: Option<String>,
}

/// The first way that attaches and is `proved`. An optional one may be absent.
fn choose(
    ebpf: &mut Ebpf,
    plan: &Plan,
    choice: &Choice,
    btf: &Btf,
    mut proved: impl FnMut() -> anyhow::Result<()>,
) -> Result<Chosen, Error> {
    let mut refused = choice.refused.clone();
    for way in &choice.ways {
        let Some(rung) = way.first().map(|program| program.hook.rung) else {
            continue;
        };
        let taken = take(ebpf, way, btf).and_then(|attached| proved().map(|()| attached));
        match taken {
            Ok(attached) => {
                refused.retain(|(better, _)| *better < rung);
                return Ok(Chosen {
                    programs: way.clone(),
                    attached,
                    why_not_better: (!refused.is_empty()).then(|| told(&refused)),
                });
            }
            Err(error) if is_for_too_many_files(&error) => return Err(error.into()),
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
        attached: Vec::new(),
        why_not_better: None,
    })
}

/// Attaches all programs of a way, or none.
fn take(ebpf: &mut Ebpf, way: &[PlannedProgram], btf: &Btf) -> anyhow::Result<Vec<Attached>> {
    way.iter().map(|planned| attach(ebpf, planned, btf)).collect()
}

/// Loads a program and attaches it.
pub fn attach(ebpf: &mut Ebpf, planned: &PlannedProgram, btf: &Btf) -> anyhow::Result<Attached> {
    let PlannedProgram { name, hook, .. } = planned;
    let (link, fd) = match (program(ebpf, name)?, hook.rung) {
        (Program::BtfTracePoint(found), Rung::Tracepoint) => found
            .load(hook.name, btf)
            .and_then(|()| found.attach())
            .and_then(|id| found.take_link(id))
            .map(Link::Tracepoint)
            .map(|link| (link, found.fd().and_then(|fd| Ok(fd.try_clone()?)))),
        (Program::FEntry(found), Rung::Fentry) => found
            .load(hook.name, btf)
            .and_then(|()| found.attach())
            .and_then(|id| found.take_link(id))
            .map(Link::Fentry)
            .map(|link| (link, found.fd().and_then(|fd| Ok(fd.try_clone()?)))),
        (Program::KProbe(found), Rung::Kprobe) => found
            .load()
            .and_then(|()| found.attach(hook.name, 0))
            .and_then(|id| found.take_link(id))
            .map(Link::Kprobe)
            .map(|link| (link, found.fd().and_then(|fd| Ok(fd.try_clone()?)))),
        _ => {
            return Err(anyhow!(
                "program {name} of the object has another type: rebuild it"
            ));
        }
    }
    .map_err(briefly)
    .with_context(|| format!("attach program {name} to {hook}"))?;
    Ok(Attached {
        program: planned.clone(),
        fd: fd.context("take the descriptor of a program")?,
        link: Some(link),
    })
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
        if number == Errno::EMFILE {
            return io_error.into();
        }
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
