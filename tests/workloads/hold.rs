//! How long a workload keeps what it has, and how it talks to the test that runs it.

use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;

use crate::size::Size;

/// An amount of memory, and how long to keep it.
#[derive(Args)]
pub struct Held {
    /// Bytes, or with a suffix: 64K, 300M, 1G
    #[arg(long)]
    pub size: Size,
    #[command(flatten)]
    pub hold: Hold,
}

/// How long to keep it all.
#[derive(Args)]
pub struct Hold {
    /// Milliseconds to keep it all
    #[arg(long, default_value_t = 100)]
    hold_ms: u64,
    /// Print READY and keep it all until a line or the end of standard input
    #[arg(long, conflicts_with = "hold_ms")]
    until_stdin: bool,
}

impl Hold {
    pub fn hold(&self) -> Result<()> {
        if self.until_stdin {
            ready_until_stdin()
        } else {
            thread::sleep(Duration::from_millis(self.hold_ms));
            Ok(())
        }
    }
}

/// Prints READY and waits for a line or the end of standard input.
pub fn ready_until_stdin() -> Result<()> {
    tell("READY")?;
    next_line().map(|_| ())
}

/// Prints a line on standard output, at once.
pub fn tell(line: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .context("standard output")
}

/// Waits for a line of standard input; false at its end.
pub fn next_line() -> Result<bool> {
    let read = io::stdin()
        .read_line(&mut String::new())
        .context("standard input")?;
    Ok(read > 0)
}
