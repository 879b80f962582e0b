//! The answer as a user's script reads it.

use std::process::{Command, Stdio};

use support::command::sw_bpf;
use support::{need_bpf, skipped};

#[test]
fn jq_finds_what_a_script_asks_for() {
    if !need_bpf() {
        return;
    }
    if Command::new("jq")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_err()
    {
        return skipped("jq is not installed");
    }
    for filter in [
        ".memory.needed_peak_bytes",
        ".cpu.busy_cores",
        ".coverage.seconds > 0",
        "[.unknown | keys[]] | length > 0",
    ] {
        let mut command = sw_bpf(&["--once", "--json", "--window", "50ms"]);
        let mut once = command.stdout(Stdio::piped()).spawn().expect("sw-bpf starts");
        let mut jq = Command::new("jq");
        let answer = once.stdout.take().expect("a pipe");
        let status = jq
            .args(["-e", filter])
            .stdin(answer)
            .stdout(Stdio::null())
            .status();
        assert!(status.expect("jq").success(), "{filter}");
        assert!(once.wait().expect("an end").success());
    }
}
