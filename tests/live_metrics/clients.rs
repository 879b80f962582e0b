//! Clients of ill will: whatever they do, the next scrape is answered, and has what was not read before.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::Duration;

use support::measure::MIB;
use support::need_bpf;

use crate::node::Node;
use crate::{WINDOW_PEAK, about, address, http, start, value};

/// More than are open at one time.
const MANY: usize = 200;

#[test]
fn no_client_hinders_the_next_one() {
    if !need_bpf() {
        return;
    }
    let mut node = Node::new();
    start(&mut node, &["--listen", "127.0.0.1:0"]);
    let address = address(&node);
    let job = node.job("one");
    for (request, status) in [
        ("HEAD /metrics HTTP/1.1\r\n\r\n".to_owned(), "405"),
        (
            "POST /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello".to_owned(),
            "405",
        ),
        ("GET /../../etc/passwd HTTP/1.1\r\n\r\n".to_owned(), "404"),
        ("\u{1b}]0;x\u{7}\r\n\r\n".to_owned(), "400"),
        (format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(8000)), "404"),
        (
            format!("GET /metrics HTTP/1.1\r\na: {}", "x".repeat(8192 - 26)),
            "431",
        ),
        (
            format!("GET /metrics HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(100)),
            "431",
        ),
    ] {
        let (told, _) = http::ask(&address, &request);
        assert!(told.contains(status), "{status}, not {told}");
    }
    let kept = ill_clients(&address);
    job.run(&["anon", "--size", "50M", "--hold-ms", "5"]);
    // The two buckets of time in which a window begins belong to the one before it too.
    sleep(Duration::from_millis(100));
    let takers = never_reading(&address);
    let text = http::get(&address, "/metrics");
    let peak = value(&text, WINDOW_PEAK, Some(&job)).expect("a peak");
    assert!(
        about(50 * MIB).contains(&peak),
        "{peak}: one that does not read takes nothing"
    );
    // It has been read to its end now.
    sleep(Duration::from_millis(500));
    let text = http::get(&address, "/metrics");
    let peak = value(&text, WINDOW_PEAK, Some(&job)).expect("a peak");
    assert!(peak < 50 * MIB, "{peak}");
    drop((kept, takers));
    job.run(&["anon", "--size", "20M", "--hold-ms", "5"]);
    job.remove();
    let summary = node.summary("cgroup-one");
    crate::node::check_peak(&summary, 50 * MIB);
}

/// Connections that say nothing, or one byte and then nothing.
fn ill_clients(address: &str) -> Vec<TcpStream> {
    let mut all: Vec<TcpStream> = (0..MANY).map(|_| http::connect(address)).collect();
    for stream in all.iter_mut().step_by(2) {
        // It may have been hung up on.
        let _ = stream.write_all(b"G");
    }
    all
}

/// Connections that ask and do not read, in the middle of the answer and at all.
fn never_reading(address: &str) -> Vec<TcpStream> {
    let ask = |begun: usize| {
        let mut stream = http::connect(address);
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\n\r\n")
            .expect("it takes the request");
        let mut begin = vec![0; begun];
        stream.read_exact(&mut begin).expect("the begin of an answer");
        stream
    };
    [0, 1, 100].into_iter().map(ask).collect()
}
