//! Times the kernel programs now and then, in short windows: the kernel's own statistics cost too much to leave them on.

mod helper;

use std::{io, os::fd::OwnedFd, time::Duration};

use anyhow::Context;
use aya::sys::{Stats, enable_stats};

use crate::{
    error::Error,
    fold::Calibration,
    probe::{Probe, monotonic_ns},
};
use helper::Helper;

/// Length of a window.
const WINDOW: Duration = Duration::from_millis(20);
/// Time between the begins of two windows.
const EVERY: Duration = Duration::from_secs(10);

/// The window under way, and when the next one begins.
#[derive(Debug, Default)]
pub struct Calibrator {
    /// Who switches statistics on: `None` for this process.
    helper: Option<Helper>,
    window: Option<Window>,
    next_ns: u64,
}

#[derive(Debug)]
struct Window {
    /// Statistics are on while it is there.
    _on: On,
    begin_ns: u64,
    before: (u64, u64),
}

/// What keeps statistics on, of this process or of another one; dropped, they are off.
#[derive(Debug)]
enum On {
    Here { _stats: OwnedFd },
    There { _on: helper::On },
}

impl Calibrator {
    /// One that goes on when this process has given up its capabilities. This process has one thread.
    pub fn with_helper() -> Result<Self, Error> {
        let helper = Helper::start().context("start a process that times the kernel programs")?;
        Ok(Self {
            helper: Some(helper),
            ..Self::default()
        })
    }

    /// Begins a window where one is due. Where the kernel has no statistics there is none.
    pub fn begin(&mut self, probe: &Probe) {
        let now_ns = monotonic_ns();
        if self.window.is_some() || now_ns < self.next_ns {
            return;
        }
        self.next_ns = now_ns + EVERY.as_nanos() as u64;
        if let Ok(on) = self.switch_on()
            && let Some(before) = sums(probe)
        {
            self.window = Some(Window {
                _on: on,
                begin_ns: monotonic_ns(),
                before,
            });
        }
    }

    fn switch_on(&self) -> io::Result<On> {
        Ok(match &self.helper {
            Some(helper) => On::There {
                _on: helper.switch_on()?,
            },
            None => On::Here {
                _stats: enable_stats(Stats::RunTime).map_err(io::Error::other)?,
            },
        })
    }

    /// Time until the window under way is full.
    pub fn left(&self) -> Option<Duration> {
        let window = self.window.as_ref()?;
        Some(WINDOW.saturating_sub(Duration::from_nanos(
            monotonic_ns().saturating_sub(window.begin_ns),
        )))
    }

    /// Ends the window under way.
    pub fn end(&mut self, probe: &Probe) -> Option<Calibration> {
        let window = self.window.take()?;
        let (run_time_ns, run_count) = sums(probe)?;
        Some(Calibration {
            run_time_ns: run_time_ns.checked_sub(window.before.0)?,
            run_count: run_count.checked_sub(window.before.1)?,
            window_ns: monotonic_ns().saturating_sub(window.begin_ns),
        })
    }
}

/// Time in all programs and their runs.
fn sums(probe: &Probe) -> Option<(u64, u64)> {
    let stats = probe.program_stats().ok()?;
    Some(stats.iter().fold((0, 0), |(time, runs), (_, stats)| {
        (time + stats.run_time_ns, runs + stats.run_count)
    }))
}
