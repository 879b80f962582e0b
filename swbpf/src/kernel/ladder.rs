//! What is to be heard in the kernel, and the hooks that tell it, best first.

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use super::{btf::Btf, layout};
use crate::cli::ForcedSource;

/// A kind of hook, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Rung {
    /// A tracepoint with typed arguments: made for tracers, and cheap.
    Tracepoint,
    /// The entry of a function: typed arguments too, but functions come and go with versions and builds.
    Fentry,
    /// The same by a breakpoint: needs least of the kernel. Runs that it skips are not counted on every kernel.
    Kprobe,
}

impl Rung {
    /// As it is told in `probes.rung`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tracepoint => "btf_tracepoint",
            Self::Fentry => "fentry",
            Self::Kprobe => "kprobe",
        }
    }

    /// The one that is asked for.
    pub fn asked(force: ForcedSource) -> Option<Self> {
        match force {
            ForcedSource::Kernel | ForcedSource::Sampled => None,
            ForcedSource::Tracepoint => Some(Self::Tracepoint),
            ForcedSource::Fentry => Some(Self::Fentry),
            ForcedSource::Kprobe => Some(Self::Kprobe),
        }
    }
}

/// A place in the kernel at which a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hook {
    /// Its kind.
    pub rung: Rung,
    /// The tracepoint or the function.
    pub name: &'static str,
}

impl Display for Hook {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let kind = match self.rung {
            Rung::Tracepoint => "tp_btf",
            Rung::Fentry => "fentry",
            Rung::Kprobe => "kprobe",
        };
        write!(f, "{kind}/{}", self.name)
    }
}

/// What a program counts, as far as its skipped runs mean something of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Counts {
    /// Pages of the LRU and page tables.
    Lruvec,
    /// Kernel memory, sockets and swap.
    State,
    /// The same, where it interrupts the other one.
    NestedState,
    /// All else.
    Other,
}

/// One program to load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedProgram {
    /// Its name in the object.
    pub name: &'static str,
    /// Where it runs.
    pub hook: Hook,
    /// What it counts.
    pub counts: Counts,
    /// Why it is not loaded, and what cannot be seen without it.
    pub absent: Option<String>,
}

/// Something to be heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The tracepoint by which it is heard best, whether this kernel has it or not: the program on it has its name.
    pub name: &'static str,
    /// What is not seen where it cannot be heard; `None`: nothing is exact then.
    pub without: Option<&'static str>,
    /// Programs that hear it together, of one rung each, best first: the first that attaches is taken.
    pub ways: Vec<Vec<PlannedProgram>>,
    /// Ways that this kernel does not have, with the reason of each.
    pub refused: Vec<(Rung, String)>,
}

impl Choice {
    /// The rung of each way.
    pub fn rungs(&self) -> impl Iterator<Item = Rung> {
        self.ways.iter().filter_map(|way| Some(way.first()?.hook.rung))
    }

    /// Leaves out the ways that are of another rung.
    pub fn keep(&mut self, rung: Rung) {
        self.leave_out(|other| other != rung, "another was asked for");
    }

    /// Leaves out the ways of these rungs for this reason.
    pub fn leave_out(&mut self, is_out: impl Fn(Rung) -> bool, reason: &str) {
        let left_out = self.rungs().filter(|rung| is_out(*rung));
        let reasons: Vec<_> = left_out.map(|rung| (rung, reason.to_owned())).collect();
        self.ways
            .retain(|way| !way.iter().any(|program| is_out(program.hook.rung)));
        self.refused.extend(reasons);
        self.refused.sort_by_key(|(rung, _)| *rung);
    }

    /// The program that stands for what cannot be heard.
    pub fn absent(&self, reason: String) -> PlannedProgram {
        PlannedProgram {
            absent: Some(reason),
            ..planned(self.name, Rung::Tracepoint, self.name, Counts::Other)
        }
    }
}

/// Where a program may run.
enum At {
    /// At a tracepoint whose first argument points to this structure, if that is of interest.
    Tracepoint(&'static str, Option<&'static str>),
    /// At a function: the names that it has had, the structure that its first argument points to, and how many there are.
    Function(&'static [&'static str], &'static str, u32),
}

/// Programs that hear something together.
type Way = (Rung, &'static [(&'static str, Counts, At)]);

const LRUVEC: At = At::Function(
    &["__mod_memcg_lruvec_state", "mod_memcg_lruvec_state"],
    "lruvec",
    3,
);
const STATE: At = At::Function(&["__mod_memcg_state", "mod_memcg_state"], "mem_cgroup", 3);
const VICTIM: At = At::Function(&["mark_oom_victim"], "task_struct", 1);
const FLUSH: At = At::Function(&["cgroup_rstat_flush"], "cgroup", 1);

/// Changes of memory.
const MEMORY: &[Way] = &[
    (
        Rung::Tracepoint,
        &[
            (
                "mod_memcg_lruvec_state",
                Counts::Lruvec,
                At::Tracepoint("mod_memcg_lruvec_state", Some("mem_cgroup")),
            ),
            (
                "mod_memcg_state",
                Counts::State,
                At::Tracepoint("mod_memcg_state", Some("mem_cgroup")),
            ),
            (
                "mod_memcg_state_nested",
                Counts::NestedState,
                At::Tracepoint("mod_memcg_state", Some("mem_cgroup")),
            ),
        ],
    ),
    (
        Rung::Fentry,
        &[
            ("fentry_lruvec", Counts::Lruvec, LRUVEC),
            ("fentry_state", Counts::State, STATE),
        ],
    ),
    (
        Rung::Kprobe,
        &[
            ("kprobe_lruvec", Counts::Lruvec, LRUVEC),
            ("kprobe_state", Counts::State, STATE),
        ],
    ),
];

/// Kills for want of memory. Kernels before 6.8 pass the victim's number instead of the task.
const KILLS: &[Way] = &[
    (
        Rung::Tracepoint,
        &[(
            "mark_victim",
            Counts::Other,
            At::Tracepoint("mark_victim", Some("task_struct")),
        )],
    ),
    (Rung::Fentry, &[("fentry_victim", Counts::Other, VICTIM)]),
    (Rung::Kprobe, &[("kprobe_victim", Counts::Other, VICTIM)]),
];

/// When the kernel's files are up to date.
const FLUSHES: &[Way] = &[
    (
        Rung::Tracepoint,
        &[(
            "memcg_flush_stats",
            Counts::Other,
            At::Tracepoint("memcg_flush_stats", Some("mem_cgroup")),
        )],
    ),
    (Rung::Fentry, &[("fentry_flush", Counts::Other, FLUSH)]),
];

/// Something to be heard at the tracepoint of the program's own name.
macro_rules! at_tracepoint {
    ($name:literal) => {
        &[(
            Rung::Tracepoint,
            &[($name, Counts::Other, At::Tracepoint($name, None))],
        )]
    };
}

/// What else is heard, and what is not seen without it. Changes of memory and switches are at [`memory`] and first here.
const OTHERS: [(Option<&str>, &[Way]); 9] = [
    (None, at_tracepoint!("sched_switch")),
    (
        Some("a step that begins is told on its own from the next reading on only"),
        at_tracepoint!("cgroup_mkdir"),
    ),
    (
        Some("the removal of a cgroup is seen at the next reading only"),
        at_tracepoint!("cgroup_rmdir"),
    ),
    (
        Some("that the last process has ended is seen at the next look only"),
        at_tracepoint!("cgroup_notify_populated"),
    ),
    (
        Some("a task that is moved in is counted from its next switch only"),
        at_tracepoint!("cgroup_attach_task"),
    ),
    (
        Some("processes that start are not counted"),
        at_tracepoint!("sched_process_fork"),
    ),
    (
        Some("processes that end are not counted"),
        at_tracepoint!("sched_process_exit"),
    ),
    (Some("a kill for want of memory is not seen"), KILLS),
    (
        Some("the base of a cgroup that existed before stays within its bound"),
        FLUSHES,
    ),
];

/// Reasons as they are told.
pub fn told(reasons: &[(Rung, String)]) -> String {
    let each = reasons
        .iter()
        .map(|(rung, reason)| format!("{}: {reason}", rung.name()));
    each.collect::<Vec<_>>().join("; ")
}

/// How changes of memory are heard.
pub fn memory(btf: &Btf) -> Choice {
    choice(btf, None, MEMORY)
}

/// How all else is heard.
pub fn others(btf: &Btf) -> Vec<Choice> {
    OTHERS
        .iter()
        .map(|(without, ways)| choice(btf, *without, ways))
        .collect()
}

fn choice(btf: &Btf, without: Option<&'static str>, table: &[Way]) -> Choice {
    let (mut ways, mut refused) = (Vec::new(), Vec::new());
    for (rung, programs) in table {
        let planned: Result<Vec<_>, String> = programs
            .iter()
            .map(|(name, counts, at)| Ok(planned(name, *rung, found(btf, at)?, *counts)))
            .collect();
        match planned {
            Ok(way) => ways.push(way),
            Err(reason) => refused.push((*rung, reason)),
        }
    }
    Choice {
        name: table[0].1[0].0,
        without,
        ways,
        refused,
    }
}

fn planned(name: &'static str, rung: Rung, hook: &'static str, counts: Counts) -> PlannedProgram {
    PlannedProgram {
        name,
        hook: Hook { rung, name: hook },
        counts,
        absent: None,
    }
}

/// The hook that this kernel has, or why it has none.
fn found(btf: &Btf, at: &At) -> Result<&'static str, String> {
    match at {
        At::Tracepoint(name, _) if !btf.has_tracepoint(name) => {
            Err(format!("this kernel has no tracepoint {name}"))
        }
        At::Tracepoint(name, Some(first)) if btf.tracepoint_struct(name, 0).as_deref() != Some(first) => {
            Err(format!("this kernel's tracepoint {name} has other arguments"))
        }
        At::Tracepoint(name, _) => Ok(name),
        At::Function(names, first, arguments) => {
            let name = names
                .iter()
                .find(|name| btf.has_function(name, first, *arguments));
            let name =
                name.ok_or_else(|| format!("this kernel has no function {} of a known form", names[0]))?;
            reachable(btf, first).map_err(|missing| missing.to_string())?;
            Ok(name)
        }
    }
}

/// Whether what a program needs can be reached from the first argument.
fn reachable(btf: &Btf, first: &str) -> Result<(), super::btf::BtfError> {
    match first {
        "lruvec" => layout::lruvec_memcg(btf).map(drop),
        "task_struct" => layout::victims(btf).map(drop),
        _ => Ok(()),
    }
}
