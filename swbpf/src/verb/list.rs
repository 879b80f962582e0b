//! `sw-bpf list`: the records of this host.

use std::process::ExitCode;

use jiff::Timestamp;

use crate::{
    cli,
    error::Error,
    out::{self, json, text},
    record::{self, Filter, Records, View, Whose},
    snapshot::{Entry, Listing},
};

/// Tells which records there are.
pub fn list(asked: &cli::List) -> Result<ExitCode, Error> {
    let records = Records::open(&asked.records)?;
    let entries = record::list(&records, &filter(asked), View::default())?;
    tell(entries, asked.json)
}

/// Which records are asked for.
pub fn filter(asked: &cli::List) -> Filter {
    Filter {
        since: asked.since,
        user: asked.user.as_deref().map(Whose::of),
        state: asked.state,
    }
}

/// Answers on standard output.
pub fn tell(entries: Vec<Entry>, is_json: bool) -> Result<ExitCode, Error> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let listing = Listing::of(format!("{:.3}", Timestamp::now()), host, entries);
    let answer = if is_json {
        json::line(&listing)?
    } else {
        text::listed(&listing)
    };
    // A reader that has gone is success.
    let _ = out::tell(&answer)?;
    Ok(ExitCode::SUCCESS)
}
