//! One answer from each node of a job, by one `srun`.

mod labelled;
mod reason;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::pin::pin;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep_until, timeout};

use super::run::{Group, command, has_left_others};
use super::{Slurm, Unknown};
use labelled::{Labelled, Most};

/// Longest answers; what `sw-bpf --once` says of a job with many steps is some 100 KiB.
const ANSWERS: Most = Most {
    a_task: 4 << 20,
    in_all: 64 << 20,
};

/// Longest complaints: the first lines tell what is wrong.
const COMPLAINTS: Most = Most {
    a_task: 16 << 10,
    in_all: 4 << 20,
};

/// Most that is read of either, kept or not. Labels are a hundredth of it.
const MOST_READ: usize = 66 << 20;

/// How long `srun` may take to end its step after it was asked to.
const GRACE: Duration = Duration::from_secs(2);

/// Variables of Slurm that say where its controller is; all others change what `srun` does, or are of the job that the caller
/// is in.
const KEPT: [&str; 6] = [
    "SLURM_CONF",
    "SLURM_CONF_SERVER",
    "SLURM_JWT",
    "SLURM_SACK_JWKS",
    "SLURM_SACK_KEY",
    "SLURM_SACK_SOCKET",
];

/// What is run on each node of a job.
#[derive(Debug, Clone, Copy)]
pub struct OnEachNode<'a> {
    /// Raw id of the job; of a component, that of its leader.
    pub job: u32,
    /// Which component, where the job is heterogeneous.
    pub het_group: Option<u32>,
    /// All its nodes, in Slurm's order.
    pub nodes: &'a [String],
    /// The program, by a path that it has on each node.
    pub program: &'a Path,
    /// What it is given.
    pub args: &'a [String],
    /// How long all may take together.
    pub limit: Duration,
}

/// What a node wrote on standard output, a line without its end; or, as text of whoever wrote it, why nothing is known.
pub type Answer = Result<Vec<u8>, String>;

/// How a run ended.
#[derive(Debug)]
enum End {
    /// By itself.
    Exited(io::Result<ExitStatus>),
    /// It took too long.
    TimedOut(Duration),
    /// The caller was asked to end.
    Stopped,
    /// It wrote without an end.
    Flooded,
}

/// What is made of all that `srun` wrote on standard output and standard error before it was stopped.
pub fn answers(nodes: &[String], written: &[u8], complained: &[u8]) -> Vec<Answer> {
    let mut answers = Labelled::new(nodes.len(), ANSWERS);
    let mut complaints = Labelled::new(nodes.len(), COMPLAINTS);
    answers.push(written);
    complaints.push(complained);
    reason::answers(nodes, answers, complaints, &End::Stopped)
}

impl Slurm {
    /// Runs a program once on each node of a job, beside what runs there, and gives the answer of each node in their order.
    ///
    /// `stop` ends it early, as does the limit of time; answers that came until then are kept. An answer is at most 4 MiB long,
    /// all together 64 MiB; a longer one is none.
    ///
    /// By `srun --overlap`, whose labels tell the nodes apart: Slurm gives tasks to nodes in the order of their list, here one
    /// to each.
    pub async fn on_each_node(
        &self,
        what: &OnEachNode<'_>,
        stop: impl Future<Output = ()>,
    ) -> Result<Vec<Answer>, Unknown> {
        let until = Instant::now() + what.limit;
        let mut child = self.srun(what).spawn().map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => Unknown::Absent { program: "srun" },
            _ => Unknown::NotExecutable {
                program: "srun",
                why: e.to_string(),
            },
        })?;
        let mut answers = Labelled::new(what.nodes.len(), ANSWERS);
        let mut complaints = Labelled::new(what.nodes.len(), COMPLAINTS);
        let mut group = Group::of(&child);
        let is_ending = Cell::new(false);
        let end = {
            let all = hear(
                &mut child,
                group.first(),
                &mut answers,
                &mut complaints,
                &is_ending,
            );
            let mut all = pin!(all);
            let end = tokio::select! {
                end = &mut all => end,
                () = sleep_until(until) => End::TimedOut(what.limit),
                () = stop => End::Stopped,
            };
            match end {
                End::Exited(_) => group.has_ended(),
                End::Flooded => {}
                // `srun` takes its tasks with it; one that is killed leaves them.
                End::TimedOut(_) | End::Stopped => {
                    is_ending.set(true);
                    group.signal(Signal::TERM);
                    if let Ok(End::Exited(_)) = timeout(GRACE, all).await {
                        group.has_ended();
                    }
                }
            }
            end
        };
        Ok(reason::answers(what.nodes, answers, complaints, &end))
    }

    fn srun(&self, what: &OnEachNode<'_>) -> Command {
        let path = self.path("srun");
        let count = what.nodes.len();
        let options = [
            "--overlap".to_owned(),
            format!("--jobid={}", what.job),
            format!("--nodes={count}"),
            format!("--ntasks={count}"),
            "--ntasks-per-node=1".to_owned(),
            "--distribution=block".to_owned(),
            "--label".to_owned(),
            "--input=none".to_owned(),
            "--mpi=none".to_owned(),
            "--cpu-bind=none".to_owned(),
            // Not a share of the job's memory, which its own steps may have: it is in the job's limit all the same.
            "--mem=0".to_owned(),
            // The others go on without one that fails.
            "--kill-on-bad-exit=0".to_owned(),
            "--wait=0".to_owned(),
            // The caller's own need not be there.
            "--chdir=/".to_owned(),
            "--job-name=sw-bpf".to_owned(),
        ];
        let het_group = what.het_group.map(|offset| format!("--het-group={offset}"));
        let options: Vec<&str> = options.iter().chain(&het_group).map(String::as_str).collect();
        let mut command = command(&path, &options);
        command.arg(what.program).args(what.args);
        for (name, _) in std::env::vars_os() {
            if is_of_slurm(&name) {
                command.env_remove(name);
            }
        }
        command
    }
}

fn is_of_slurm(name: &OsString) -> bool {
    let name = name.to_string_lossy();
    let is_own = ["SLURM_", "SRUN_", "SLURMD_"]
        .iter()
        .any(|prefix| name.starts_with(prefix));
    is_own && !KEPT.contains(&name.as_ref())
}

/// Listens until `srun` has ended. Once that `is_ending`, it complains of nothing but that.
async fn hear(
    child: &mut Child,
    first: Option<Pid>,
    answers: &mut Labelled,
    complaints: &mut Labelled,
    is_ending: &Cell<bool>,
) -> End {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let answers = read(stdout, |bytes| answers.push(bytes));
    let complaints = read(stderr, |bytes| {
        if !is_ending.get() {
            complaints.push(bytes);
        }
    });
    let output = async { tokio::try_join!(answers, complaints) };
    tokio::select! {
        read = output => if read.is_err() {
            return End::Flooded;
        },
        () = has_left_others(first) => {}
    }
    End::Exited(child.wait().await)
}

/// That there was too much to read.
struct TooMuch;

async fn read(from: Option<impl AsyncRead + Unpin>, mut take: impl FnMut(&[u8])) -> Result<(), TooMuch> {
    let Some(mut from) = from else { return Ok(()) };
    let mut buffer = vec![0; 64 << 10];
    let mut read = 0;
    while read <= MOST_READ {
        match from.read(&mut buffer).await {
            // A pipe that fails has nothing more to say.
            Ok(0) | Err(_) => return Ok(()),
            Ok(length) => {
                read += length;
                take(&buffer[..length]);
            }
        }
    }
    Err(TooMuch)
}
