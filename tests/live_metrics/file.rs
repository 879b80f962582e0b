//! The file.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use support::measure::{MIB, wait_until};
use support::need_bpf;

use crate::node::Node;
use crate::prometheus::program;
use crate::{WINDOW_PEAK, about, address, http, start, value};

/// That promtool, which reads what the node exporter reads, has nothing to say against it.
fn check(promtool: &Path, text: &str) {
    let mut promtool = Command::new(promtool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool starts");
    let mut stdin = promtool.stdin.take().expect("a pipe");
    stdin.write_all(text.as_bytes()).expect("it reads");
    drop(stdin);
    let output = promtool.wait_with_output().expect("an end");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.is_empty(), "{told}");
}

/// The file is whole whenever it is read, is what its readers take, and keeps its own window whatever is scraped meanwhile.
#[test]
fn the_file_is_whole_and_has_a_window_of_its_own() {
    let Some(promtool) = program("promtool").filter(|_| need_bpf()) else {
        return;
    };
    let mut node = Node::new();
    let path = node.dir("sw-bpf.prom");
    let name = path.display().to_string();
    start(&mut node, &["--listen", "127.0.0.1:0", "--openmetrics", &name]);
    let job = node.job("one\\\"odd\" name");
    job.run(&["anon", "--size", "40M", "--hold-ms", "5"]);
    let scraped = http::get(&address(&node), "/metrics");
    check(&promtool, &scraped);
    let read = || fs::read_to_string(&path).unwrap_or_default();
    wait_until("the file", || read().contains("odd"));
    let begun = read();
    check(&promtool, &begun);
    assert!(begun.ends_with("# EOF\n"));
    assert_eq!(
        fs::metadata(&path).expect("there").permissions().mode() & 0o777,
        0o644
    );
    job.remove();
    // It is written anew where a job has gone, and tells it for as long as its window.
    wait_until("the end of the job", || {
        value(&read(), "swbpf_agent_jobs", None) == Some(0)
    });
    let ended = read();
    check(&promtool, &ended);
    let peaks: Vec<u64> = ended
        .lines()
        .filter(|line| line.starts_with(WINDOW_PEAK))
        .map(|line| {
            line.rsplit(' ')
                .next()
                .expect("a number")
                .parse()
                .expect("a number")
        })
        .collect();
    assert!(
        matches!(&peaks[..], [peak] if about(40 * MIB).contains(peak)),
        "{peaks:?}"
    );
    assert_eq!(node.end(), Some(0));
    assert!(!path.exists(), "what is not measured any more has no numbers");
}

/// What cannot be done is refused at the start, and says what to do.
#[test]
fn what_would_be_unsafe_is_refused() {
    if !need_bpf() {
        return;
    }
    let node = Node::new();
    let open = node.dir("open");
    fs::create_dir(&open).expect("a directory");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("changed");
    let into_open = open.join("m.prom").display().to_string();
    let missing = node.dir("missing/m.prom").display().to_string();
    for (options, hint) in [
        (["--listen", "0.0.0.0:9417"], "no loopback address"),
        (["--listen", "[::]:9417"], "no loopback address"),
        (["--listen", "node1:9417"], "127.0.0.1:9417"),
        (["--openmetrics", into_open.as_str()], "chmod 755"),
        (["--openmetrics", missing.as_str()], "No such file"),
        (["--openmetrics", "/dev/null"], "no plain file"),
    ] {
        let output = node.command().args(options).output().expect("sw-bpf starts");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && told.contains(hint),
            "{options:?}: {told}"
        );
    }
}
