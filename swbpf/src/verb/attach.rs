//! `sw-bpf attach`: what runs already, until it ends or Ctrl-C.

use std::{ops::ControlFlow, path::Path, process::ExitCode};

use super::{
    keep::Keeper,
    listen::{End, listen},
    meter::Meter,
    signals::Signals,
};
use crate::{
    cli::{self, ForcedSource},
    error::Error,
    job::cgroup::{Cgroup, Controller, Hierarchies},
    out::{self, text},
    snapshot::{Kind, Target, TargetKind},
};

/// A line a second on standard output, and the summary at the end.
pub async fn attach(attach: &cli::Attach, force: Option<ForcedSource>) -> Result<ExitCode, Error> {
    let hierarchies = Hierarchies::detect()?;
    let (cgroup, target) = target_of(&hierarchies, &attach.target)?;
    let mut keeper = Keeper::begin(attach.json.as_deref())?;
    let signals = Signals::catch()?;
    let mut meter = Meter::begin(&hierarchies, cgroup, target, false, force)?;
    let mut was_populated = false;
    let end = listen(&mut meter, signals.next(), |meter| {
        let snapshot = meter.snapshot(Kind::Progress, None);
        let told = out::tell(&text::progress_line(&snapshot))?;
        keeper.keep(|| snapshot);
        let is_populated = meter.is_populated();
        let has_ended = !meter.cgroup().exists() || (was_populated && !is_populated);
        was_populated |= is_populated;
        Ok(has_ended || told == ControlFlow::Break(()))
    })
    .await?;
    if let End::Came(signal) = end {
        signal.map_err(|error| Error::Other(anyhow::Error::new(error).context("read a signal")))?;
    }
    meter.finish()?;
    let snapshot = meter.snapshot(Kind::Summary, None);
    let _ = out::tell(&text::summary(&snapshot))?;
    keeper.keep(|| snapshot);
    keeper.end().map_or(Ok(ExitCode::SUCCESS), Err)
}

/// The cgroup that was named, and how it is told.
pub fn target_of(hierarchies: &Hierarchies, named: &cli::Target) -> Result<(Cgroup, Target), Error> {
    let (cgroup, kind, pid) = match named {
        cli::Target::Cgroup(path) => (hierarchies.cgroup_at(path)?, TargetKind::Cgroup, None),
        cli::Target::Pid(pid) => (hierarchies.cgroup_of_pid(*pid)?, TargetKind::Pid, Some(*pid)),
        cli::Target::Own => {
            let pid = std::process::id();
            (hierarchies.cgroup_of_pid(pid)?, TargetKind::Pid, Some(pid))
        }
    };
    let told = told(&cgroup, kind, pid, None);
    Ok((cgroup, told))
}

/// A target as it is told.
pub fn told(cgroup: &Cgroup, kind: TargetKind, pid: Option<u32>, command: Option<Vec<String>>) -> Target {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    Target {
        kind,
        cgroup: text(cgroup.path()),
        cgroup_id: cgroup.id(),
        cgroup_version: cgroup.dir(Controller::Memory).map(|dir| dir.version.number()),
        pid,
        command,
    }
}
