//! Facts of this host, read once; then a plan with a reason for each choice.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use swbpf_common::offsets::Offsets;

use super::{
    btf::{Btf, BtfError},
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
/// By which kprobes are attached.
const KPROBE_PATH: &str = "/sys/bus/event_source/devices/kprobe";
const NO_KPROBES: &str = "this kernel has no kprobes (CONFIG_KPROBES, CONFIG_KPROBE_EVENTS)";
const USER_NAMESPACE_PATH: &str = "/proc/self/ns/user";
/// The initial user namespace: its number is fixed in the kernel (`PROC_USER_INIT_INO`).
const HOST_USER_NAMESPACE: u64 = 0xEFFF_FFFD;
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
    /// Those that neither root nor `setcap` would give it.
    pub withheld: u64,
    /// Whether this process is in the user namespace of the host, in which alone they hold for BPF; true where it is not told.
    pub is_of_host: bool,
    /// Whether a kprobe can be attached.
    pub has_kprobes: bool,
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
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        Self {
            release: uname.release().to_string_lossy().into_owned(),
            is_real_time: uname.version().to_string_lossy().contains("PREEMPT_RT"),
            btf: kernfile::read_up_to(Path::new(BTF_PATH), MAX_BTF_BYTES),
            // Known without /proc, too.
            capabilities: rustix::thread::capabilities(None).map_or(0, |sets| sets.effective.bits()),
            withheld: if rustix::process::geteuid().is_root() {
                u64::MAX
            } else {
                mask(&status, "CapBnd:").map_or(0, |bounding| !bounding)
            },
            is_of_host: fs::metadata(USER_NAMESPACE_PATH)
                .map_or(true, |namespace| namespace.ino() == HOST_USER_NAMESPACE),
            has_kprobes: Path::new(KPROBE_PATH).exists(),
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

    /// What the kernel programs need and this process has not, each with whether it is withheld.
    pub fn lacking(&self) -> impl Iterator<Item = (&'static str, bool)> {
        let needed = [(CAP_BPF, "CAP_BPF"), (CAP_PERFMON, "CAP_PERFMON")];
        let lacking = needed
            .into_iter()
            .filter(|(capability, _)| !self.has(*capability) && !self.has(CAP_SYS_ADMIN));
        lacking.map(|(capability, name)| (name, self.withheld >> capability & 1 == 1))
    }
}

/// The set of capabilities behind `key` in a process's status file.
fn mask(status: &str, key: &str) -> Option<u64> {
    let mask = status.lines().find_map(|line| line.strip_prefix(key))?;
    u64::from_str_radix(mask.trim(), 16).ok()
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
    /// The only rung that may be used, where one was asked for.
    asked: Option<Asked>,
}

/// A rung that was asked for.
#[derive(Clone, Copy)]
struct Asked {
    rung: Rung,
    /// The one that would be tried first.
    instead: Option<Rung>,
}

impl Plan {
    /// The same on this rung alone; what has no hook of its kind is heard by a tracepoint.
    pub fn on(mut self, rung: Rung) -> Result<Self, Error> {
        self.asked = Some(Asked {
            rung,
            instead: self.memory.rungs().find(|other| *other != rung),
        });
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
        if let Some(Asked { rung, instead }) = self.asked
            && let Some((_, why)) = choice.refused.iter().rfind(|(refused, _)| *refused == rung)
        {
            return Error::RungRefused {
                asked: rung.name(),
                why: why.clone(),
                instead: instead.map(Rung::name),
            };
        }
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
    if !facts.is_of_host {
        return Err(Error::UserNamespace);
    }
    if let Some((capability, is_withheld)) = facts.lacking().next() {
        return Err(Error::MissingCapability {
            capability,
            is_withheld,
        });
    }
    let taken = std::mem::replace(&mut facts.btf, Err(io::Error::from(io::ErrorKind::NotFound)));
    let blob = taken.map_err(no_btf)?;
    let btf = Btf::parse(&blob).map_err(|error| bad_btf(&blob, &error))?;
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
        asked: None,
    };
    if !facts.has_kprobes {
        for choice in [&mut plan.memory].into_iter().chain(&mut plan.others) {
            choice.leave_out(|rung| rung == Rung::Kprobe, NO_KPROBES);
        }
    }
    if let Some(missing) = plan.missing() {
        return Err(plan.hook_absent(missing));
    }
    // A kernel without the hooks may lack the types too: that it has no hook says more.
    plan.offsets = layout::offsets(&btf, hierarchy, version, batch_pages).map_err(anyhow::Error::from)?;
    Ok(plan)
}

/// That the description of the kernel's types cannot be read.
fn no_btf(source: io::Error) -> Error {
    let path = PathBuf::from(BTF_PATH);
    match source.kind() {
        io::ErrorKind::InvalidData => Error::BadBtf {
            path,
            length: format!("more than {MAX_BTF_BYTES} bytes"),
            why: "it is longer than that of any kernel".to_owned(),
        },
        _ => Error::NoBtf { path, source },
    }
}

/// That this does not describe the kernel's types.
pub fn bad_btf(blob: &[u8], error: &BtfError) -> Error {
    Error::BadBtf {
        path: PathBuf::from(BTF_PATH),
        length: format!("{} bytes", blob.len()),
        why: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            release: "6.1".into(),
            btf: Err(io::Error::from(io::ErrorKind::NotFound)),
            capabilities: u64::MAX,
            withheld: 0,
            is_of_host: true,
            has_kprobes: true,
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

    fn refusal(facts: Facts) -> Error {
        let mut facts = facts;
        match plan(&mut facts, Hierarchy::Unified, Version::V2) {
            Ok(_) => panic!("there is a plan"),
            Err(error) => error,
        }
    }

    #[test]
    fn root_that_was_stripped_is_not_told_to_become_root() {
        let told = |withheld| {
            let error = refusal(Facts {
                capabilities: 0,
                withheld,
                ..facts()
            });
            assert_eq!(error.exit_code(), 78);
            error.to_string()
        };
        assert!(told(0).contains("run as root") && told(0).contains("setcap"));
        for withheld in [u64::MAX, 1 << CAP_BPF] {
            let told = told(withheld);
            assert!(
                told.contains("--cap-add BPF") && !told.contains("run as root"),
                "{told}"
            );
        }
    }

    #[test]
    fn capabilities_of_a_user_namespace_do_not_count() {
        let error = refusal(Facts {
            is_of_host: false,
            ..facts()
        });
        assert_eq!(error.exit_code(), 78);
        assert!(error.to_string().contains("user namespace"), "{error}");
    }

    #[test]
    fn what_stands_in_place_of_btf_is_told_with_its_length() {
        for (btf, what) in [(vec![7; 100], "(100 bytes)"), (Vec::new(), "(0 bytes)")] {
            let error = refusal(Facts {
                btf: Ok(btf),
                ..facts()
            });
            assert_eq!(error.exit_code(), 70);
            let told = error.to_string();
            assert!(
                told.contains(BTF_PATH) && told.contains(what) && told.contains("unmount"),
                "{told}"
            );
        }
    }

    #[test]
    fn a_file_too_long_for_btf_is_told_as_such() {
        let error = refusal(Facts {
            btf: Err(io::Error::new(io::ErrorKind::InvalidData, "longer than x")),
            ..facts()
        });
        assert_eq!(error.exit_code(), 70);
        let told = error.to_string();
        assert!(
            told.contains("more than 67108864 bytes") && told.contains("unmount") && !told.contains("no BTF"),
            "{told}"
        );
    }

    #[test]
    fn files_are_read_as_the_kernel_writes_them() {
        let status = "Name:\tx\nCapEff:\t000001ffffffffff\nCapBnd:\t0\n";
        assert_eq!(mask(status, "CapEff:"), Some(0x1ff_ffff_ffff));
        assert_eq!(mask(status, "CapBnd:"), Some(0));
        assert_eq!(mask("CapEff: zz", "CapEff:"), None);
        assert_eq!(
            lockdown_mode("none [integrity] confidentiality\n").as_deref(),
            Some("integrity")
        );
        assert_eq!(lockdown_mode("none"), None);
    }
}
