use super::*;
use crate::error::EXIT_CODES;

fn typed(line: &str) -> Result<Invocation, Error> {
    parse(line.split(' ').map(OsString::from))
}

fn verb(line: &str) -> Verb {
    typed(line).unwrap_or_else(|error| panic!("{line}: {error}")).verb
}

fn refusal(line: &str) -> String {
    let error = typed(line).expect_err(line);
    assert_eq!(error.exit_code(), 2, "{line}");
    error.to_string()
}

#[test]
fn the_definition_holds_together() {
    command().debug_assert();
}

#[test]
fn run_takes_the_command_as_it_stands() {
    let run = |json: Option<&str>, limit_mem, command: &[&str]| {
        let command = command.iter().map(OsString::from).collect();
        Verb::Run(Run {
            json: json.map(PathBuf::from),
            limit_mem,
            command,
        })
    };
    assert_eq!(
        verb("sw-bpf run -- ls -l --json"),
        run(None, None, &["ls", "-l", "--json"])
    );
    assert_eq!(
        verb("sw-bpf run ls -l --json"),
        run(None, None, &["ls", "-l", "--json"])
    );
    assert_eq!(verb("sw-bpf run -- a -- b"), run(None, None, &["a", "--", "b"]));
    assert_eq!(
        verb("sw-bpf run --json r.jsonl --limit-mem 1.5G -- -odd"),
        run(Some("r.jsonl"), Some(3 << 29), &["-odd"])
    );
}

#[test]
fn run_takes_bytes_that_are_not_utf8() {
    use std::os::unix::ffi::OsStringExt;
    let odd = OsString::from_vec(vec![0xff, b'x']);
    let line = ["sw-bpf".into(), "run".into(), "--".into(), odd.clone()];
    let Ok(Invocation {
        verb: Verb::Run(run), ..
    }) = parse(line)
    else {
        panic!("refused")
    };
    assert_eq!(run.command, [odd]);
}

#[test]
fn attach_takes_one_target() {
    let attach = |target, json: Option<&str>| {
        Verb::Attach(Attach {
            target,
            json: json.map(PathBuf::from),
        })
    };
    assert_eq!(
        verb("sw-bpf attach --pid 7 --json r.jsonl"),
        attach(Target::Pid(7), Some("r.jsonl"))
    );
    assert_eq!(
        verb("sw-bpf attach --cgroup /c"),
        attach(Target::Cgroup("/c".into()), None)
    );
    assert_eq!(verb("sw-bpf attach --pid 7"), attach(Target::Pid(7), None));
    let job = |id: &str, node: Option<&str>| Target::Job {
        id: id.parse().expect("an id"),
        node: node.map(str::to_owned),
    };
    for id in ["123", "123_4", "123_[1-9%2]", "123+1", "123.0", "123.batch"] {
        assert_eq!(
            verb(&format!("sw-bpf attach {id}")),
            attach(job(id, None), None),
            "{id}"
        );
        assert_eq!(verb(&format!("sw-bpf {id}")), attach(job(id, None), None), "{id}");
    }
    assert_eq!(
        verb("sw-bpf attach 7 --node cn1 --json r.jsonl"),
        attach(job("7", Some("cn1")), Some("r.jsonl"))
    );
    assert_eq!(
        verb("sw-bpf --node cn1 attach 7"),
        attach(job("7", Some("cn1")), None)
    );
    for line in ["sw-bpf", "sw-bpf attach", "sw-bpf --force-source sampled"] {
        assert_eq!(verb(line), attach(Target::Mine { node: None }, None), "{line}");
    }
}

#[test]
fn once_has_a_window_and_a_target_of_its_own() {
    let once = |target, millis: Option<u64>, json| {
        Verb::Once(Once {
            target,
            window: millis.map(Duration::from_millis),
            json,
        })
    };
    assert_eq!(verb("sw-bpf --once"), once(Target::Own, None, false));
    let job = Target::Job {
        id: "7.batch".parse().expect("an id"),
        node: None,
    };
    assert_eq!(verb("sw-bpf --once 7.batch --json"), once(job, None, true));
    assert_eq!(
        verb("sw-bpf --once --json --pid 7"),
        once(Target::Pid(7), None, true)
    );
    assert_eq!(
        verb("sw-bpf --json --once --cgroup /c --window 200ms"),
        once(Target::Cgroup("/c".into()), Some(200), true)
    );
}

#[test]
fn all_nodes_of_a_job_can_be_asked_at_once() {
    let all = |job: Option<&str>, millis, json| {
        Verb::AllNodes(AllNodes {
            job: job.map(|id| id.parse().expect("an id")),
            window: Duration::from_millis(millis),
            json,
        })
    };
    assert_eq!(verb("sw-bpf --once --all-nodes"), all(None, 1_000, false));
    assert_eq!(
        verb("sw-bpf --once --all-nodes --json --window 200ms 123_4"),
        all(Some("123_4"), 200, true)
    );
}

#[test]
fn a_source_can_be_forced_before_and_after_the_verb() {
    for line in [
        "sw-bpf --force-source sampled run -- true",
        "sw-bpf run --force-source sampled -- true",
        "sw-bpf attach --pid 7 --force-source sampled",
        "sw-bpf --once --force-source sampled",
    ] {
        let invocation = typed(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(invocation.force_source, Some(ForcedSource::Sampled), "{line}");
    }
}

#[test]
fn bad_combinations_are_refused_with_the_way_out() {
    for (line, hint) in [
        (
            "sw-bpf atach",
            "no command (run, attach, show, list, agent, doctor)",
        ),
        (
            "sw-bpf atach 7",
            "no command (run, attach, show, list, agent, doctor)",
        ),
        ("sw-bpf 12x", "123_4"),
        ("sw-bpf attach 12.x", ".batch"),
        ("sw-bpf 12 attach", "JOB stands alone"),
        ("sw-bpf attach 12 --pid 7", "cannot be used with"),
        ("sw-bpf --once 12 --pid 7", "name one target"),
        ("sw-bpf attach --pid 7 --node cn1", "goes with a job"),
        ("sw-bpf run --node cn1 -- ls", "goes with a job"),
        ("sw-bpf run", "COMMAND"),
        ("sw-bpf run --", "COMMAND"),
        ("sw-bpf run --typo -- ls", "--typo"),
        ("sw-bpf run --mem 1G -- ls", "--limit-mem 2G"),
        ("sw-bpf run --limit-mem 1K -- ls", "below 1M"),
        ("sw-bpf run -o x -- ls", "--json FILE"),
        ("sw-bpf attach --once 7", "`sw-bpf --once`"),
        ("sw-bpf doctor --node n1", "goes with a job"),
        ("sw-bpf sh -x 1", "`sw-bpf run -- sh -x 1`"),
        ("sw-bpf /bin/sh", "`sw-bpf run -- /bin/sh`"),
        ("sw-bpf --force-source kernel sh", "`sw-bpf run -- sh`"),
        ("sw-bpf run --json -- ls", "--json <FILE>"),
        ("sw-bpf run --limit-mem lots -- ls", "300M or 1.5G"),
        ("sw-bpf attach --cgroup /c --pid 7", "cannot be used with"),
        ("sw-bpf attach --pid 0", "from 1 to 2147483647"),
        ("sw-bpf attach --pid 4294967295", "from 1 to 2147483647"),
        ("sw-bpf attach --pid abc", "from 1 to 2147483647"),
        ("sw-bpf attach --pid 7 --json -", "/dev/stdout"),
        ("sw-bpf run --json - -- ls", "/dev/stdout"),
        ("sw-bpf --json", "sw-bpf attach --json FILE"),
        ("sw-bpf --json 7", "'--once'"),
        ("sw-bpf --window 2s", "'--once'"),
        ("sw-bpf --pid 7", "sw-bpf attach --pid PID"),
        ("sw-bpf --cgroup /c", "sw-bpf attach --cgroup PATH"),
        ("sw-bpf --json doctor", "behind that"),
        ("sw-bpf --once --cgroup /c --pid 7", "cannot be used with"),
        ("sw-bpf --once --window 10ms", "50ms to 3600s"),
        ("sw-bpf --all-nodes 7", "--once"),
        ("sw-bpf attach --all-nodes 7", "--all-nodes"),
        ("sw-bpf --once --all-nodes --pid 7", "cannot be used with"),
        ("sw-bpf --once --all-nodes --cgroup /c", "cannot be used with"),
        ("sw-bpf --once --all-nodes 7 --node cn1", "cannot be used with"),
        ("sw-bpf --once --all-nodes 7.0", "a whole job"),
        ("sw-bpf --once run -- ls", "'--once' stands alone"),
        ("sw-bpf --json run -- ls", "--once"),
        ("sw-bpf --window 2s 7", "`sw-bpf --once --window 2s`"),
    ] {
        let told = refusal(line);
        assert!(told.contains(hint), "{line}: {told}");
        assert!(!told.contains("as a value"), "{line}: {told}");
    }
}

#[test]
fn a_hostile_command_is_not_repeated() {
    for odd in ["\u{1b}[2J", "a\nb", &"x".repeat(5000)] {
        let typed = ["sw-bpf", "sh", odd].map(OsString::from);
        let told = parse(typed).expect_err("no job").to_string();
        assert!(told.contains("`sw-bpf run -- COMMAND [ARGS]`"), "{told}");
    }
}

#[test]
fn records_are_asked_for_by_job_or_by_what_they_have_in_common() {
    let show = |line: &str| match verb(line) {
        Verb::Show(show) => show,
        other => panic!("{line}: {other:?}"),
    };
    let plain = show("sw-bpf show 123_4");
    assert_eq!(plain.job, "123_4".parse().expect("an id"));
    assert_eq!((plain.run, plain.json, plain.admin_comment), (0, false, false));
    assert_eq!(plain.records, None);
    let given = show("sw-bpf show cgroup-a --run 2 --json --records /r");
    assert_eq!(
        (given.run, given.json, given.records),
        (2, true, Some("/r".into()))
    );
    let Verb::List(list) = verb("sw-bpf list --json --since 2026-11-30 --user 7 --state ended") else {
        panic!("another task")
    };
    assert!(list.json && list.since.is_some());
    assert_eq!(list.state, Some(crate::snapshot::JobState::Ended));
    for (line, hint) in [
        ("sw-bpf show", "<JOB>"),
        ("sw-bpf show x", "is not the id of a job"),
        ("sw-bpf show 7 --json --admin-comment", "cannot be used with"),
        ("sw-bpf show alpha", "`sw-bpf show cgroup-alpha`"),
        ("sw-bpf list --force-source kernel", "drop '--force-source'"),
        ("sw-bpf --force-source kernel list", "drop '--force-source'"),
        ("sw-bpf show 7 --node cn1", "drop it"),
        ("sw-bpf show 7 --force-source kernel", "drop '--force-source'"),
        ("sw-bpf list --since yesterday", "2h, 7d or now-1day"),
        ("sw-bpf agent --keep-days 1w", "30 or 30d"),
        ("sw-bpf list --state done", "running, ended, unknown"),
    ] {
        let told = refusal(line);
        assert!(told.contains(hint), "{line}: {told}");
    }
}

/// As `list` prints it.
#[test]
fn what_is_copied_from_a_list_or_is_a_path_leads_to_what_works() {
    let told = |words: &[&str]| {
        let error = parse(words.iter().map(OsString::from)).expect_err("no id");
        error.to_string()
    };
    for (words, hint) in [
        (&["sw-bpf", "show", "1 #1"][..], "`sw-bpf show 1 --run 1`"),
        (
            &["sw-bpf", "show", "cgroup-a #2"],
            "`sw-bpf show cgroup-a --run 2`",
        ),
        (&["sw-bpf", "cgroup-alpha"], "`sw-bpf show cgroup-NAME`"),
        (&["sw-bpf", "--once", "cgroup-alpha"], "`sw-bpf show cgroup-NAME`"),
        (&["sw-bpf", "attach", "cgroup-alpha"], "attach --cgroup PATH"),
        (&["sw-bpf", "attach", "/sys/fs/cgroup/a"], "attach --cgroup PATH"),
        (&["sw-bpf", "/sys/fs/cgroup/a"], "attach --cgroup PATH"),
    ] {
        let told = told(words);
        assert!(told.contains(hint), "{words:?}: {told}");
    }
    let hostile = told(&["sw-bpf", "show", "a\u{1b} #1"]);
    assert!(
        !hostile.contains("--run 1") && !hostile.contains('\u{1b}'),
        "{hostile}"
    );
}

/// What is listed is taken.
#[test]
fn help_lists_what_a_command_takes() {
    let help = |line: &str| {
        let error = typed(line).expect_err("help is no task");
        assert_eq!(error.exit_code(), 0);
        error.to_string()
    };
    for line in ["sw-bpf doctor --help", "sw-bpf run --help"] {
        assert!(!help(line).contains("--node"), "{line}");
    }
    for line in ["sw-bpf show --help", "sw-bpf list --help"] {
        assert!(!help(line).contains("--force-source"), "{line}");
    }
    for line in ["sw-bpf attach --help", "sw-bpf doctor --help"] {
        assert!(help(line).contains("--force-source"), "{line}");
    }
    for line in ["sw-bpf attach --help", "sw-bpf --help"] {
        assert!(help(line).contains("--node"), "{line}");
    }
}

#[test]
fn help_lists_every_exit_code_and_each_source() {
    let error = typed("sw-bpf --help").expect_err("help is no task");
    assert_eq!(error.exit_code(), 0);
    let help = error.to_string();
    for (code, meaning) in EXIT_CODES {
        assert!(help.contains(&format!("{code:>5}  {meaning}")), "{help}");
    }
    assert!(help.contains("kernel:") && help.contains("sampled:"), "{help}");
    assert!(help.lines().all(|line| line.len() <= 100), "{help}");
}

#[test]
fn the_version_is_told() {
    let error = typed("sw-bpf --version").expect_err("the version is no task");
    assert_eq!(error.exit_code(), 0);
    assert_eq!(
        error.to_string(),
        format!("sw-bpf {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn the_doctor_takes_json_and_a_source() {
    for source in [ForcedSource::Fentry, ForcedSource::Sampled] {
        let invocation = typed(&format!("sw-bpf doctor --force-source {}", source.name()));
        assert_eq!(invocation.expect("understood").force_source, Some(source));
    }
    assert_eq!(verb("sw-bpf doctor"), Verb::Doctor(Doctor { json: false }));
    assert_eq!(verb("sw-bpf doctor --json"), Verb::Doctor(Doctor { json: true }));
    for line in [
        "sw-bpf doctor --node n1",
        "sw-bpf doctor 4711",
        "sw-bpf doctor --pid 1",
        "sw-bpf --once doctor",
        "sw-bpf 4711 doctor",
    ] {
        let _ = refusal(line);
    }
}

#[test]
fn metrics_are_told_at_a_loopback_address() {
    for (line, address) in [
        ("127.0.0.1:9417", "127.0.0.1:9417"),
        ("localhost:9417", "127.0.0.1:9417"),
        ("[::1]:9417", "[::1]:9417"),
    ] {
        let Verb::Agent(agent) = verb(&format!("sw-bpf agent --listen {line}")) else {
            panic!("another task")
        };
        assert_eq!(
            agent.listen.map(|listen| listen.to_string()).as_deref(),
            Some(address)
        );
    }
    for line in [
        "9417",
        "localhost",
        "localhost:x",
        "node1:9417",
        "0.0.0.0:9417",
        "[::]:9417",
    ] {
        let told = refusal(&format!("sw-bpf agent --listen {line}"));
        assert!(told.contains("127.0.0.1"), "{line}: {told}");
    }
}
