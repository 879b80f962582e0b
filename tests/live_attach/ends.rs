//! The end of what is measured is the end of the measurement.

use std::time::{Duration, Instant};

use support::command::{failure, output, sw_bpf, told};
use support::measure::{Process, own_cgroup};
use support::need_bpf;

use super::{attach, held, next_line, rest};

#[test]
fn a_cgroup_that_empties_ends_it() {
    if !need_bpf() {
        return;
    }
    let (own, mut process) = held();
    let (mut child, mut output) = attach(own.cgroup());
    next_line(&mut output);
    assert!(process.finish().0.success());
    let begin = Instant::now();
    let summary = rest(output);
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    assert!(child.wait().expect("an end").success());
    assert!(
        summary.iter().any(|line| line.starts_with("Peak memory")),
        "{summary:#?}"
    );
}

#[test]
fn a_cgroup_that_is_removed_ends_it() {
    if !need_bpf() {
        return;
    }
    let mut own = own_cgroup();
    let (mut child, mut output) = attach(own.cgroup());
    next_line(&mut output);
    own.remove().expect("an empty cgroup");
    let begin = Instant::now();
    let summary = rest(output);
    assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
    assert!(child.wait().expect("an end").success());
    assert!(
        summary.iter().any(|line| line.starts_with("Peak memory")),
        "{summary:#?}"
    );
}

#[test]
fn a_process_stands_for_its_cgroup() {
    if !need_bpf() {
        return;
    }
    let own = own_cgroup();
    // It ends by itself, and the measurement with it.
    let process = Process::workload_in(&own, &["sleep", "--ms", "2500"]);
    let mut command = sw_bpf(&["attach", "--pid", &process.id().to_string()]);
    let output = output(&mut command);
    assert!(output.status.success(), "{}", told(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains(&format!("sw-bpf: process {} in ", process.id())),
        "{text}"
    );
}

#[test]
fn a_process_that_has_ended_is_not_there() {
    let mut process = Process::start(&mut std::process::Command::new("true"));
    let pid = process.id().to_string();
    assert!(process.finish().0.success());
    for arguments in [
        &["attach", "--pid", &pid][..],
        &["--once", "--json", "--pid", &pid],
    ] {
        let (code, line) = failure(&output(&mut sw_bpf(arguments)));
        assert_eq!(code, Some(67), "{line}");
        assert!(line.contains(&pid), "{line}");
    }
}
