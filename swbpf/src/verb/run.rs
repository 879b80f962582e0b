//! `sw-bpf run`: a command in a cgroup of its own, measured from its first instruction.

use std::{
    os::unix::process::ExitStatusExt,
    process::{ExitCode, ExitStatus},
    time::Duration,
};

use anyhow::Context;
use tokio::process::{Child, Command};

use super::{
    listen::{Empty, End, listen},
    meter::Meter,
    signals::{Inherited, Signals, is_from_process},
    target::{Chosen, told},
};
use crate::{
    cli::{self, ForcedSource},
    error::Error,
    fold::SlurmJob,
    job::cgroup::{Hierarchies, OwnCgroup},
    out::{self, text},
    record::Keeper,
    sampled::procfs::{self, Begun},
    snapshot::{Exit, Kind, TargetKind},
};

/// Looks at whether a command has begun, and the time between two of them.
const BEGIN_TRIES: usize = 20;
const BEGIN: Duration = Duration::from_millis(1);

/// Runs the command with this process's own input and output, and tells on standard error what it needed.
pub async fn run(run: &cli::Run, force: Option<ForcedSource>) -> Result<ExitCode, Error> {
    let hierarchies = Hierarchies::detect()?;
    let mut keeper = Keeper::begin(run.json.as_deref())?;
    let mut own = OwnCgroup::create(&hierarchies)?;
    if let Some(bytes) = run.limit_mem {
        own.set_memory_limit(bytes)?;
    }
    let command = run
        .command
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let chosen = Chosen {
        told: told(own.cgroup(), TargetKind::Command, None, Some(command)),
        cgroup: own.cgroup().clone(),
        job: None,
        slurm: SlurmJob::default(),
        from_birth: true,
        stand_in: None,
    };
    let signals = Signals::catch()?;
    let mut meter = Meter::begin(&hierarchies, chosen, force)?;
    // Only now: what the kernel needs for it is charged to the cgroup that is measured.
    own.allow_nesting()?;
    let mut child = start(&run.command, &own, signals.inherited())?;
    let has_no_room = run.limit_mem.is_some() && has_died_at_once(child.id());
    let status = follow(&mut meter, &mut child, &signals, |meter| {
        keeper.keep(|| meter.snapshot(Kind::Progress, None));
    })
    .await?;
    meter.finish()?;
    let exit = Exit {
        code: status.code(),
        signal: status.signal(),
    };
    out::tell_aside(&text::summary(&meter.snapshot(Kind::Summary, Some(exit))));
    keeper.keep(|| meter.snapshot(Kind::Summary, Some(exit)));
    // The command has been run: what fails from here on is told, and its own code stays.
    for error in keeper
        .end()
        .into_iter()
        .chain(own.remove().err().map(Error::from))
    {
        error.report();
    }
    match run.command.first().filter(|_| has_no_room) {
        Some(command) => Err(Error::NoRoom {
            command: command.clone(),
        }),
        None => Ok(code_of(status)),
    }
}

/// Whether a process that was just started was killed before it became the command: then it still has sw-bpf's own name. Where
/// the kernel is about to tell, it is waited for.
fn has_died_at_once(pid: Option<u32>) -> bool {
    let Some(pid) = pid else { return false };
    for _ in 0..BEGIN_TRIES {
        match procfs::begun(pid) {
            Some(Begun { is_ours: false, .. }) | None => return false,
            Some(Begun { has_ended: true, .. }) => return true,
            Some(_) => std::thread::sleep(BEGIN),
        }
    }
    false
}

/// Starts the command inside the cgroup, with signals met as they were before sw-bpf.
fn start(command: &[std::ffi::OsString], own: &OwnCgroup, signals: Inherited) -> Result<Child, Error> {
    let (program, arguments) = command
        .split_first()
        .ok_or_else(|| anyhow::anyhow!("no command was given: name one behind --"))?;
    let files = own.join_files()?;
    let mut command = Command::new(program);
    command.args(arguments);
    // SAFETY: between fork and exec, this does nothing but sigaction(2), sigprocmask(2) and write(2) on open files.
    unsafe {
        command.pre_exec(move || {
            signals.restore()?;
            files.join()
        });
    };
    command.spawn().map_err(|error| Error::of_exec(program, error))
}

/// Measures until the command has ended; signals that are sent to sw-bpf go to it.
async fn follow(
    meter: &mut Meter,
    child: &mut Child,
    signals: &Signals,
    mut each_look: impl FnMut(&Meter),
) -> Result<ExitStatus, Error> {
    let pid = child.id();
    let ended = async {
        loop {
            tokio::select! {
                status = child.wait() => return status,
                signal = signals.next() => {
                    let signal = signal?;
                    if is_from_process(&signal) {
                        pass(pid, signal.ssi_signo);
                    }
                }
            }
        }
    };
    let status = listen(meter, Empty::IsNoMatter, ended, |meter| {
        each_look(meter);
        Ok(false)
    })
    .await?;
    match status {
        End::Came(status) => Ok(status.context("wait for the command")?),
        // The cgroup was removed under the command by someone else: it lives on elsewhere.
        End::Gone => Ok(child.wait().await.context("wait for the command")?),
    }
}

/// Sends a signal on. The command has not been waited for, so its number is still its own.
fn pass(pid: Option<u32>, signal: u32) {
    let pid = pid
        .and_then(|pid| i32::try_from(pid).ok())
        .and_then(rustix::process::Pid::from_raw);
    let signal = i32::try_from(signal)
        .ok()
        .and_then(rustix::process::Signal::from_named_raw);
    if let Some((pid, signal)) = pid.zip(signal) {
        // A command that has just ended needs it no more.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// The command's own code; 128 + n where signal n ended it, as a shell has it.
fn code_of(status: ExitStatus) -> ExitCode {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
