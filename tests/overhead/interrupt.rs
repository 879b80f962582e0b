//! Ctrl-C and the like: noted, and obeyed between two visits, so that the cgroups are removed on the way out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, ensure};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// Whether this process was told to end.
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Notes the signals from now on.
    pub fn watch() -> Result<Self> {
        let told = Arc::new(AtomicBool::new(false));
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            flag::register(signal, Arc::clone(&told)).context("handle signals")?;
        }
        Ok(Self(told))
    }

    /// An error once one has come.
    pub fn check(&self) -> Result<()> {
        ensure!(!self.0.load(Ordering::Relaxed), "interrupted");
        Ok(())
    }
}
