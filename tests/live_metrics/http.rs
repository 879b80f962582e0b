//! Requests by hand.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use support::pace::scaled;

/// No answer takes so long.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection that does not wait for ever.
pub fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).expect("someone listens");
    stream
        .set_read_timeout(Some(scaled(PATIENCE)))
        .expect("a limit of time");
    stream
}

/// The status line and the body of the answer to a request.
pub fn ask(address: &str, request: &str) -> (String, String) {
    let mut stream = connect(address);
    stream
        .write_all(request.as_bytes())
        .expect("it takes the request");
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .expect("an answer, and its end");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.lines().next().expect("a status").to_owned();
    (status, body.to_owned())
}

/// The body of the answer to `GET PATH`.
pub fn get(address: &str, path: &str) -> String {
    // By 1.0 nothing comes in chunks.
    let (status, body) = ask(
        address,
        &format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n"),
    );
    assert!(status.contains(" 200 "), "{status}: {body}");
    body
}
