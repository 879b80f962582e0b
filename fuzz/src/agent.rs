//! What an agent reads: requests of clients, what another agent left; and what a client reads of it.

use std::sync::LazyLock;

use serde_json::value::RawValue;
use swbpf::wire::{MAX_REQUEST, Read, Request, line, next_line};
use tokio::runtime::{Builder, Runtime};

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = Builder::new_current_thread();
    builder.build().expect("a runtime")
});

/// A connection, read by an agent and by a client. A request is read again where it is written.
pub fn wire(data: &[u8]) {
    let mut rest = data;
    while let Ok(Some(said)) = RUNTIME.block_on(next_line(&mut rest, MAX_REQUEST)) {
        assert!(said.len() as u64 <= MAX_REQUEST);
        match Request::parse(&said) {
            Ok(request) => {
                let written = line(&request).expect("JSON");
                let again = Request::parse(written.trim_ascii_end()).expect("what was written");
                assert_eq!(line(&again).expect("JSON").len(), written.len());
            }
            Err(refusal) => assert!(!refusal.message.is_empty()),
        }
        if let Ok(Read {
            snapshot: Some(snapshot),
            ..
        }) = serde_json::from_slice(&said)
        {
            let text: &RawValue = &snapshot;
            crate::records::snapshot(text.get().as_bytes());
        }
    }
}

/// A job as an agent left it for the next one.
pub fn left(data: &[u8]) {
    let _ = swbpf::verb::parse::left(data);
}
