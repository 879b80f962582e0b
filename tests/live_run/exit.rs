//! The exit code is the command's own.

use support::command::{output, sw_bpf, told};
use support::need_bpf;

use super::run_script;

#[test]
fn the_exit_code_is_that_of_the_command() {
    if !need_bpf() {
        return;
    }
    for (script, code, told_as) in [
        ("exit 0", 0, "exit 0 after"),
        ("exit 3", 3, "exit 3 after"),
        ("exit 255", 255, "exit 255 after"),
        ("kill -TERM $$", 128 + 15, "ended by signal 15 after"),
        ("kill -KILL $$", 128 + 9, "ended by signal 9 after"),
        ("kill -ABRT $$", 128 + 6, "ended by signal 6 after"),
    ] {
        let output = output(&mut run_script(script, &[]));
        assert_eq!(output.status.code(), Some(code), "{script}");
        assert!(told(&output).contains(told_as), "{script}: {}", told(&output));
    }
}

#[test]
fn options_behind_the_command_are_its_own() {
    if !need_bpf() {
        return;
    }
    let output = output(&mut sw_bpf(&[
        "run",
        "--",
        "echo",
        "--json",
        "-h",
        "--",
        "--version",
    ]));
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "--json -h -- --version\n"
    );
}

#[test]
fn a_command_that_was_not_started_has_no_summary() {
    if !need_bpf() {
        return;
    }
    let output = output(&mut sw_bpf(&["run", "--", "/nonexistent/command"]));
    assert_eq!(output.status.code(), Some(127));
    assert_eq!(told(&output).lines().count(), 1, "{}", told(&output));
}
