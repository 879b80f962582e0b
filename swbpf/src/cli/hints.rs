//! What was probably meant, where the parser's own tips lead astray.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Error};

use super::{Cli, VERBS};
use crate::job::id::{JobId, Recorded};

/// Options whose value is the next word.
const WITH_VALUE: [&str; 5] = ["--node", "--force-source", "--cgroup", "--pid", "--window"];

/// Options by other names, or in another place, each with what to say.
const MISTAKEN: [(&[&str], &str); 5] = [
    (
        &[
            "--mem",
            "--memory",
            "--limit",
            "--mem-limit",
            "--memory-limit",
            "-m",
        ],
        "to limit the memory of a command: `sw-bpf run --limit-mem 2G -- COMMAND`",
    ),
    (&["--node"], "'--node' goes with a job: drop it"),
    (
        &["--once", "--all-nodes", "--window"],
        "it goes with `sw-bpf --once`, which stands alone: drop the command before it",
    ),
    (
        &["--output", "-o"],
        "to keep a record: `sw-bpf run --json FILE -- COMMAND`, `sw-bpf attach --json FILE`",
    ),
    (
        &["--pid", "--cgroup"],
        "to follow what runs already: `sw-bpf attach --pid PID`, `sw-bpf attach --cgroup PATH`",
    ),
];

/// The longest command that is repeated, in bytes.
const MAX_COMMAND: usize = 200;

/// `error` with a tip that is of use. The parser's own would have every option that it does not know passed as a value.
pub fn improved(mut error: Error, typed: &[OsString]) -> Error {
    if matches!(
        error.kind(),
        ErrorKind::ValueValidation | ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand
    ) && let Some(words) = unknown(typed)
    {
        let mut refusal = format!(
            "{:?} is no command ({VERBS}) and no id of a job",
            words[0].to_string_lossy()
        );
        if let Some(hint) = of_cgroup(&words[0].to_string_lossy()) {
            refusal = format!("{refusal}: {hint}");
        } else if is_program(&words[0]) {
            refusal = format!("{refusal}: to measure a program, `sw-bpf run -- {}`", told(words));
        }
        return Cli::command().error(ErrorKind::InvalidSubcommand, refusal);
    }
    if error.kind() == ErrorKind::UnknownArgument {
        error.remove(ContextKind::Suggested);
        let unknown = match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::String(unknown)) => unknown.clone(),
            _ => String::new(),
        };
        if let Some((_, tip)) = MISTAKEN
            .iter()
            .find(|(names, _)| names.contains(&unknown.as_str()))
        {
            error.remove(ContextKind::SuggestedArg);
            let tips = ContextValue::StyledStrs(vec![(*tip).into()]);
            error.insert(ContextKind::Suggested, tips);
        }
    }
    error
}

/// What to type for a cgroup that was named where an id is taken.
pub fn of_cgroup(typed: &str) -> Option<&'static str> {
    if typed.starts_with("/sys/fs/cgroup") {
        return Some(
            "a cgroup by its path is `sw-bpf attach --cgroup PATH` or `sw-bpf --once --cgroup PATH`",
        );
    }
    matches!(typed.parse(), Ok(Recorded::Cgroup(_))).then_some(
        "what is recorded of a watched cgroup is `sw-bpf show cgroup-NAME`; to follow it, `sw-bpf attach --cgroup PATH`",
    )
}

/// What to type for a record that was named otherwise.
pub fn of_record(typed: &str) -> Option<String> {
    if let Some((id, run)) = typed.split_once(" #")
        && id.parse::<Recorded>().is_ok()
        && let Ok(run) = run.parse::<u32>()
    {
        return Some(format!("an earlier run is `sw-bpf show {id} --run {run}`"));
    }
    let named = format!("cgroup-{typed}");
    let is_short = named.len() <= MAX_COMMAND && named.parse::<Recorded>().is_ok();
    is_short.then(|| format!("a watched cgroup is `sw-bpf show {named}`, as `sw-bpf list` has it"))
}

/// What to say of an option of `--once` where that is missing.
pub fn without_once(option: &str, has_verb: bool) -> String {
    let other = match option {
        _ if has_verb => "; if the command has it too, it stands behind that: `sw-bpf COMMAND --help`",
        "--pid" => "; to follow it, `sw-bpf attach --pid PID`",
        "--cgroup" => "; to follow it, `sw-bpf attach --cgroup PATH`",
        "--json" => "; to keep a record, `sw-bpf attach --json FILE`",
        "--window" => ": `sw-bpf --once --window 2s`; what is followed has a line a second",
        _ => "",
    };
    format!("'{option}' goes with '--once', for one window{other}")
}

/// The words from the first on that is no option, where that is nothing that sw-bpf knows. What begins with a digit was meant as
/// an id.
fn unknown(typed: &[OsString]) -> Option<&[OsString]> {
    let mut at = 1;
    loop {
        let word = typed.get(at)?.to_string_lossy();
        match word.as_ref() {
            "--" => at += 1,
            word if WITH_VALUE.contains(&word) => at += 2,
            word if word.starts_with('-') => at += 1,
            word => {
                let is_verb = VERBS.split(", ").chain(["help"]).any(|verb| verb == word);
                let is_id = word.is_empty()
                    || word.starts_with(|c: char| c.is_ascii_digit())
                    || word.parse::<JobId>().is_ok();
                return (!is_verb && !is_id).then(|| &typed[at..]);
            }
        }
    }
}

/// Whether a shell would find a program by this name.
fn is_program(name: &OsStr) -> bool {
    let is_executable = |path: &Path| {
        path.metadata()
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let path = Path::new(name);
    if path.components().count() > 1 || name.is_empty() {
        return is_executable(path);
    }
    let dirs = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&dirs).any(|dir| is_executable(&dir.join(path)))
}

/// The words as a shell would take them, where they are short and plain.
fn told(words: &[OsString]) -> String {
    let words: Option<Vec<&str>> = words.iter().map(|word| word.to_str()).collect();
    let line = words.and_then(|words| shlex::try_join(words).ok());
    line.filter(|line| line.len() <= MAX_COMMAND && !line.contains(char::is_control))
        .unwrap_or_else(|| "COMMAND [ARGS]".to_owned())
}
