//! Facts of this host, read once; then a plan with a reason for each choice.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use swbpf_common::offsets::Offsets;

use super::{
    btf::Btf,
    ladder::{self, Choice, Rung},
    layout::{self, Hierarchy},
};
use crate::{
    error::Error,
    job::{cgroup::Version, kernfile},
};

const BTF_PATH: &str = "/sys/kernel/btf/vmlinux";
/// Longest description: those of distributions have some 6 MiB.
const MAX_BTF_BYTES: u64 = 64 << 20;
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
    /// Whether it is a kernel for real time (`CONFIG_PREEMPT_RT`).
    pub is_real_time: bool,
    /// Number of CPUs that are on.
    pub cpus: usize,
}

impl Facts {
    /// Reads them.
    pub fn gather() -> Self {
        let uname = rustix::system::uname();
        Self {
            release: uname.release().to_string_lossy().into_owned(),
            is_real_time: uname.version().to_string_lossy().contains("PREEMPT_RT"),
            btf: kernfile::read_up_to(Path::new(BTF_PATH), MAX_BTF_BYTES),
            capabilities: effective_capabilities(
                &fs::read_to_string("/proc/self/status").unwrap_or_default(),
            ),
            lockdown: kernfile::read_text(Path::new(LOCKDOWN_PATH))
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

/// What to load, and with which constants.
pub struct Plan {
    /// Kernel release.
    pub release: String,
    /// The kernel's BTF, as it stands in the file.
    pub btf: Vec<u8>,
    /// Layout of this kernel.
    pub offsets: Offsets,
    /// How changes of memory are heard: its rung is the rung of all numbers.
    pub memory: Choice,
    /// What else is heard.
    pub others: Vec<Choice>,
    /// Whether the kernel lets others run where it holds the locks of memory: then a function can be entered anew on a CPU
    /// where a program on it has not ended.
    pub is_preemptible: bool,
    /// How far a peak can be below the truth because of what the CPUs keep to themselves, in pages.
    pub batch_bound_pages: u64,
}

impl Plan {
    /// The same on this rung alone; what has no hook of its kind is heard by a tracepoint.
    pub fn on(mut self, rung: Rung) -> Result<Self, Error> {
        self.memory.keep(rung);
        for other in &mut self.others {
            let has_rung = other.rungs().any(|other| other == rung);
            other.keep(if has_rung { rung } else { Rung::Tracepoint });
        }
        if self.memory.ways.is_empty() {
            return Err(self.hook_absent(&self.memory));
        }
        Ok(self)
    }

    /// Something without which nothing is exact, and that this kernel has no hook for.
    fn missing(&self) -> Option<&Choice> {
        let all = [&self.memory].into_iter().chain(&self.others);
        let mut required = all.filter(|choice| choice.without.is_none());
        required.find(|choice| choice.ways.is_empty())
    }

    /// That something required cannot be heard.
    pub fn hook_absent(&self, choice: &Choice) -> Error {
        Error::HookAbsent {
            hook: choice.name.into(),
            release: self.release.clone(),
            reasons: ladder::told(&choice.refused),
        }
    }
}

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
    let batch_pages = if facts.cpus > BATCH_ABOVE_CPUS {
        BATCH_PAGES
    } else {
        0
    };
    let mut plan = Plan {
        memory: ladder::memory(&btf),
        others: ladder::others(&btf),
        btf: blob,
        release: facts.release.clone(),
        offsets: Offsets::default(),
        is_preemptible: facts.is_real_time,
        batch_bound_pages: batch_pages * facts.cpus as u64,
    };
    if let Some(missing) = plan.missing() {
        return Err(plan.hook_absent(missing));
    }
    // A kernel without the hooks may lack the types too: that it has no hook says more.
    plan.offsets = layout::offsets(&btf, hierarchy, version, batch_pages).map_err(anyhow::Error::from)?;
    Ok(plan)
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
            is_real_time: false,
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
