//! What was typed, as typed values.

mod quantity;

use std::convert::Infallible;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{ArgGroup, Args, CommandFactory, Parser, Subcommand, ValueEnum};

use crate::error::{EXIT_CODES, EXIT_CODES_OF_RUN, Error};

/// What sw-bpf is asked to do.
#[derive(Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The task.
    pub verb: Verb,
    /// The only source that may be used; `None` takes the best.
    pub force_source: Option<ForcedSource>,
}

/// A task of sw-bpf.
#[derive(Debug, PartialEq, Eq)]
pub enum Verb {
    /// Run a command and measure it.
    Run(Run),
    /// Measure what runs already, until it ends.
    Attach(Attach),
    /// Measure for one window and answer.
    Once(Once),
}

/// `sw-bpf run`: its command is never empty.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(override_usage = "sw-bpf run [OPTIONS] -- COMMAND [ARGS]...")]
pub struct Run {
    /// Write a record: one JSON object a line, the last one the summary
    #[arg(long, value_name = "FILE", value_parser = record())]
    pub json: Option<PathBuf>,
    /// Limit the command's memory: 300M, 1.5G, or bytes; K, M, G, T are 1024-based
    #[arg(long, value_name = "SIZE", value_parser = quantity::size)]
    pub limit_mem: Option<u64>,
    /// The command and its arguments
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

/// `sw-bpf attach`.
#[derive(Debug, PartialEq, Eq)]
pub struct Attach {
    /// What to measure.
    pub target: Target,
    /// Where to write a record.
    pub json: Option<PathBuf>,
}

/// `sw-bpf --once`.
#[derive(Debug, PartialEq, Eq)]
pub struct Once {
    /// What to measure.
    pub target: Target,
    /// For how long.
    pub window: Duration,
    /// Whether to answer with JSON.
    pub json: bool,
}

/// What to measure.
#[derive(Debug, PartialEq, Eq)]
pub enum Target {
    /// The cgroup of this directory.
    Cgroup(PathBuf),
    /// The cgroup of this process.
    Pid(u32),
    /// The cgroup of the caller.
    Own,
}

/// A source that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ForcedSource {
    /// Fail instead of falling back to sampling.
    Kernel,
    /// Leave the kernel programs out.
    Sampled,
}

/// Exact memory peak and busy cores of any command or cgroup, counted in the kernel
#[derive(Debug, Parser)]
#[command(name = "sw-bpf", version, arg_required_else_help = true, after_help = exit_codes())]
#[command(override_usage = "sw-bpf run [OPTIONS] -- COMMAND [ARGS]...\n       \
    sw-bpf attach [--json FILE] <--cgroup PATH | --pid PID>\n       \
    sw-bpf --once [--json] [--cgroup PATH | --pid PID] [--window TIME]")]
struct Cli {
    #[command(subcommand)]
    verb: Option<CliVerb>,
    /// Measure for one window, then answer: the caller's cgroup where no other is named
    #[arg(long)]
    once: bool,
    /// Use this source or fail, instead of the best that there is
    #[arg(long, global = true, value_name = "SOURCE")]
    force_source: Option<ForcedSource>,
    #[command(flatten)]
    options: CliOnce,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Options of --once")]
struct CliOnce {
    /// Answer with one JSON object on one line
    #[arg(long, requires = "once")]
    json: bool,
    /// Measure the cgroup of this directory
    #[arg(long, value_name = "PATH", requires = "once", conflicts_with = "pid")]
    cgroup: Option<PathBuf>,
    /// Measure the cgroup of this process
    #[arg(long, value_name = "PID", requires = "once", value_parser = quantity::pid)]
    pid: Option<u32>,
    /// Length of the window: 0.05 to 3600 seconds, or 200ms, 2s, 1m
    #[arg(long, value_name = "TIME", requires = "once", default_value = "1s", value_parser = quantity::window)]
    window: Duration,
}

#[derive(Debug, Subcommand)]
enum CliVerb {
    /// Run a command in a cgroup of its own, and say on standard error what it needed
    Run(Run),
    /// Follow what runs already, until it ends or Ctrl-C
    Attach(CliAttach),
}

#[derive(Debug, Args)]
#[command(override_usage = "sw-bpf attach [--json FILE] <--cgroup PATH | --pid PID>")]
#[command(group = ArgGroup::new("target").args(["cgroup", "pid"]).required(true))]
struct CliAttach {
    /// Measure the cgroup of this directory
    #[arg(long, value_name = "PATH")]
    cgroup: Option<PathBuf>,
    /// Measure the cgroup of this process
    #[arg(long, value_name = "PID", value_parser = quantity::pid)]
    pid: Option<u32>,
    /// Write a record: one JSON object a line, the last one the summary
    #[arg(long, value_name = "FILE", value_parser = record())]
    json: Option<PathBuf>,
    #[arg(value_name = "JOB", hide = true, value_parser = refuse_job)]
    job: Option<Infallible>,
}

/// Reads the arguments, the name of the program first among them.
pub fn parse(typed: impl IntoIterator<Item = OsString>) -> Result<Invocation, Error> {
    let cli = Cli::try_parse_from(typed)?;
    let verb = match cli.verb {
        Some(_) if cli.once => {
            let refusal = "'--once' stands alone: drop it, or the command after it";
            return Err(Cli::command().error(ErrorKind::ArgumentConflict, refusal).into());
        }
        Some(CliVerb::Run(run)) => Verb::Run(run),
        Some(CliVerb::Attach(attach)) => Verb::Attach(Attach {
            target: target(attach.cgroup, attach.pid),
            json: attach.json,
        }),
        None if cli.once => {
            let CliOnce {
                json,
                cgroup,
                pid,
                window,
            } = cli.options;
            Verb::Once(Once {
                target: target(cgroup, pid),
                window,
                json,
            })
        }
        None => {
            let refusal = "nothing to do: say 'run', 'attach' or '--once'";
            return Err(Cli::command()
                .error(ErrorKind::MissingRequiredArgument, refusal)
                .into());
        }
    };
    Ok(Invocation {
        verb,
        force_source: cli.force_source,
    })
}

fn target(cgroup: Option<PathBuf>, pid: Option<u32>) -> Target {
    match (cgroup, pid) {
        (Some(path), _) => Target::Cgroup(path),
        (None, Some(pid)) => Target::Pid(pid),
        (None, None) => Target::Own,
    }
}

/// The path of a record. Standard output belongs to the command of `run`, and is named where it is wanted.
fn record() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| {
        if path.as_os_str() == "-" {
            Err("for standard output say /dev/stdout, for a file of this name ./-")
        } else {
            Ok(path)
        }
    })
}

fn refuse_job(_: &str) -> Result<Infallible, &'static str> {
    Err("job ids are not known yet: use --cgroup PATH or --pid PID")
}

/// The end of `--help`.
fn exit_codes() -> String {
    let codes = EXIT_CODES
        .iter()
        .map(|(code, meaning)| format!("{code:>5}  {meaning}"));
    let codes: Vec<_> = codes.collect();
    format!("Exit codes:\n{}\n\n{EXIT_CODES_OF_RUN}", codes.join("\n"))
}

#[cfg(test)]
mod tests;
