//! Reads the facts. Each read is bounded in length, each call of a program or a library in time; what fails has its reason.

mod agent;
mod gpus;
mod programs;

use std::io;
use std::path::{Path, PathBuf};

use super::facts::{Bpf, Cgroups, Facts, Jobs, Known, Machine, MemoryHierarchy, Refusal};
use crate::cli::ForcedSource;
use crate::error::{Error, NO_PROC};
use crate::job::cgroup::{Cgroup, CgroupError, Controller, Hierarchies, OwnCgroup, Version};
use crate::job::{kernfile, slurm::Slurm};
use crate::kernel::layout::tick_ns;
use crate::kernel::support;

/// The kernel's description of its own types.
pub const BTF: &str = "/sys/kernel/btf/vmlinux";

const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
/// The mode stands in brackets, as `none voluntary (full)`.
const PREEMPTION: &str = "/sys/kernel/debug/sched/preempt";
const JIT: &str = "/proc/sys/net/core/bpf_jit_enable";
const UNPRIVILEGED: &str = "/proc/sys/kernel/unprivileged_bpf_disabled";
const LOCKDOWN: &str = "/sys/kernel/security/lockdown";
const MOUNTS: &str = "/proc/self/mountinfo";

/// Longest line of a file with one value.
const MAX_VALUE: u64 = 4096;
/// Longest table of mounts.
const MAX_MOUNTS: u64 = 64 << 20;

/// Reads them all; the programs are tried by the kind of hook that is asked for, else by the best. The agent is met at `socket`.
pub async fn facts(socket: &Path, force: Option<ForcedSource>) -> Facts {
    let mut kernel = support::Facts::gather();
    let bpf = bpf(&kernel);
    let hierarchies = Hierarchies::detect();
    let (programs, batch_bound_bytes) =
        programs::programs(&mut kernel, &bpf, hierarchies.as_ref().ok(), force);
    Facts {
        machine: machine(&kernel, batch_bound_bytes),
        bpf,
        programs,
        cgroups: hierarchies.as_ref().map(cgroups).map_err(|error| match error {
            CgroupError::NoProc => NO_PROC.to_owned(),
            other => other.to_string(),
        }),
        run: run(hierarchies),
        slurm: Slurm::default().settings().await,
        gpus: gpus::gpus(),
        agent: agent::agent(socket).await,
    }
}

fn machine(kernel: &support::Facts, batch_bound_bytes: Option<u64>) -> Machine {
    let uname = rustix::system::uname();
    let told = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    Machine {
        hostname: told(uname.nodename()),
        release: kernel.release.clone(),
        is_real_time: kernel.is_real_time,
        build: told(uname.version()),
        architecture: told(uname.machine()),
        cpus: kernel.cpus,
        batch_bound_bytes,
        page_bytes: rustix::param::page_size() as u64,
        tick_ns: tick_ns(),
        clock: value(CLOCK),
        preemption: value(PREEMPTION).and_then(|text| within(&text, '(', ')', PREEMPTION)),
    }
}

fn bpf(kernel: &support::Facts) -> Bpf {
    Bpf {
        btf: programs::btf(&kernel.btf),
        jit: number(JIT),
        unprivileged: number(UNPRIVILEGED),
        lockdown: value(LOCKDOWN).and_then(|text| within(&text, '[', ']', LOCKDOWN)),
        lacking: kernel.lacking().map(|(name, _)| name).collect(),
        is_withheld: kernel.lacking().any(|(_, is_withheld)| is_withheld),
        is_of_host: kernel.is_of_host,
        file_systems: kernfile::read_up_to(Path::new(MOUNTS), MAX_MOUNTS)
            .map(|table| bpf_mounts(&table))
            .map_err(|error| cannot_read(MOUNTS, &error)),
    }
}

fn cgroups(hierarchies: &Hierarchies) -> Cgroups {
    let memory = hierarchies
        .version_of(Controller::Memory)
        .zip(hierarchies.mount_point_of(Controller::Memory));
    let jobs = hierarchies.slurm_jobs().map(|jobs| Jobs {
        all: jobs.len(),
        without_memory: jobs.iter().filter(|job| !counts_memory(&job.cgroup)).count(),
    });
    Cgroups {
        has_v1: hierarchies.has(Version::V1),
        has_v2: hierarchies.has(Version::V2),
        memory: memory.map(|(version, point)| MemoryHierarchy {
            version,
            point: point.to_owned(),
        }),
        sees_own: !matches!(hierarchies.own_cgroup(), Err(CgroupError::NotVisible { .. })),
        jobs: jobs.map_err(|error| error.to_string()),
    }
}

/// Whether a cgroup can be made for a command.
fn run(hierarchies: Result<Hierarchies, impl Into<Error>>) -> Result<(), Refusal> {
    let tried = hierarchies
        .map_err(Into::into)
        .and_then(|hierarchies| Ok(OwnCgroup::try_out(&hierarchies)?));
    tried.map_err(|error: Error| match error {
        Error::NoOwnCgroup { path, why, way } => Refusal {
            reason: format!("cannot make {}: {why}", path.display()),
            way: Some(way),
        },
        other => Refusal {
            reason: other.to_string(),
            way: None,
        },
    })
}

/// Whether a cgroup has the files of memory: on version 2 its directory alone does not say so.
fn counts_memory(cgroup: &Cgroup) -> bool {
    let dir = cgroup.dir(Controller::Memory);
    dir.is_some_and(|dir| dir.path.join("memory.stat").exists())
}

/// The single line of a file.
fn value(path: &str) -> Known<String> {
    let bytes =
        kernfile::read_up_to(Path::new(path), MAX_VALUE).map_err(|error| cannot_read(path, &error))?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

fn number(path: &str) -> Known<u64> {
    let text = value(path)?;
    kernfile::number(&text).ok_or_else(|| format!("{path} has no number: {text:?}"))
}

/// What stands between two marks in the text of a file.
fn within(text: &str, begin: char, end: char, path: &str) -> Known<String> {
    let found = text
        .split_once(begin)
        .and_then(|(_, rest)| rest.split_once(end))
        .map(|(found, _)| found.to_owned());
    found.ok_or_else(|| format!("{path} is not understood: {text:?}"))
}

/// Whether `/proc` is there.
fn has_proc() -> bool {
    Path::new("/proc/self").exists()
}

fn cannot_read(path: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound if path.starts_with("/proc/") && !has_proc() => NO_PROC.to_owned(),
        io::ErrorKind::NotFound => format!("there is no {path} here"),
        io::ErrorKind::PermissionDenied => format!("{path} may not be read by this user"),
        _ => format!("cannot read {path}: {error}"),
    }
}

/// Where bpffs is mounted, by a table of mounts as of `/proc/PID/mountinfo`.
fn bpf_mounts(table: &[u8]) -> Vec<PathBuf> {
    let text = String::from_utf8_lossy(table);
    let points = text.lines().filter_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let point = mount.split(' ').nth(4)?;
        kind.starts_with("bpf ").then(|| PathBuf::from(point))
    });
    points.collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::job::cgroup::fake::FakeHost;

    #[test]
    fn jobs_are_told_apart_by_whether_their_memory_is_counted() {
        let jobs = |host: &FakeHost| cgroups(&host.hierarchies()).jobs.expect("jobs");
        let v1 = FakeHost::v1()
            .file("memory/slurm/uid_1000/job_7/memory.stat", "")
            .dir("freezer/slurm/uid_1000/job_7/step_batch")
            .dir("freezer/slurm/uid_1000/job_77/step_0");
        assert_eq!((jobs(&v1).all, jobs(&v1).without_memory), (2, 1));
        let v2 = FakeHost::v2()
            .file("unified/system.slice/slurmstepd.scope/job_7/memory.stat", "")
            .dir("unified/system.slice/slurmstepd.scope/job_8/step_0")
            .dir("unified/system.slice/slurmstepd.scope/job_9/step_0");
        assert_eq!((jobs(&v2).all, jobs(&v2).without_memory), (3, 2));
        assert_eq!(jobs(&FakeHost::v2()).all, 0);
    }

    #[test]
    fn layouts_are_told() {
        let told = |host: &FakeHost| {
            let found = cgroups(&host.hierarchies());
            let memory = found.memory.map(|memory| (memory.version, memory.point));
            (found.has_v1, found.has_v2, memory)
        };
        let v1 = FakeHost::v1();
        assert_eq!(told(&v1), (true, false, Some((Version::V1, v1.at("memory")))));
        let v2 = FakeHost::v2();
        assert_eq!(told(&v2), (false, true, Some((Version::V2, v2.at("unified")))));
        let hybrid = FakeHost::v1().unified("");
        assert_eq!(
            told(&hybrid),
            (true, true, Some((Version::V1, hybrid.at("memory"))))
        );
        assert_eq!(told(&FakeHost::new().unified("cpu pids")), (false, true, None));
    }

    #[test]
    fn words_in_brackets_are_found() {
        let within = |text| within(text, '[', ']', "x");
        assert_eq!(
            within("none [integrity] confidentiality").as_deref(),
            Ok("integrity")
        );
        assert!(within("none").is_err_and(|reason| reason.contains("not understood")));
        assert!(within("]none[").is_err());
    }

    #[test]
    fn only_bpffs_is_bpffs() {
        let table = b"36 35 0:32 / /sys/fs/bpf rw,nosuid shared:9 - bpf bpf rw,mode=700\n\
            37 35 0:33 / /tmp/bpf rw - tmpfs bpf rw\n\n - bpf \nx";
        assert_eq!(bpf_mounts(table), [PathBuf::from("/sys/fs/bpf")]);
    }

    #[test]
    fn a_file_that_is_too_long_or_odd_has_a_reason() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("x");
        let told = |bytes: &[u8]| {
            fs::write(&path, bytes).expect("a file");
            number(path.to_str().expect("text"))
        };
        assert_eq!(told(b"1\n"), Ok(1));
        assert!(told(b"\x1b[2J").is_err_and(|reason| reason.contains("no number")));
        assert!(told(&[b'1'; 5000]).is_err_and(|reason| reason.contains("longer")));
        fs::remove_file(&path).expect("gone");
        assert!(number(path.to_str().expect("text")).is_err_and(|reason| reason.contains("there is no")));
    }
}
