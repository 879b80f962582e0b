use rustix::io::Errno;

use super::*;

fn denied() -> io::Error {
    io::Error::from(ErrorKind::PermissionDenied)
}

/// One of each variant but `Usage` and `JobSeveral`, with hostile names.
fn one_of_each() -> Vec<Error> {
    let mut all = one_of_each_job();
    all.extend(one_of_each_refusal());
    let path = PathBuf::from("/a\n\u{1b}[31m\u{202e}b");
    let command = OsString::from("c\r\u{1b}]0;d");
    all.extend([
        Error::MissingCapability {
            capability: "CAP_BPF",
            is_withheld: true,
        },
        Error::Lockdown {
            mode: "confidentiality".into(),
        },
        Error::NoBtf {
            path: path.clone(),
            source: denied(),
        },
        Error::HookAbsent {
            hook: "mod_memcg_state".into(),
            release: "6.1".into(),
            reasons: "btf_tracepoint: none; fentry: none".into(),
        },
        Error::NoCgroups,
        Error::NoController { controller: "memory" },
        Error::CgroupGone { path: path.clone() },
        Error::NotACgroup { path: path.clone() },
        Error::NoSuchProcess { pid: 7 },
        Error::Permission {
            action: "create",
            path: path.clone(),
        },
        Error::TableFull { capacity: 8 },
        Error::Output {
            path,
            source: denied(),
        },
        Error::CommandNotFound {
            command: command.clone(),
        },
        Error::NotExecutable {
            command,
            source: denied(),
        },
        Error::Other(anyhow::anyhow!("first\n\u{1b}second")),
    ]);
    all
}

/// Those that tell what this user, this host or a limit forbids.
fn one_of_each_refusal() -> Vec<Error> {
    let path = PathBuf::from("/a\n\u{1b}[31m\u{202e}b");
    vec![
        Error::UserNamespace,
        Error::AgentNotRoot,
        Error::TooManyFiles { limit: 40 },
        Error::BadBtf {
            path: path.clone(),
            length: "0 bytes".into(),
            why: "it is empty".into(),
        },
        Error::RungRefused {
            asked: "fentry",
            why: "refused (EPERM)".into(),
            instead: None,
        },
        Error::NoOwnCgroup {
            path,
            why: denied().to_string(),
            way: "run as root",
        },
        Error::Stdout { source: denied() },
        Error::NoRoom {
            command: OsString::from("c\r\u{1b}]0;d"),
        },
    ]
}

/// Those that tell of a job.
fn one_of_each_job() -> Vec<Error> {
    vec![
        Error::JobPending {
            id: "7".into(),
            why: "Priority".into(),
        },
        Error::JobEnded {
            id: "7".into(),
            how: "COMPLETED".into(),
            has_record: true,
        },
        Error::NoSuchJob {
            id: "7".into(),
            why: "Slurm does not know it".into(),
        },
        Error::JobElsewhere {
            id: "7".into(),
            nodes: "cn1".into(),
            command: "srun sw-bpf attach 7".into(),
        },
        Error::JobNotYours {
            id: "7".into(),
            user: "alice".into(),
        },
        Error::NoSuchUser {
            user: "a\n\u{1b}[31m\u{202e}b".into(),
        },
        Error::NoRecord {
            what: "job 7".into(),
            why: "it has not run here".into(),
        },
        Error::NoSuchRun("job 7".into(), "there is no run 9 of it here".into()),
        Error::RecordDenied {
            action: "list",
            path: PathBuf::from("/a\n\u{1b}[31m"),
            why: "root alone may".into(),
        },
        Error::NodesMissing {
            id: "7".into(),
            missing: 1,
            all: 2,
            nodes: "cn2".into(),
        },
    ]
}

#[test]
fn every_failure_has_a_listed_code_and_every_listed_code_a_failure() {
    let listed: Vec<u8> = EXIT_CODES.iter().map(|&(code, _)| code).collect();
    assert!(listed.is_sorted_by(|a, b| a < b), "{listed:?}");
    let mut given: Vec<u8> = one_of_each().iter().map(Error::exit_code).chain([0, 2]).collect();
    given.sort_unstable();
    given.dedup();
    assert_eq!(given, listed);
}

#[test]
fn a_failure_is_one_line_without_control_characters() {
    for error in one_of_each() {
        let line = error.to_string();
        assert!(
            !line.chars().any(|c| c.is_control() || c == '\u{202e}'),
            "{line:?}"
        );
    }
}

#[test]
fn a_cause_is_told_once() {
    let told = |error: anyhow::Error| Error::from(error).to_string();
    let inner = || io::Error::from_raw_os_error(libc::EROFS);
    let outer = anyhow::Error::new(inner()).context(format!("cannot make it: {}; read instead", inner()));
    assert_eq!(
        told(outer),
        "cannot make it: Read-only file system (os error 30); read instead"
    );
    let plain = anyhow::Error::new(inner()).context("make it");
    assert_eq!(told(plain), "make it: Read-only file system (os error 30)");
}

#[test]
fn what_a_shell_understands_is_told_apart_from_what_is_misspelt() {
    let told = |command: &str| {
        Error::CommandNotFound {
            command: command.into(),
        }
        .to_string()
    };
    for command in ["sleep 1", "ulimit", "A=1", "echo $HOME", "a|b", "~/x", "cd"] {
        assert!(told(command).contains("sh -c"), "{command}");
    }
    for command in ["slep", "./nope", "/opt/a-b_c.1"] {
        assert!(
            told(command).contains("spelling") && !told(command).contains("sh -c"),
            "{command}"
        );
    }
}

#[test]
fn who_asked_for_a_rung_is_told_of_that_one_alone() {
    let error = Error::RungRefused {
        asked: "fentry",
        why: "refused (EPERM)".into(),
        instead: Some("btf_tracepoint"),
    };
    assert_eq!(
        error.to_string(),
        "fentry was asked for and cannot be used here: refused (EPERM): without --force-source btf_tracepoint is used"
    );
}

#[test]
fn several_jobs_are_listed_one_a_line() {
    let error = Error::JobSeveral {
        what: "7 means several jobs here".into(),
        candidates: vec!["7_1".into(), "7_2".into()],
    };
    assert_eq!(
        error.to_string(),
        "7 means several jobs here, name one of them:\n  7_1\n  7_2"
    );
    assert_eq!(error.exit_code(), 2);
}

#[test]
fn the_kernel_answer_decides_what_is_told_of_a_command() {
    let code = |raw| Error::of_exec(OsStr::new("c"), io::Error::from_raw_os_error(raw)).exit_code();
    assert_eq!(
        [code(libc::ENOENT), code(libc::EACCES), code(libc::ENOEXEC)],
        [127, 126, 126]
    );
}

/// Wherever it is met, and whatever was being done.
#[test]
fn too_many_open_files_are_told_as_such() {
    let met = |errno: Errno| {
        let error = anyhow::Error::new(io::Error::from(errno)).context("attach program x");
        Error::from(error.context("load the programs"))
    };
    let error = met(Errno::MFILE);
    assert_eq!(error.exit_code(), 1);
    let told = error.to_string();
    assert!(
        told.starts_with("too many open files: ") && told.contains("`ulimit -n "),
        "{told}"
    );
    assert!(!told.contains("attach"), "{told}");
    assert!(matches!(met(Errno::NOENT), Error::Other(_)));
    let refused = io::Error::from(Errno::MFILE);
    for hidden in [
        anyhow::Error::new(error),
        anyhow::Error::new(aya::programs::ProgramError::IOError(refused)),
        anyhow::Error::new(aya::maps::MapError::IoError(io::Error::from(Errno::MFILE))),
    ] {
        let error = Error::from(hidden.context("hear of it"));
        assert!(matches!(error, Error::TooManyFiles { .. }), "{error}");
    }
    let raised = |limit| Error::TooManyFiles { limit }.to_string();
    assert!(raised(40).contains("`ulimit -n 1024`"));
    assert!(raised(4096).contains("`ulimit -n 8192`"));
}
