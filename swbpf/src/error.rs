//! What can go wrong: one line each, first what failed, then what to do next.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;

/// Exit codes and their meaning, as `--help` and `docs/exit-codes.md` list them.
///
/// From 65 to 78 they lie in the range of `sysexits.h`, with its number where it has a word for the case.
pub const EXIT_CODES: &[(u8, &str)] = &[
    (0, "done"),
    (1, "another failure, told on standard error"),
    (2, "the command line is not understood, or means several jobs"),
    (65, "the job has not started"),
    (
        66,
        "the cgroup is gone, the path is not a cgroup, or the job has ended",
    ),
    (67, "no such process, job or step, or nothing is known of it"),
    (68, "the job runs on other nodes"),
    (69, "the kernel is locked down"),
    (70, "the kernel has no BTF"),
    (71, "the kernel lacks a hook"),
    (72, "no cgroup hierarchy is mounted, or none has the controller"),
    (73, "the output cannot be written"),
    (75, "the table of tracked cgroups is full"),
    (76, "a node of the job did not answer"),
    (77, "permission denied, or the job is another user's"),
    (78, "a capability is missing"),
    (126, "run: the command cannot be executed"),
    (127, "run: the command is not found"),
];

/// What [`EXIT_CODES`] leaves open of `run`.
pub const EXIT_CODES_OF_RUN: &str = "`run` returns the command's own exit code, and 128+N where signal N ended \
     it. A code of sw-bpf's own says that the command was not started.\n\n\
     Codes 69, 70, 71 and 78 are met with `--force-source kernel`: else sw-bpf samples, and tells the reason as \
     `probes.reason`.";

/// The same of `doctor`.
pub const EXIT_CODES_OF_DOCTOR: &str = "`doctor` returns 0 where every number is exact, 1 where some are sampled, bounded, \
     missing or costly or something could not be looked at, and 2 where nothing can be measured.";

/// Begin of a line on standard error that tells no failure: those begin with `sw-bpf: ` alone.
pub const NOTE: &str = "sw-bpf: note: ";

/// A failure that ends sw-bpf, or the reason why it falls back to sampling.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command line is not understood, or asks for help.
    #[error(transparent)]
    Usage(#[from] clap::Error),
    /// The process lacks a capability.
    #[error(
        "{capability} is missing, which the kernel programs need: run as root, or once \
         `setcap cap_bpf,cap_perfmon+ep` on sw-bpf"
    )]
    MissingCapability {
        /// Its name, as `CAP_BPF`.
        capability: &'static str,
    },
    /// Lockdown forbids tracing programs.
    #[error(
        "the kernel is locked down ({mode}) and refuses tracing programs: boot with lockdown=integrity or \
         without lockdown"
    )]
    Lockdown {
        /// The mode, as `/sys/kernel/security/lockdown` names it.
        mode: String,
    },
    /// The kernel does not describe its types.
    #[error("no BTF in {path:?}: {source}: use a kernel built with CONFIG_DEBUG_INFO_BTF=y")]
    NoBtf {
        /// Where it was looked for.
        path: PathBuf,
        /// Why it was not found.
        source: io::Error,
    },
    /// The kernel has no such hook, nor what could stand for it.
    #[error(
        "Linux {release} has no hook {hook:?} ({reasons}): use Linux 5.14 or newer with fentry or kprobes, or 6.13"
    )]
    HookAbsent {
        /// The hook.
        hook: String,
        /// Release of the running kernel.
        release: String,
        /// Why each of the hooks that could stand for it cannot.
        reasons: String,
    },
    /// No hierarchy is mounted at all.
    #[error("no cgroup hierarchy is mounted; mount one: `mount -t cgroup2 none /sys/fs/cgroup`")]
    NoCgroups,
    /// No mounted hierarchy has the controller.
    #[error("no mounted cgroup hierarchy has the {controller} controller: mount or enable it")]
    NoController {
        /// Its name, as `memory`.
        controller: &'static str,
    },
    /// The cgroup was removed, or never was.
    #[error("cgroup {path:?} is gone: name one that exists")]
    CgroupGone {
        /// Its directory.
        path: PathBuf,
    },
    /// The path is in no cgroup file system.
    #[error("{path:?} is not a cgroup: name a directory below /sys/fs/cgroup")]
    NotACgroup {
        /// The path given.
        path: PathBuf,
    },
    /// No process has this id.
    #[error("no process {pid}: it has ended, or its id is of another pid namespace; see `ps -e`")]
    NoSuchProcess {
        /// The id given.
        pid: u32,
    },
    /// Several jobs of this host are meant.
    #[error("{what}, name one of them:{}", lines(.candidates))]
    JobSeveral {
        /// What there are several of, and why.
        what: String,
        /// What to name instead.
        candidates: Vec<String>,
    },
    /// The job has not started.
    #[error("job {id} has not started ({why}): `squeue --start -j {id}` tells when Slurm expects it to")]
    JobPending {
        /// The id given.
        id: String,
        /// Slurm's reason.
        why: String,
    },
    /// The job has ended.
    #[error("job {id} has ended ({how}): `sacct -j {id}` has what Slurm recorded of it")]
    JobEnded {
        /// The id given.
        id: String,
        /// State and time.
        how: String,
    },
    /// No job, or step, is known by this id.
    #[error("no job {id} to measure: {why}")]
    NoSuchJob {
        /// The id given.
        id: String,
        /// What is known, and what to do.
        why: String,
    },
    /// The job runs on other nodes alone.
    #[error("job {id} does not run on this host but on {nodes}: `{command}`")]
    JobElsewhere {
        /// The id given.
        id: String,
        /// The nodes.
        nodes: String,
        /// What to type instead.
        command: String,
    },
    /// The job is another user's.
    #[error("job {id} is of {user}: only its user and root may measure it")]
    JobNotYours {
        /// The id given.
        id: String,
        /// The other user.
        user: String,
    },
    /// Some nodes of a job did not answer; the answers of the others have been told.
    #[error(
        "{missing} of {all} nodes of job {id} did not answer: {nodes}: what is printed names the reason of each"
    )]
    NodesMissing {
        /// The id given.
        id: String,
        /// How many did not.
        missing: usize,
        /// How many it has.
        all: usize,
        /// Names of some that did not.
        nodes: String,
    },
    /// A file or directory of the kernel may not be used.
    #[error("cannot {action} {path:?}: permission denied: run as root, or as its owner")]
    Permission {
        /// What was tried, as `create`.
        action: &'static str,
        /// On what.
        path: PathBuf,
    },
    /// No slot is free for another cgroup.
    #[error(
        "the table of tracked cgroups is full ({capacity}): end another measurement, or take a smaller tree"
    )]
    TableFull {
        /// How many it holds.
        capacity: u32,
    },
    /// The output cannot be written.
    #[error("cannot write {path:?}: {source}: name a file that can be written, on a disk with room")]
    Output {
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The command of `run` is not found.
    #[error("command {command:?} is not found: check its spelling and PATH")]
    CommandNotFound {
        /// Its name.
        command: OsString,
    },
    /// The command of `run` cannot be executed.
    #[error("command {command:?} cannot be executed: {source}: check its mode, format and arguments")]
    NotExecutable {
        /// Its name.
        command: OsString,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Anything else.
    #[error("{}", one_line(.0))]
    Other(#[from] anyhow::Error),
}

impl Error {
    /// The exit code of sw-bpf, one of [`EXIT_CODES`].
    pub fn exit_code(&self) -> u8 {
        match self {
            // clap's own code is 0 where help or the version was asked for.
            Self::Usage(error) => u8::try_from(error.exit_code()).unwrap_or(2),
            Self::JobSeveral { .. } => 2,
            Self::JobPending { .. } => 65,
            Self::CgroupGone { .. } | Self::NotACgroup { .. } | Self::JobEnded { .. } => 66,
            Self::NoSuchProcess { .. } | Self::NoSuchJob { .. } => 67,
            Self::JobElsewhere { .. } => 68,
            Self::Lockdown { .. } => 69,
            Self::NoBtf { .. } => 70,
            Self::HookAbsent { .. } => 71,
            Self::NoCgroups | Self::NoController { .. } => 72,
            Self::Output { .. } => 73,
            Self::TableFull { .. } => 75,
            Self::NodesMissing { .. } => 76,
            Self::Permission { .. } | Self::JobNotYours { .. } => 77,
            Self::MissingCapability { .. } => 78,
            Self::NotExecutable { .. } => 126,
            Self::CommandNotFound { .. } => 127,
            Self::Other(_) => 1,
        }
    }

    /// Tells the failure on standard error; help and the version that were asked for, on standard output.
    pub fn report(&self) {
        // Where standard error is closed there is no one left to tell.
        let _ = match self {
            Self::Usage(error) => error.print(),
            _ => writeln!(io::stderr(), "sw-bpf: {self}"),
        };
    }

    /// Meaning of `source`, which the execution of `command` gave: 127 or 126, as a shell has it.
    pub fn of_exec(command: &OsStr, source: io::Error) -> Self {
        let command = command.to_owned();
        match source.kind() {
            ErrorKind::NotFound => Self::CommandNotFound { command },
            _ => Self::NotExecutable { command, source },
        }
    }
}

/// Each of `items` on a line of its own.
fn lines(items: &[String]) -> String {
    let mut lines = String::new();
    for item in items {
        lines.push_str("\n  ");
        lines.push_str(item);
    }
    lines
}

/// `error` with its causes on one line, whatever they hold.
fn one_line(error: &anyhow::Error) -> String {
    format!("{error:#}")
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests;
