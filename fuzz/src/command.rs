//! The command line.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use swbpf::cli;

/// Most arguments.
const MOST: usize = 12;

/// Each line is an argument. What is not understood is told, with the exit code for it.
pub fn command_line(data: &[u8]) {
    let typed = data.split(|byte| *byte == b'\n').take(MOST);
    let typed = typed.map(|word| OsString::from_vec(word.to_vec()));
    if let Err(error) = cli::parse(std::iter::once("sw-bpf".into()).chain(typed)) {
        assert!([0, 2].contains(&error.exit_code()), "{error}");
        assert!(!error.to_string().is_empty());
    }
}
