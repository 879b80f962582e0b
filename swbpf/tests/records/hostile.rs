//! Files that are no records, or no more.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::process::Command;

use swbpf::out::json;

use super::{AFTER, BEFORE, Scene, ended, progress, snapshots, stderr};

#[test]
fn a_torn_line_is_left_out_and_told() {
    let scene = Scene::new();
    let line = json::line(&ended(7, BEFORE)).expect("JSON");
    let torn = &line[..line.len() / 2];
    // With an end of its own, where a writer has gone on behind it.
    for (rest, told) in [
        (torn.to_owned(), "the last line is torn"),
        (format!("{torn}\n"), "a line is no snapshot"),
        (
            format!("{torn}\n{{}}\n{torn}"),
            "the last line is torn, and 2 lines",
        ),
    ] {
        scene.file("7.jsonl", line.clone() + &rest);
        let output = scene.ask(&["show", "7", "--json"]);
        assert_eq!(String::from_utf8_lossy(&output.stdout), line);
        assert!(stderr(&output).contains(told), "{}", stderr(&output));
    }
    scene.file("7.jsonl", format!("{torn}\n{line}"));
    let output = scene.ask(&["show", "7", "--json"]);
    assert_eq!(
        (stderr(&output), output.stdout),
        (String::new(), line.into_bytes())
    );
}

#[test]
fn what_another_version_wrote_is_read_or_named() {
    let scene = Scene::new();
    let line = json::line(&ended(7, AFTER)).expect("JSON");
    let older = line.replacen("\"schema_version\":1", "\"schema_version\":0,\"new_key\":[{}]", 1);
    scene.file("7.jsonl", older);
    assert!(scene.answer(&["show", "7"]).contains("job 7 of alice"));
    // Whatever else it holds.
    for newer in [
        line.replacen("\"schema_version\":1", "\"schema_version\":2", 1),
        "{\"schema_version\":2}\n".to_owned(),
    ] {
        scene.file("7.jsonl", newer);
        let (code, told) = scene.failure(&["show", "7"]);
        assert_eq!(code, Some(67), "{told}");
        assert!(told.contains("schema_version 2, and 1 is understood"), "{told}");
        assert!(scene.answer(&["list"]).contains("schema_version 2"));
    }
}

#[test]
fn what_is_no_record_neither_hangs_nor_hides_the_others() {
    let scene = Scene::new();
    scene.record("1", &[ended(1, AFTER)]);
    scene.file("2.jsonl", "");
    scene.file("3.jsonl", vec![0_u8; 20 << 20]);
    scene.file("4.jsonl", "\n".repeat(1 << 20));
    scene.file("5.jsonl", "[".repeat(1 << 20) + "\n");
    symlink("1.jsonl", scene.path("6.jsonl")).expect("a link");
    fs::create_dir(scene.path("7.jsonl")).expect("a directory");
    let made = Command::new("mkfifo").arg(scene.path("8.jsonl")).status();
    assert!(made.expect("mkfifo").success());
    scene.file("README", "no record");
    scene.file("\u{1b}[2J.jsonl", "no record");
    let others = ["1.jsonl", "2.jsonl", "3.jsonl", "4.jsonl", "5.jsonl"];
    let mut listed = scene.listed(&[]);
    listed.sort_unstable();
    assert_eq!(listed, others);
    for (id, why) in [
        ("2", "no whole line yet"),
        ("3", "none of its last lines"),
        ("4", "none of its last lines"),
        ("5", "none of its last lines"),
        ("6", "6.jsonl"),
        ("7", "no plain file"),
        ("8", "no plain file"),
    ] {
        let (code, told) = scene.failure(&["show", id]);
        assert!(told.contains(why) && told.lines().count() == 1, "{told}");
        assert!(matches!(code, Some(1 | 67)), "{told}");
    }
}

/// A directory of a user's own, as `run --json` leaves it.
#[test]
fn what_names_do_to_a_terminal_is_undone() {
    let scene = Scene::new();
    let mut snapshot = progress(7, AFTER);
    snapshot = snapshots::hostile::with_names(snapshot, "\u{1b}[2J", "\u{1b}]0;x\u{7}");
    scene.record("7", &[snapshot]);
    for arguments in [&["show", "7"][..], &["show", "7", "--admin-comment"], &["list"]] {
        let text = scene.answer(arguments);
        let is_plain = |byte: u8| byte == b'\n' || (b' '..=b'~').contains(&byte);
        assert!(text.bytes().all(is_plain), "{text:?}");
    }
}

#[test]
fn a_reader_that_has_gone_is_no_failure() {
    let scene = Scene::new();
    scene.record("7", &[ended(7, AFTER)]);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let status = scene.command(&["list"]).stdout(writer).status();
    assert!(status.expect("sw-bpf starts").success());
    let mut file = fs::File::options()
        .append(true)
        .open(scene.path("7.jsonl"))
        .expect("there");
    file.write_all(b"{").expect("written");
    assert!(scene.answer(&["list"]).contains("torn"));
}
