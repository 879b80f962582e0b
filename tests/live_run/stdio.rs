//! The command has the standard input, output and error of `sw-bpf`, and its surroundings.

use std::ffi::OsStr;
use std::io::Write as _;
use std::process::{Command, Stdio};

use support::command::{output, sw_bpf, told};
use support::measure::program;
use support::need_bpf;

use super::run_script;

#[test]
fn bytes_go_in_and_out_unchanged() {
    if !need_bpf() {
        return;
    }
    let bytes: Vec<u8> = (0..1_000_003_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let mut run = sw_bpf(&["run", "--", "cat"]);
    run.stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = run.spawn().expect("sw-bpf starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let sent = bytes.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&sent).expect("a reader"));
    let output = child.wait_with_output().expect("an end");
    writer.join().expect("all written");
    assert!(
        output.status.success() && output.stdout == bytes,
        "{}",
        output.status
    );
}

#[test]
fn the_summary_comes_after_what_the_command_said() {
    if !need_bpf() {
        return;
    }
    let output = output(&mut run_script("echo out; echo one >&2; printf two >&2", &[]));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "out\n");
    let told = told(&output);
    let summary = told.strip_prefix("one\ntwo").unwrap_or_else(|| panic!("{told}"));
    assert!(summary.trim_start().starts_with("sw-bpf: sh -c"), "{told}");
}

#[test]
fn the_command_has_the_surroundings_of_sw_bpf() {
    if !need_bpf() {
        return;
    }
    // Files that are open, limits, place, process group, priority, environment.
    let script = "ls /proc/self/fd; ulimit -a; pwd; umask; cut -d ' ' -f 5,19 /proc/$$/stat; env | sort";
    // Not in a shell, which sets signals as it likes.
    let signals = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"];
    for command in [&["sh", "-c", script][..], &signals] {
        let with = output(sw_bpf(&["run", "--"]).args(command));
        let without = output(Command::new(command[0]).args(&command[1..]));
        assert!(without.status.success(), "{}", told(&without));
        assert_eq!(
            String::from_utf8_lossy(&with.stdout),
            String::from_utf8_lossy(&without.stdout)
        );
    }
}

/// Runs a shell's script in which `"$0"` is `sw-bpf`.
fn shell(script: &str) -> std::process::Output {
    output(Command::new("sh").args([OsStr::new("-c"), script.as_ref(), program("sw-bpf").as_os_str()]))
}

#[test]
fn closed_descriptors_are_no_failure() {
    if !need_bpf() {
        return;
    }
    for closed in ["<&-", ">&-", "2>&-", "<&- >&-", "<&- 2>&-", "<&- >&- 2>&-"] {
        let output = shell(&format!("\"$0\" run -- sh -c 'exit 4' {closed}"));
        assert_eq!(output.status.code(), Some(4), "{closed}: {}", told(&output));
    }
    // What stands in for them is not a file of sw-bpf's own.
    let output = shell("\"$0\" run -- sh -c 'readlink /proc/self/fd/0 || echo none' <&-");
    let input = String::from_utf8_lossy(&output.stdout);
    assert!(["/dev/null\n", "none\n"].contains(&&*input), "{input}");
}

#[test]
fn a_reader_that_goes_away_ends_the_command_alone() {
    if !need_bpf() {
        return;
    }
    let output = shell("{ \"$0\" run -- yes; echo \"exit $?\" >&2; } | head -n 1");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "y\n");
    let told = told(&output);
    assert!(
        told.contains("ended by signal 13") && told.ends_with("exit 141\n"),
        "{told}"
    );
}
