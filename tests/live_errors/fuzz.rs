//! Command lines at random, the same ones each time.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStringExt as _;
use std::process::Stdio;

use support::command::{output, sw_bpf, told};
use swbpf::error::EXIT_CODES;

use super::has_panicked;

const LINES: usize = 400;

/// Words that lead far into the program, none of which it can work on for long.
const WORDS: [&str; 41] = [
    "run",
    "attach",
    "doctor",
    "--once",
    "--json",
    "--cgroup",
    "--pid",
    "--window",
    "--limit-mem",
    "--force-source",
    "kernel",
    "sampled",
    "--",
    "--help",
    "--version",
    "help",
    "-h",
    "-V",
    "-",
    "",
    "true",
    "/nonexistent",
    "/tmp",
    "/dev/full",
    "0",
    "-1",
    "1",
    "2147483647",
    "4294967296",
    "18446744073709551616",
    "50ms",
    "1e99s",
    "NaN",
    "9999999999999h",
    "0.0500000000000000000001s",
    "1.5G",
    "99999999999T",
    "--json=/dev/full",
    "--cgroup=/",
    "--pid=2147483646",
    "\u{202e}",
];

/// A generator of Marsaglia's: what it gives is the same everywhere.
struct Xorshift(u64);

impl Xorshift {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn word(&mut self) -> OsString {
        if self.below(5) > 0 {
            return WORDS[self.below(WORDS.len())].into();
        }
        // A command line has no NUL.
        let length = self.below(20);
        OsString::from_vec((0..length).map(|_| 1 + self.below(255) as u8).collect())
    }
}

#[test]
fn no_command_line_makes_it_panic() {
    let mut random = Xorshift(0x5eed_0bad_cafe_f00d);
    let codes: Vec<i32> = EXIT_CODES.iter().map(|(code, _)| i32::from(*code)).collect();
    for _ in 0..LINES {
        let words: Vec<OsString> = (0..random.below(8)).map(|_| random.word()).collect();
        let mut command = sw_bpf(&[]);
        // Nobody reads: `attach` ends with its first line.
        let full = File::options().write(true).open("/dev/full").expect("a device");
        let output = output(command.args(&words).stdin(Stdio::null()).stdout(full));
        assert!(!has_panicked(&output), "{words:?}: {}", told(&output));
        assert!(
            codes.contains(&output.status.code().expect("a code")),
            "{words:?}: {}",
            told(&output)
        );
    }
}
