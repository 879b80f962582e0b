//! Do: the tasks of the command line, each a straight line from target to output.

mod agent;
mod all_nodes;
mod attach;
mod calibrate;
mod client;
mod count;
mod ending;
mod facts;
mod list;
mod listen;
mod meter;
mod mine;
mod once;
mod outside;
mod pace;
mod privilege;
mod reading;
mod rows;
mod run;
mod scan;
mod show;
mod signals;
mod stand_in;
mod target;

use std::{io, process::ExitCode};

use anyhow::Context;

use crate::{
    cli::{Invocation, Verb},
    doctor,
    error::Error,
};

/// What reads the files of the agent, for the fuzz targets.
#[doc(hidden)]
pub mod parse {
    /// What an agent left of a job.
    pub fn left(text: &[u8]) -> serde_json::Result<()> {
        super::agent::parse_left(text).map(drop)
    }

    pub use super::agent::asked as http;
}

/// Pipes for as many files as are open at once even where nothing is counted.
const PIPES: usize = 8;

/// Fails where this process may not open so many files: the event loop would panic.
fn need_files() -> Result<(), Error> {
    let opened: Result<Vec<_>, _> = (0..PIPES).map(|_| rustix::pipe::pipe()).collect();
    opened.map(drop).map_err(io::Error::from).context("open files")?;
    Ok(())
}

/// Does what was asked and gives the exit code.
pub fn perform(invocation: &Invocation) -> Result<ExitCode, Error> {
    need_files()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the event loop")?;
    let Invocation {
        verb,
        force_source,
        socket,
    } = invocation;
    let force = *force_source;
    runtime.block_on(async {
        match verb {
            Verb::Run(run) => run::run(run, force).await,
            Verb::Attach(attach) => attach::attach(attach, socket, force).await,
            Verb::Once(once) => once::once(once, socket, force).await,
            Verb::AllNodes(asked) => all_nodes::all_nodes(asked, force).await,
            Verb::Agent(asked) => agent::agent(asked, socket, force).await,
            Verb::Show(asked) => show::show(asked, socket).await,
            Verb::List(asked) => list::list(asked, socket).await,
            Verb::Doctor(asked) => doctor::doctor(asked, socket, force).await,
        }
    })
}
