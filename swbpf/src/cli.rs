//! What was typed, as typed values.

mod agent;
mod codes;
mod hints;
mod moment;
mod quantity;
mod records;
mod verbs;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand, value_parser};

use crate::error::Error;
use crate::job::id::{IdError, JobId};
pub use agent::Agent;
pub use records::{List, Show};
pub use verbs::{AllNodes, Attach, Doctor, ForcedSource, Once, Run, Target, Verb};

/// Length of a window where none is given.
pub const WINDOW: Duration = Duration::from_secs(1);

/// What sw-bpf is asked to do.
#[derive(Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The task.
    pub verb: Verb,
    /// The only source that may be used; `None` takes the best.
    pub force_source: Option<ForcedSource>,
    /// Where the agent is met.
    pub socket: PathBuf,
}

/// Exact memory peak and busy cores of a Slurm job, or of any command or cgroup, counted in the kernel
#[derive(Debug, Parser)]
#[command(name = "sw-bpf", version, after_help = codes::exit_codes())]
#[command(override_usage = "sw-bpf [JOB]\n       \
    sw-bpf attach [--json FILE] [JOB | --cgroup PATH | --pid PID]\n       \
    sw-bpf --once [--json] [JOB | --cgroup PATH | --pid PID] [--window TIME]\n       \
    sw-bpf --once --all-nodes [--json] [JOB] [--window TIME]\n       \
    sw-bpf run [OPTIONS] -- COMMAND [ARGS]...\n       \
    sw-bpf show JOB [--run N] [--json | --admin-comment]\n       \
    sw-bpf list [--json] [--since TIME] [--user USER] [--state STATE]\n       \
    sw-bpf agent [OPTIONS]\n       \
    sw-bpf doctor [--json] [--force-source SOURCE]")]
struct Cli {
    #[command(subcommand)]
    verb: Option<CliVerb>,
    /// Follow this Slurm job on this host, as `attach` does: 123, `123_4`, 123+1, 123.0, 123.batch or an SLUID (the id that no
    /// other job ever has, from Slurm 25.11 on); without it, the job that sw-bpf runs in, else your only one here
    #[arg(value_name = "JOB", value_parser = job_id)]
    job: Option<JobId>,
    /// Slurm's name of the node, where several slurmd share this host
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    /// Measure for one window, then answer: the job that sw-bpf runs in, else its own cgroup, where no other is named
    #[arg(long)]
    once: bool,
    /// Use this source or fail, instead of the best that there is
    #[arg(long, global = true, value_name = "SOURCE")]
    force_source: Option<ForcedSource>,
    /// Where the agent of this node is met; beside it, the agent keeps what the next one needs to go on
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        env = "SWBPF_SOCKET",
        hide_env_values = true,
        default_value = "/run/sw-bpf/agent.sock"
    )]
    socket: PathBuf,
    #[command(flatten)]
    options: CliOnce,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Options of --once")]
struct CliOnce {
    /// Answer with one JSON object on one line
    #[arg(long)]
    json: bool,
    /// Ask every node of the job, through srun, where sw-bpf has the same path
    #[arg(long, conflicts_with_all = ["cgroup", "pid", "node"])]
    all_nodes: bool,
    /// Measure the cgroup of this directory
    #[arg(long, value_name = "PATH", conflicts_with = "pid")]
    cgroup: Option<PathBuf>,
    /// Measure the cgroup of this process
    #[arg(long, value_name = "PID", value_parser = quantity::pid)]
    pid: Option<u32>,
    /// Length of the window: 0.05 to 3600 seconds, or 200ms, 2s, 1m; where it is not given, the last second or two
    /// as the agent has them, at once, else 1s
    #[arg(long, value_name = "TIME", value_parser = quantity::window)]
    window: Option<Duration>,
}

impl CliOnce {
    /// The first of those that are given, where none may be.
    fn any(&self) -> Option<&'static str> {
        let given = [
            (self.pid.is_some(), "--pid"),
            (self.cgroup.is_some(), "--cgroup"),
            (self.all_nodes, "--all-nodes"),
            (self.window.is_some(), "--window"),
            (self.json, "--json"),
        ];
        given
            .into_iter()
            .find_map(|(is_given, option)| is_given.then_some(option))
    }
}

#[derive(Debug, Subcommand)]
enum CliVerb {
    /// Run a command in a cgroup of its own, and say on standard error what it needed
    Run(Run),
    /// Follow what runs already, until it ends or Ctrl-C
    Attach(CliAttach),
    /// Record every job of this node, from its birth to its end
    Agent(Agent),
    /// Tell what the record of a job says, while it runs and after its end
    Show(Show),
    /// List the records of the jobs of this node
    List(List),
    /// Say how exact the numbers are here, why, and what to change
    Doctor(Doctor),
}

#[derive(Debug, Args)]
#[command(override_usage = "sw-bpf attach [--json FILE] [JOB | --cgroup PATH | --pid PID]")]
struct CliAttach {
    /// This Slurm job on this host: 123, `123_4`, 123+1, 123.0, 123.batch or an SLUID (the id that no other job ever has, from
    /// Slurm 25.11 on); without it, the job that sw-bpf runs in, else your only one here
    #[arg(value_name = "JOB", value_parser = job_id)]
    job: Option<JobId>,
    /// Measure the cgroup of this directory
    #[arg(long, value_name = "PATH", conflicts_with = "job")]
    cgroup: Option<PathBuf>,
    /// Measure the cgroup of this process
    #[arg(long, value_name = "PID", value_parser = quantity::pid, conflicts_with_all = ["job", "cgroup"])]
    pid: Option<u32>,
    /// Slurm's name of the node, where several slurmd share this host
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    /// Write a record: one JSON object a line, the last one the summary
    #[arg(long, value_name = "FILE", value_parser = record())]
    json: Option<PathBuf>,
}

/// The commands. Those that read records have no use for an option of all, and their help does not offer it.
fn command() -> Command {
    let hidden = Arg::new("force_source")
        .long("force-source")
        .value_parser(value_parser!(ForcedSource))
        .global(true)
        .hide(true);
    let hide = |reads: Command| reads.arg(&hidden);
    Cli::command()
        .mut_subcommand("show", hide)
        .mut_subcommand("list", hide)
}

/// Reads the arguments, the name of the program first among them.
pub fn parse(typed: impl IntoIterator<Item = OsString>) -> Result<Invocation, Error> {
    let typed: Vec<OsString> = typed.into_iter().collect();
    let matches = command().try_get_matches_from(&typed);
    let cli = matches
        .and_then(|matches| Cli::from_arg_matches(&matches))
        .map_err(|error| hints::improved(error, &typed))?;
    if let Some(option) = cli.options.any().filter(|_| !cli.once) {
        let refusal = hints::without_once(option, cli.verb.is_some());
        return Err(refuse(ErrorKind::MissingRequiredArgument, &refusal));
    }
    if let Some(refusal) = misplaced(&cli) {
        return Err(refuse(ErrorKind::ArgumentConflict, refusal));
    }
    let verb = match cli.verb {
        Some(_) if cli.once || cli.job.is_some() => {
            let alone = if cli.once { "'--once'" } else { "JOB" };
            let refusal = format!("{alone} stands alone: drop it, or the command after it");
            return Err(refuse(ErrorKind::ArgumentConflict, &refusal));
        }
        Some(CliVerb::Run(run)) => Verb::Run(run),
        Some(CliVerb::Show(show)) => Verb::Show(show),
        Some(CliVerb::List(list)) => Verb::List(list),
        Some(CliVerb::Agent(agent)) => Verb::Agent(agent),
        Some(CliVerb::Doctor(doctor)) => Verb::Doctor(doctor),
        Some(CliVerb::Attach(attach)) => Verb::Attach(Attach {
            target: target(
                attach.job,
                attach.cgroup,
                attach.pid,
                attach.node.or(cli.node),
                Unnamed::Mine,
            )?,
            json: attach.json,
        }),
        None if cli.once => once(cli.job, cli.node, cli.options)?,
        None => Verb::Attach(Attach {
            target: target(cli.job, None, None, cli.node, Unnamed::Mine)?,
            json: None,
        }),
    };
    Ok(Invocation {
        verb,
        force_source: cli.force_source,
        socket: cli.socket,
    })
}

/// What to say of an option of all commands where this one has no use for it.
fn misplaced(cli: &Cli) -> Option<&'static str> {
    let has_node = cli.node.is_some();
    match cli.verb.as_ref()? {
        CliVerb::Run(_) | CliVerb::Doctor(_) | CliVerb::Show(_) | CliVerb::List(_) if has_node => {
            Some("'--node' goes with a job: drop it")
        }
        CliVerb::Show(_) | CliVerb::List(_) if cli.force_source.is_some() => {
            Some("a record has the source that it was measured with: drop '--force-source'")
        }
        CliVerb::Agent(_) if has_node => {
            Some("'agent' records the jobs of all nodes on this host: drop '--node'")
        }
        CliVerb::Agent(_) if cli.force_source == Some(ForcedSource::Sampled) => {
            Some("'agent' counts in the kernel: drop '--force-source sampled'")
        }
        _ => None,
    }
}

fn once(job: Option<JobId>, node: Option<String>, options: CliOnce) -> Result<Verb, Error> {
    let CliOnce {
        json,
        all_nodes,
        cgroup,
        pid,
        window,
    } = options;
    if all_nodes {
        if job.as_ref().is_some_and(|job| job.step.is_some()) {
            let refusal = "'--all-nodes' takes a whole job: drop the step behind its id";
            return Err(refuse(ErrorKind::ValueValidation, refusal));
        }
        let window = window.unwrap_or(WINDOW);
        return Ok(Verb::AllNodes(AllNodes { job, window, json }));
    }
    Ok(Verb::Once(Once {
        target: target(job, cgroup, pid, node, Unnamed::Own)?,
        window,
        json,
    }))
}

/// What is meant where no target is named.
#[derive(Clone, Copy)]
enum Unnamed {
    Mine,
    Own,
}

fn target(
    job: Option<JobId>,
    cgroup: Option<PathBuf>,
    pid: Option<u32>,
    node: Option<String>,
    unnamed: Unnamed,
) -> Result<Target, Error> {
    Ok(match (job, cgroup, pid) {
        (None, Some(_), _) | (None, _, Some(_)) if node.is_some() => {
            return Err(refuse(
                ErrorKind::ArgumentConflict,
                "'--node' goes with a job: drop it",
            ));
        }
        (Some(_), Some(_), _) | (Some(_), _, Some(_)) => {
            return Err(refuse(
                ErrorKind::ArgumentConflict,
                "name one target: JOB, '--cgroup' or '--pid'",
            ));
        }
        (Some(id), ..) => Target::Job { id, node },
        (None, Some(path), _) => Target::Cgroup(path),
        (None, None, Some(pid)) => Target::Pid(pid),
        (None, None, None) => match unnamed {
            Unnamed::Own if node.is_none() => Target::Own,
            _ => Target::Mine { node },
        },
    })
}

fn refuse(kind: ErrorKind, refusal: &str) -> Error {
    Cli::command().error(kind, refusal).into()
}

/// The commands, for whoever typed another word.
const VERBS: &str = "run, attach, show, list, agent, doctor";

/// Where the agent is met.
pub const SOCKET: &str = "/run/sw-bpf/agent.sock";
/// Where the agent keeps its records.
pub const DIR: &str = "/var/lib/sw-bpf/jobs";

/// Reads the id of a job.
fn job_id(typed: &str) -> Result<JobId, String> {
    if typed.is_empty() {
        return Err("the id is empty: is a variable not set?".to_owned());
    }
    typed
        .parse()
        .map_err(|error: IdError| match hints::of_cgroup(typed) {
            Some(hint) => format!("{error}; {hint}"),
            None => error.to_string(),
        })
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

#[cfg(test)]
mod tests;
