//! What an agent reads: requests of clients, what another agent left; and what a client reads of it.

use std::sync::LazyLock;

use serde_json::value::RawValue;
use swbpf::wire::{Answer, MAX_ANSWER, MAX_REQUEST, Request, line, next_line};
use tokio::runtime::{Builder, Runtime};

/// Ends at which the head of a request is cut.
const MOST_CUTS: usize = 256;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = Builder::new_current_thread();
    builder.build().expect("a runtime")
});

/// A connection, read by an agent and by a client. A request is read again where it is written.
pub fn wire(data: &[u8]) {
    let mut rest = data;
    while let Ok(Some(said)) = RUNTIME.block_on(next_line(&mut rest, MAX_ANSWER)) {
        if said.len() as u64 <= MAX_REQUEST {
            request(&said);
        }
        if let Ok(Answer::<Box<RawValue>> {
            snapshot: Some(snapshot),
            ..
        }) = serde_json::from_slice(&said)
        {
            crate::records::snapshot(snapshot.get().as_bytes());
        }
    }
}

fn request(said: &[u8]) {
    match Request::parse(said) {
        Ok(request) => {
            let written = line(&request).expect("JSON");
            let again = Request::parse(written.trim_ascii_end()).expect("what was written");
            assert_eq!(line(&again).expect("JSON").len(), written.len());
        }
        Err(refusal) => assert!(!refusal.message.is_empty()),
    }
}

/// The head of a request for metrics, as it comes: once there is an answer, the begin of the head had the same or none.
pub fn http(data: &[u8]) {
    let asked = swbpf::verb::parse::http(data);
    for end in 0..data.len().min(MOST_CUTS) {
        let early = swbpf::verb::parse::http(&data[..end]);
        assert!(early.is_none() || early == asked, "{end}");
    }
}

/// A job as an agent left it for the next one.
pub fn left(data: &[u8]) {
    let _ = swbpf::verb::parse::left(data);
}
