//! Names and arguments that nobody would give in good faith.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;

use support::command::{failure, output, sw_bpf, told};
use support::need_bpf;
use tempfile::TempDir;

use super::recorded;

/// Clears a screen, turns its text around, ends a line, is no UTF-8.
const NAME: &[u8] = b"\x1b[2J\r\n\xff\xe2\x80\xaex";

/// Whether a terminal shows it as it is.
fn is_plain(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte))
}

#[test]
fn hostile_names_are_shown_without_their_effect() {
    if !need_bpf() {
        return;
    }
    let dir = TempDir::new().expect("a directory");
    let path = dir.path().join(OsStr::from_bytes(NAME));
    // Named after itself, it becomes the largest process of all.
    fs::write(
        &path,
        "#!/bin/sh\nhead -c 30M /dev/zero | tail -c 30M | wc -c >/dev/null\n",
    )
    .expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a script");
    let (output, lines) = recorded(&[], &[path.as_os_str(), OsStr::from_bytes(NAME)]);
    assert_eq!(output.status.code(), Some(0));
    assert!(is_plain(&told(&output)), "{:?}", told(&output));
    let command = lines[0]["target"]["command"].as_array().expect("a command");
    assert_eq!(command[1], String::from_utf8_lossy(NAME).as_ref());
}

#[test]
fn hostile_names_of_commands_that_are_not_there_stay_on_one_line() {
    let mut run = sw_bpf(&["run", "--"]);
    let (code, line) = failure(&output(run.arg(OsString::from_vec(NAME.to_vec()))));
    assert!([Some(127), Some(77)].contains(&code), "{line}");
    assert!(is_plain(&line), "{line:?}");
}

#[test]
fn a_huge_command_line_is_passed_on() {
    if !need_bpf() {
        return;
    }
    // Most of the 2 MiB that the kernel takes.
    let words: Vec<OsString> = (0..10_000).map(|word| format!("{word:0>100}").into()).collect();
    let mut command = ["sh", "-c", "echo $#", "sh"].map(OsStr::new).to_vec();
    command.extend(words.iter().map(OsString::as_os_str));
    let (output, lines) = recorded(&[], &command);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "10000\n");
    assert_eq!(
        lines[0]["target"]["command"].as_array().map(Vec::len),
        Some(10_004)
    );
    let told = told(&output);
    assert!(told.lines().all(|line| line.len() <= 80), "{told}");
}

#[test]
fn an_empty_name_is_not_found() {
    if !need_bpf() {
        return;
    }
    let (code, line) = failure(&output(&mut sw_bpf(&["run", "--", ""])));
    assert_eq!(code, Some(127), "{line}");
}
