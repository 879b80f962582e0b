//! What can go wrong: one line each, first what failed, then what to do next.

mod cause;
mod codes;
mod way;
mod words;

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;

use rustix::process::{Resource, getrlimit};

pub use cause::is_for_too_many_files;
pub use codes::{EXIT_CODES, EXIT_CODES_OF_DOCTOR, EXIT_CODES_OF_RUN};
pub use way::{IN_USER_NAMESPACE, MOUNT_PROC, NO_PROC, way_to_capabilities, way_to_own_directory};
use way::{way_to_command, way_to_ended};
use words::lines;
pub use words::one_line;

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
        "{capability} is missing, which the kernel programs need: {}",
        way_to_capabilities(*is_withheld)
    )]
    MissingCapability {
        /// Its name, as `CAP_BPF`.
        capability: &'static str,
        /// Whether neither root nor `setcap` gives it here.
        is_withheld: bool,
    },
    /// The process is in a user namespace, whose capabilities the kernel does not accept for BPF.
    #[error("{IN_USER_NAMESPACE}: run sw-bpf outside of the container")]
    UserNamespace,
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
    /// What should describe the kernel's types does not.
    #[error(
        "the BTF in {path:?} ({length}) cannot be used: {why}: if something is mounted over it, unmount that, else use \
         a kernel built with CONFIG_DEBUG_INFO_BTF=y"
    )]
    BadBtf {
        /// Where it was read.
        path: PathBuf,
        /// How long it is, as `0 bytes`.
        length: String,
        /// What is wrong with it.
        why: String,
    },
    /// The kind of hook that was asked for cannot be used.
    #[error(
        "{asked} was asked for and cannot be used here: {why}: without --force-source {} is used",
        .instead.unwrap_or("sampling")
    )]
    RungRefused {
        /// Its name, as `fentry`.
        asked: &'static str,
        /// Why not.
        why: String,
        /// The kind that would be tried first.
        instead: Option<&'static str>,
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
    #[error(
        "cgroup {path:?} does not exist: `systemd-cgls` or `find /sys/fs/cgroup -type d` lists those that do"
    )]
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
    /// Records of a user are asked for whom nobody knows.
    #[error(
        "no such user: {user:?} is not known on this host, and no record that was asked for is theirs: name another, or their number"
    )]
    NoSuchUser {
        /// The name given.
        user: String,
    },
    /// No record is known by this id.
    #[error("no record of {what}: {why}")]
    NoRecord {
        /// What was asked for, as `job 123`.
        what: String,
        /// What is known, and what to do.
        why: String,
    },
    /// A job has records, and none of this run: what was asked for, and which there are.
    #[error("no record of {0}: {1}")]
    NoSuchRun(String, String),
    /// Records are there that this user may not see.
    #[error("cannot {action} {path:?}: {why}")]
    RecordDenied {
        /// What was tried, as `list`.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Who may, and what to do.
        why: String,
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
    #[error("job {id} has ended ({how}): {}", way_to_ended(.id, *.has_record))]
    JobEnded {
        /// The id given.
        id: String,
        /// State and time.
        how: String,
        /// Whether this host has a record of it.
        has_record: bool,
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
    #[error(
        "job {id} is of {user}: only its user and root may measure it, and where the agent runs, who is in its --admin-group"
    )]
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
    /// No cgroup can be made for a command.
    #[error("cannot make a cgroup for the command: {path:?}: {why}: {way}")]
    NoOwnCgroup {
        /// Where it was tried.
        path: PathBuf,
        /// The kernel's answer.
        why: String,
        /// What works.
        way: &'static str,
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
    /// Standard output cannot be written.
    #[error(
        "cannot write to standard output: {source}: send it to a file on a disk with room, or to a program that reads it"
    )]
    Stdout {
        /// The kernel's answer.
        source: io::Error,
    },
    /// The command of `run` is not found.
    #[error("command {command:?} is not found: {}", way_to_command(.command))]
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
    /// The command of `run` was killed before it was executed.
    #[error(
        "command {command:?} was killed for want of memory before its first instruction: raise --limit-mem"
    )]
    NoRoom {
        /// Its name.
        command: OsString,
    },
    /// This process has as many open files as it may.
    #[error(
        "too many open files: this process may have {limit}: raise that, as `ulimit -n {}`, or start sw-bpf with fewer open",
        limit.saturating_mul(2).max(1024)
    )]
    TooManyFiles {
        /// How many it may have.
        limit: u64,
    },
    /// A user started the agent.
    #[error("the agent has to be started as root: it gives up what it does not need once its programs count")]
    AgentNotRoot,
    /// Anything else.
    #[error("{}", one_line(.0))]
    Other(#[source] anyhow::Error),
}

impl From<anyhow::Error> for Error {
    fn from(error: anyhow::Error) -> Self {
        match getrlimit(Resource::Nofile).current {
            Some(limit) if is_for_too_many_files(&error) => Self::TooManyFiles { limit },
            _ => Self::Other(error),
        }
    }
}

impl Error {
    /// The exit code of sw-bpf, one of [`EXIT_CODES`].
    pub fn exit_code(&self) -> u8 {
        match self {
            // clap's own code is 0 where help or the version was asked for.
            Self::Usage(error) => u8::try_from(error.exit_code()).unwrap_or(2),
            Self::JobSeveral { .. } | Self::NoSuchUser { .. } => 2,
            Self::JobPending { .. } => 65,
            Self::CgroupGone { .. } | Self::NotACgroup { .. } | Self::JobEnded { .. } => 66,
            Self::NoSuchProcess { .. }
            | Self::NoSuchJob { .. }
            | Self::NoRecord { .. }
            | Self::NoSuchRun(..) => 67,
            Self::JobElsewhere { .. } => 68,
            Self::Lockdown { .. } => 69,
            Self::NoBtf { .. } | Self::BadBtf { .. } => 70,
            Self::HookAbsent { .. } | Self::RungRefused { .. } => 71,
            Self::NoCgroups | Self::NoController { .. } => 72,
            Self::Output { .. } | Self::Stdout { .. } => 73,
            Self::TableFull { .. } => 75,
            Self::NodesMissing { .. } => 76,
            Self::Permission { .. }
            | Self::NoOwnCgroup { .. }
            | Self::JobNotYours { .. }
            | Self::AgentNotRoot
            | Self::RecordDenied { .. } => 77,
            Self::MissingCapability { .. } | Self::UserNamespace => 78,
            Self::NotExecutable { .. } | Self::NoRoom { .. } => 126,
            Self::CommandNotFound { .. } => 127,
            Self::TooManyFiles { .. } | Self::Other(_) => 1,
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

#[cfg(test)]
mod tests;
