//! The event loop of a measurement: notices as they come, a look a second, and whatever ends it.

use std::{future::Future, os::fd::OwnedFd, pin::pin, time::Duration};

use anyhow::Context;
use tokio::{
    io::unix::AsyncFd,
    time::{Instant, MissedTickBehavior, interval_at, sleep, sleep_until},
};

use super::meter::Meter;
use crate::{error::Error, probe::Probe};

/// Time between two looks.
const LOOK: Duration = Duration::from_secs(1);

/// When the processes are looked at before the first look: many commands do not live to it.
const EARLY: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(50)];

/// Time between two glimpses at memory, where nothing tells of its changes.
const GLIMPSE: Duration = Duration::from_millis(50);

/// Why a measurement ended.
pub enum End<T> {
    /// The target has ended.
    Gone,
    /// What was waited for came.
    Came(T),
}

/// Whether a target that has no process any more has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Empty {
    /// It has.
    IsTheEnd,
    /// Something else is waited for.
    IsNoMatter,
}

/// Measures until `end` comes, the target ends, or `each_look`, called after each look, says that it is over.
pub async fn listen<T>(
    meter: &mut Meter,
    empty: Empty,
    end: impl Future<Output = T>,
    mut each_look: impl FnMut(&mut Meter) -> Result<bool, Error>,
) -> Result<End<T>, Error> {
    let mut end = pin!(end);
    let notices = meter.probe().map(|probe| notices(&probe)).transpose()?;
    let begin = Instant::now();
    let mut early = EARLY.into_iter().map(|after| begin + after).peekable();
    let mut looks = interval_at(Instant::now() + LOOK, LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut glimpses = interval_at(Instant::now() + GLIMPSE, GLIMPSE);
    glimpses.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        let calibrated = meter.calibrator().left();
        let left = meter
            .left()
            .filter(|_| empty == Empty::IsTheEnd || !meter.cgroup().exists());
        tokio::select! {
            came = &mut end => return Ok(End::Came(came)),
            result = readable(notices.as_ref()) => {
                result.context("wait for notices of the kernel programs")?;
                meter.hear()?;
            }
            () = sleep(left.unwrap_or_default()), if left.is_some() => {
                if meter.has_ended()? {
                    return Ok(End::Gone);
                }
            }
            () = sleep(calibrated.unwrap_or_default()), if calibrated.is_some() => meter.end_calibration(),
            () = sleep_until(early.peek().copied().unwrap_or(begin)), if early.peek().is_some() => {
                early.next();
                meter.scan()?;
            }
            _ = glimpses.tick(), if meter.is_sampled() => meter.glimpse(),
            _ = looks.tick() => {
                meter.look()?;
                if each_look(meter)? {
                    return Ok(End::Gone);
                }
            }
        }
    }
}

/// The ring buffer of the programs, watched.
pub fn notices(probe: &Probe) -> Result<AsyncFd<OwnedFd>, Error> {
    let fd = probe
        .notice_fd()
        .context("duplicate the ring buffer's descriptor")?;
    // SAFETY: an `OwnedFd` keeps the same open file description until it is dropped.
    Ok(unsafe { AsyncFd::register(fd) }.context("watch the ring buffer")?)
}

/// Waits until a notice is there; for ever where there are no notices.
pub async fn readable(notices: Option<&AsyncFd<OwnedFd>>) -> std::io::Result<()> {
    match notices {
        Some(notices) => {
            notices.readable().await?.clear_ready();
            Ok(())
        }
        None => std::future::pending().await,
    }
}
