//! `sw-bpf list`: the records of this host.

use std::{path::Path, process::ExitCode};

use jiff::Timestamp;

use super::client;
use crate::{
    cli::{self, DIR},
    error::Error,
    out::{self, json, text},
    record::{self, Filter, Records, View, Whose},
    snapshot::Listing,
    wire::Ask,
};

/// Tells which records there are: the agent's word, who knows which jobs run, else what the directory has.
pub async fn list(asked: &cli::List, socket: &Path) -> Result<ExitCode, Error> {
    let ask = Ask::List {
        since: asked.since,
        user: asked.user.clone(),
        state: asked.state,
    };
    let answer = match asked.records {
        None => client::of_records(socket, ask, "any job", |answer| answer.listing).await?,
        Some(_) => None,
    };
    let named = asked.records.as_deref();
    let is_of_agent = answer.is_some();
    let listing = match answer {
        Some(listing) => listing,
        None => read(asked).map_err(|error| client::without_agent(error, socket, named))?,
    };
    let is_known = |typed: &String| !listing.jobs.is_empty() || Whose::of(typed).is_known();
    if let Some(user) = asked.user.clone().filter(|typed| !is_known(typed)) {
        return Err(Error::NoSuchUser { user });
    }
    if listing.jobs.is_empty() && !is_of_agent {
        out::tell_aside(&text::of_record(&client::looked_at(socket, named)));
    }
    tell(&listing, asked.json)
}

fn read(asked: &cli::List) -> Result<Listing, Error> {
    let records = Records::open(asked.records.as_deref().unwrap_or(Path::new(DIR)))?;
    let filter = Filter {
        since: asked.since,
        user: asked.user.as_deref().map(Whose::of),
        state: asked.state,
    };
    Ok(listing(record::list(&records, &filter, View::default())?))
}

/// As it is told: entries in their order.
pub fn listing<E>(entries: Vec<E>) -> Listing<E> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Listing::of(format!("{:.3}", Timestamp::now()), host, entries)
}

/// Answers on standard output.
fn tell(listing: &Listing, is_json: bool) -> Result<ExitCode, Error> {
    let answer = if is_json {
        json::line(listing)?
    } else {
        text::listed(listing)
    };
    // A reader that has gone is success.
    let _ = out::tell(&answer)?;
    Ok(ExitCode::SUCCESS)
}
