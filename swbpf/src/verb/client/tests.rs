use std::{
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixListener,
    thread::{self, JoinHandle},
};

use tempfile::TempDir;

use super::*;
use crate::snapshot::Listing;

/// Says `line` to the first one who asks, and nothing more.
fn agent(line: &str) -> (TempDir, PathBuf, JoinHandle<()>) {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("agent.sock");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let said = format!("{line}\n");
    let agent = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut asked = String::new();
        BufReader::new(&stream).read_line(&mut asked).expect("a question");
        assert!(asked.contains("\"ask\""), "{asked}");
        stream.write_all(said.as_bytes()).expect("an answer");
    });
    (dir, socket, agent)
}

async fn told_of_a_job(line: &str) -> &'static str {
    let (_dir, socket, agent) = agent(line);
    let told = once(&socket, Target::CgroupId(7), None).await;
    agent.join().expect("it was asked");
    match told {
        Told::This(_) => "this",
        Told::NotYet => "not yet",
        Told::Nothing => "nothing",
    }
}

/// Else what is no answer would be passed on as one.
#[tokio::test]
async fn what_is_no_answer_to_the_question_is_none() {
    for (line, expected) in [
        (r#"{"version":1}"#, "nothing"),
        (r#"{"version":1,"snapshot":null}"#, "nothing"),
        (r#"{"version":1,"snapshot":{"kind":"once"}}"#, "nothing"),
        (r#"{"version":1,"snapshot":"\u001b[2J"}"#, "nothing"),
        (r#"{"version":2,"snapshot":{}}"#, "nothing"),
        ("", "nothing"),
        (
            r#"{"version":1,"refused":{"reason":"failed","message":"m"}}"#,
            "nothing",
        ),
        (
            r#"{"version":1,"refused":{"reason":"absent","message":"m"}}"#,
            "not yet",
        ),
    ] {
        assert_eq!(told_of_a_job(line).await, expected, "{line}");
    }
}

#[tokio::test]
async fn records_that_the_agent_does_not_tell_of_are_read_without_it() {
    let ask = || Ask::List {
        since: None,
        user: None,
        state: None,
    };
    let listing = Listing::<()>::of("2026-11-30T01:52:03Z".to_owned(), "n".to_owned(), Vec::new());
    let listing = serde_json::to_string(&listing).expect("JSON");
    for (line, is_told) in [
        (r#"{"version":1}"#.to_owned(), false),
        (format!(r#"{{"version":1,"listing":{listing}}}"#), true),
    ] {
        let (_dir, socket, agent) = agent(&line);
        let told = of_records(&socket, ask(), "any job", |answer| answer.listing).await;
        agent.join().expect("it was asked");
        assert_eq!(told.expect("no failure").is_some(), is_told, "{line}");
    }
}

/// What is elsewhere is no answer where the agent has none.
#[tokio::test]
async fn why_the_agent_has_no_answer_is_told() {
    let (_dir, socket, agent) =
        agent(r#"{"version":1,"refused":{"reason":"failed","message":"ask for less"}}"#);
    let ask = Ask::Show {
        job: "7".to_owned(),
        run: 0,
    };
    let told = of_records(&socket, ask, "7", |answer| answer.shown).await;
    agent.join().expect("it was asked");
    let told = told.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(told.ends_with("ask for less"), "{told}");
}

#[tokio::test]
async fn who_listens_and_says_nothing_is_given_up() {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("agent.sock");
    let _silent = UnixListener::bind(&socket).expect("a socket");
    let ask = Ask::Whole {
        target: Target::CgroupId(7),
    };
    let silence = try_begin(&socket, ask, Duration::from_millis(50)).await.err();
    assert!(matches!(silence, Some(Silence::Broken(why)) if why == "it took too long"));
}
