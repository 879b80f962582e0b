//! Facts of this host, read once; then a plan with a reason for each choice.

use std::{fs, io, path::PathBuf};

use swbpf_common::offsets::Offsets;

use super::{
    btf::Btf,
    layout::{self, Hierarchy},
};
use crate::{error::Error, job::cgroup::Version};

const BTF_PATH: &str = "/sys/kernel/btf/vmlinux";
const LOCKDOWN_PATH: &str = "/sys/kernel/security/lockdown";
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;
/// Anonymous pages that each CPU may keep to itself on a host of more CPUs than [`BATCH_ABOVE_CPUS`]: the counter of a job
/// that faults on all of them would otherwise be a single contended cache line.
const BATCH_PAGES: u64 = 16;
const BATCH_ABOVE_CPUS: usize = 32;

/// What this host is.
pub struct Facts {
    /// Kernel release.
    pub release: String,
    /// Its BTF, as it stands in the file.
    pub btf: Result<Vec<u8>, io::Error>,
    /// Effective capabilities of this process, one bit each.
    pub capabilities: u64,
    /// Lockdown mode, where the file that tells it can be read.
    pub lockdown: Option<String>,
    /// Number of CPUs that are on.
    pub cpus: usize,
}

impl Facts {
    /// Reads them.
    pub fn gather() -> Self {
        let uname = rustix::system::uname();
        Self {
            release: uname.release().to_string_lossy().into_owned(),
            btf: fs::read(BTF_PATH),
            capabilities: effective_capabilities(
                &fs::read_to_string("/proc/self/status").unwrap_or_default(),
            ),
            lockdown: fs::read_to_string(LOCKDOWN_PATH)
                .ok()
                .as_deref()
                .and_then(lockdown_mode),
            cpus: aya::util::online_cpus().map_or(1, |cpus| cpus.len()),
        }
    }

    fn has(&self, capability: u32) -> bool {
        self.capabilities >> capability & 1 == 1
    }
}

/// The word of `CapEff` in a process's status file.
fn effective_capabilities(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

/// The bracketed word of `none [integrity] confidentiality`.
fn lockdown_mode(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(mode, _)| mode.to_owned())
}

/// One program to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedProgram {
    /// Its name in the object.
    pub name: &'static str,
    /// The tracepoint that it is on.
    pub hook: &'static str,
    /// Why it is not loaded, and what cannot be seen without it.
    pub absent: Option<String>,
}

/// What to load, and with which constants.
pub struct Plan {
    /// Kernel release.
    pub release: String,
    /// The kernel's BTF, as it stands in the file.
    pub btf: Vec<u8>,
    /// Layout of this kernel.
    pub offsets: Offsets,
    /// The programs.
    pub programs: Vec<PlannedProgram>,
    /// How far a peak can be below the truth because of what the CPUs keep to themselves, in pages.
    pub batch_bound_pages: u64,
}

/// Hooks without which nothing is exact.
const REQUIRED: [&str; 3] = ["mod_memcg_lruvec_state", "mod_memcg_state", "sched_switch"];

/// Counts what interrupts the program on the same hook.
const NESTED: PlannedProgram = PlannedProgram {
    name: "mod_memcg_state_nested",
    hook: "mod_memcg_state",
    absent: None,
};

/// Hooks that each add something, and what is not seen without them.
const OPTIONAL: [(&str, &str); 8] = [
    (
        "cgroup_mkdir",
        "a step that begins is told on its own from the next reading on only",
    ),
    (
        "cgroup_rmdir",
        "the removal of a cgroup is seen at the next reading only",
    ),
    (
        "cgroup_notify_populated",
        "that the last process has ended is seen at the next look only",
    ),
    (
        "cgroup_attach_task",
        "a task that is moved in is counted from its next switch only",
    ),
    ("sched_process_fork", "processes that start are not counted"),
    ("sched_process_exit", "processes that end are not counted"),
    ("mark_victim", "a kill for want of memory is not seen"),
    (
        "memcg_flush_stats",
        "the base of a cgroup that existed before stays within its bound",
    ),
];

/// Decides from the facts, or says what is missing; takes the BTF out of them. Jobs are told apart by `hierarchy`, which is
/// of `version`.
pub fn plan(facts: &mut Facts, hierarchy: Hierarchy, version: Version) -> Result<Plan, Error> {
    if let Some(mode) = facts.lockdown.as_ref().filter(|mode| *mode == "confidentiality") {
        return Err(Error::Lockdown { mode: mode.clone() });
    }
    for (capability, name) in [(CAP_BPF, "CAP_BPF"), (CAP_PERFMON, "CAP_PERFMON")] {
        if !facts.has(capability) && !facts.has(CAP_SYS_ADMIN) {
            return Err(Error::MissingCapability { capability: name });
        }
    }
    let taken = std::mem::replace(&mut facts.btf, Err(io::Error::from(io::ErrorKind::NotFound)));
    let blob = taken.map_err(|source| Error::NoBtf {
        path: PathBuf::from(BTF_PATH),
        source,
    })?;
    let btf = Btf::parse(&blob).map_err(anyhow::Error::from)?;
    if let Some(hook) = REQUIRED.into_iter().find(|hook| !btf.has_tracepoint(hook)) {
        return Err(Error::HookAbsent {
            hook: hook.into(),
            release: facts.release.clone(),
        });
    }
    let batch_pages = if facts.cpus > BATCH_ABOVE_CPUS {
        BATCH_PAGES
    } else {
        0
    };
    let offsets = layout::offsets(&btf, hierarchy, version, batch_pages).map_err(anyhow::Error::from)?;
    let programs = programs(&btf);
    Ok(Plan {
        btf: blob,
        release: facts.release.clone(),
        offsets,
        programs,
        batch_bound_pages: batch_pages * facts.cpus as u64,
    })
}

fn programs(btf: &Btf) -> Vec<PlannedProgram> {
    let named = |hook, absent| PlannedProgram {
        name: hook,
        hook,
        absent,
    };
    let required = REQUIRED.into_iter().map(|hook| named(hook, None));
    let optional = OPTIONAL.into_iter().map(|(hook, without)| {
        named(
            hook,
            refusal(btf, hook).map(|reason| format!("{reason}: {without}")),
        )
    });
    required.chain([NESTED]).chain(optional).collect()
}

/// Why an optional hook cannot be used.
fn refusal(btf: &Btf, hook: &str) -> Option<String> {
    if !btf.has_tracepoint(hook) {
        return Some("this kernel has no such hook".to_owned());
    }
    // Kernels before 6.8 pass the victim's number instead of the task.
    let wants_task =
        hook == "mark_victim" && btf.tracepoint_struct(hook, 0).as_deref() != Some("task_struct");
    wants_task.then(|| "this kernel's hook has other arguments".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            release: "6.1".into(),
            btf: Err(io::Error::from(io::ErrorKind::NotFound)),
            capabilities: u64::MAX,
            lockdown: None,
            cpus: 2,
        }
    }

    #[test]
    fn missing_capabilities_are_named() {
        let code = |capabilities| {
            plan(
                &mut Facts {
                    capabilities,
                    ..facts()
                },
                Hierarchy::Unified,
                Version::V2,
            )
            .err()
            .map(|error| error.to_string())
        };
        assert!(code(0).is_some_and(|line| line.contains("CAP_BPF")));
        assert!(code(1 << CAP_BPF).is_some_and(|line| line.contains("CAP_PERFMON")));
        assert!(code(1 << CAP_SYS_ADMIN).is_some_and(|line| line.contains("BTF")));
    }

    #[test]
    fn lockdown_is_told_before_all_else() {
        let mut locked = Facts {
            lockdown: Some("confidentiality".into()),
            capabilities: 0,
            ..facts()
        };
        assert!(matches!(
            plan(&mut locked, Hierarchy::Unified, Version::V2),
            Err(Error::Lockdown { .. })
        ));
    }

    #[test]
    fn garbage_in_place_of_btf_is_an_error() {
        assert!(
            plan(
                &mut Facts {
                    btf: Ok(vec![7; 100]),
                    ..facts()
                },
                Hierarchy::Unified,
                Version::V2
            )
            .is_err()
        );
    }

    #[test]
    fn files_are_read_as_the_kernel_writes_them() {
        assert_eq!(
            effective_capabilities("Name:\tx\nCapEff:\t000001ffffffffff\n"),
            0x1ff_ffff_ffff
        );
        assert_eq!(effective_capabilities("CapEff: zz"), 0);
        assert_eq!(
            lockdown_mode("none [integrity] confidentiality\n").as_deref(),
            Some("integrity")
        );
        assert_eq!(lockdown_mode("none"), None);
    }
}
