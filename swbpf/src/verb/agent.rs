//! `sw-bpf agent`: records every job of this node, from its birth to its end, and goes on where it was killed.

mod allowance;
mod birth;
mod jobs;
mod metrics;
mod retention;
mod server;
mod service;
mod state;

use std::{io, path::Path, process::ExitCode, time::Duration};

use anyhow::Context;
use nix::unistd::Group;
use rustix::thread::CapabilitySet;
use tokio::task::LocalSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

use super::{
    calibrate::Calibrator,
    listen::{notices, readable},
    meter::SETTLE,
    privilege,
    signals::Signals,
};
use crate::{
    cli::{self, ForcedSource},
    error::Error,
    job::cgroup::Hierarchies,
    out,
};
use birth::Nests;
use jobs::Jobs;
use metrics::Metrics;
pub use metrics::asked;
use retention::Retention;
use server::Archive;
use service::Service;
pub use state::parse as parse_left;

/// Time between two looks.
const LOOK: Duration = Duration::from_secs(1);
/// What the agent may do once its programs count, beside what any process of its user may: the user of a job owns cgroups of it
/// on both versions, and could shut them, so that their files would not be seen.
const KEPT: CapabilitySet = CapabilitySet::DAC_READ_SEARCH;

/// Records until a signal ends it; counting goes on after that, and what was born meanwhile is taken up by the next agent.
pub async fn agent(
    asked: &cli::Agent,
    socket: &Path,
    force: Option<ForcedSource>,
) -> Result<ExitCode, Error> {
    LocalSet::new().run_until(record(asked, socket, force)).await
}

async fn record(asked: &cli::Agent, socket: &Path, force: Option<ForcedSource>) -> Result<ExitCode, Error> {
    if !rustix::process::geteuid().is_root() {
        return Err(Error::AgentNotRoot);
    }
    let admins = asked.admin_group.as_deref().map(group).transpose()?;
    let signals = Signals::catch()?;
    let hierarchies = Hierarchies::detect()?;
    // Before anything is made.
    let nests = Nests::of(&hierarchies, &asked.watch)?;
    // While this process may still do all that it has to be started with.
    let calibrator = Calibrator::with_helper()?;
    let mut metrics = Metrics::open(asked).await?;
    let _held = server::make_dir(run_dir(socket))?;
    let mut jobs = Jobs::begin(hierarchies, nests, asked, run_dir(socket), force, calibrator)?;
    give_up_capabilities(&jobs).context("give up capabilities")?;
    let mut questions = server::open(socket, admins, Archive::new(asked.records.clone()))?;
    let waiting = notices(&jobs.probe())?;
    note(&jobs.watched());
    note(&format!(
        "records the jobs of this host in {}; clients meet it at {}",
        asked.records.display(),
        socket.display()
    ));
    let mut service = Service::find();
    service.ready(jobs.count());
    let mut retention = Retention::of(asked);
    let mut looks = interval_at(Instant::now() + LOOK, LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        let timed = jobs.timed();
        tokio::select! {
            signal = signals.next() => {
                signal.context("read a signal")?;
                break;
            }
            result = readable(Some(&waiting)), if jobs.may_hear() => {
                result.context("wait for notices of the kernel programs")?;
                jobs.hear()?;
            }
            Some(question) = questions.recv() => jobs.answer(question),
            Some(said) = jobs.said() => jobs.learn(&said),
            () = sleep(SETTLE), if jobs.is_settling() => jobs.settle(),
            () = sleep(timed.unwrap_or_default()), if timed.is_some() => jobs.end_timing(),
            Some(ask) = metrics.asked() => metrics.answer(ask, &mut jobs)?,
            () = retention.due() => retention.begin(jobs.records(), jobs.writing()),
            _ = looks.tick() => {
                jobs.look()?;
                metrics.looked(&mut jobs)?;
                service.goes_on(jobs.count());
            }
        }
    }
    Service::stopping();
    jobs.leave();
    metrics.leave();
    Ok(ExitCode::SUCCESS)
}

fn give_up_capabilities(jobs: &Jobs) -> io::Result<()> {
    let mut kept = KEPT;
    // Before Linux 5.19, `kernel.unprivileged_bpf_disabled` also shuts programs and maps that are there.
    if !privilege::is_enough(kept, || jobs.probe().look().is_ok())? {
        kept |= CapabilitySet::BPF;
    }
    privilege::keep_only(kept)
}

/// Says on standard error what an operator should know; the agent goes on.
fn note(what: &str) {
    out::tell_aside(&format!("sw-bpf: note: {what}\n"));
}

/// The id of a group.
fn group(name: &str) -> Result<u32, Error> {
    let found = Group::from_name(name).with_context(|| format!("look up the group {name:?}"))?;
    let found = found.with_context(|| {
        format!("there is no group {name:?}: `groupadd --system {name}`, or name another for --admin-group")
    })?;
    Ok(found.gid.as_raw())
}

/// The directory of the socket: what is in it is gone with the next start of the host.
fn run_dir(socket: &Path) -> &Path {
    let above = socket.parent().unwrap_or(Path::new("/"));
    if above.as_os_str().is_empty() {
        Path::new(".")
    } else {
        above
    }
}
