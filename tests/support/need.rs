//! What a test needs of the machine, and what becomes of it where that is missing.
//!
//! The test returns early and libtest counts it as passed. `cargo xtask test` names a file in [`SKIPPED`] to which each
//! skip adds a line, and counts them as what they are; without it, the first skip of a process tells its reason.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

use crate::slurm::cgroups;
use crate::slurm::{CLIENT_LIMIT, PROGRAM_DIRS, run};

/// Names the file that collects the reasons of skipped tests.
const SKIPPED: &str = "SWBPF_TESTS_SKIPPED";

const BTF: &str = "/sys/kernel/btf/vmlinux";

const FREEZER: &str = "/sys/fs/cgroup/freezer";

/// What a cluster is made of, and what its jobs are driven with.
const SLURM_PROGRAMS: [&str; 12] = [
    "ip",
    "mariadb-install-db",
    "mariadbd",
    "munged",
    "sacct",
    "sacctmgr",
    "sbatch",
    "scontrol",
    "slurmctld",
    "slurmd",
    "slurmdbd",
    "srun",
];

const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// Whether kernel programs and cgroups can be made here; where not, the calling test counts as skipped and should
/// return at once.
#[must_use]
pub fn need_bpf() -> bool {
    let lacking = lacking();
    if let Some(reason) = lacking {
        skipped(reason);
    }
    lacking.is_none()
}

/// Whether a Slurm of one's own can be started here; where not, the calling test counts as skipped and should return at
/// once.
#[must_use]
pub fn need_slurm() -> bool {
    let lacking = lacking_for_slurm();
    if let Some(reason) = &lacking {
        skipped(reason);
    }
    lacking.is_none()
}

/// The library that gives a program another clock; where there is none, the calling test counts as skipped and should return at
/// once.
#[must_use]
pub fn need_fake_time() -> Option<PathBuf> {
    let dirs = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let library = dirs
        .map(|dir| dir.path().join("faketime/libfaketime.so.1"))
        .find(|path| path.exists());
    if library.is_none() {
        skipped("a test with another clock needs libfaketime");
    }
    library
}

/// Counts the calling test as skipped for want of `reason`'s subject.
///
/// # Panics
///
/// Where the file for it cannot be written.
pub fn skipped(reason: &str) {
    static TELL: Once = Once::new();
    if let Some(path) = env::var_os(SKIPPED) {
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut file| file.write_all(format!("{reason}\n").as_bytes()))
            .expect("skips are written down");
    } else {
        // Not `eprintln!`, which libtest keeps to itself.
        TELL.call_once(|| drop(writeln!(io::stderr(), "skipped: {reason}")));
    }
}

fn lacking() -> Option<&'static str> {
    let held = effective_capabilities();
    let has = |capability: u32| held & (1 << capability) != 0;
    if !rustix::process::geteuid().is_root() {
        Some("live tests need root")
    } else if !(has(CAP_SYS_ADMIN) && has(CAP_BPF) && has(CAP_PERFMON)) {
        Some("live tests need CAP_SYS_ADMIN, CAP_BPF and CAP_PERFMON")
    } else if !Path::new(BTF).exists() {
        Some("live tests need a kernel with BTF (CONFIG_DEBUG_INFO_BTF)")
    } else {
        None
    }
}

fn lacking_for_slurm() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("tests with Slurm need root".to_owned());
    }
    let is_missing = |program: &&str| {
        let mut places = PROGRAM_DIRS.iter().map(|dir| Path::new(dir).join(program));
        !places.any(|path| path.exists())
    };
    let missing: Vec<_> = SLURM_PROGRAMS.into_iter().filter(is_missing).collect();
    if !missing.is_empty() {
        return Some(format!("tests with Slurm need {}", missing.join(", ")));
    }
    if !(Path::new(FREEZER).exists() || cgroups::version() == 2) {
        return Some("tests with Slurm need cgroup version 2, or the freezer of version 1".to_owned());
    }
    if !cgroups::counts_memory() {
        return Some("tests with Slurm need cgroups that count memory".to_owned());
    }
    // Its help has the option only where it is built for several on one host.
    let help = run(Command::new("slurmd").arg("-h"), CLIENT_LIMIT);
    let names_node = format!("{}{}", help.stdout, help.stderr).contains("-N node");
    (!names_node).then(|| "tests with Slurm need a slurmd built with --enable-multiple-slurmd".to_owned())
}

fn effective_capabilities() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
