//! One daemon, in the foreground: a child, so that its end is seen.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::pace::scaled;

/// How long a daemon may take to be of use.
const PATIENCE: Duration = Duration::from_secs(30);

/// Lines of a log that are shown where its daemon fails.
const SHOWN_LINES: usize = 20;

/// A daemon that runs. Dropped, it is killed: nothing that it holds is needed afterwards.
#[derive(Debug)]
pub struct Daemon {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Daemon {
    /// Starts one; what it writes to its standard output and error goes to `log`.
    ///
    /// # Panics
    ///
    /// Where it cannot be started.
    pub fn start(name: &str, command: &mut Command, log: &Path) -> Self {
        let file = File::create(log).expect("a log");
        command
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("a log"))
            .stderr(file);
        let child = command.spawn().unwrap_or_else(|error| panic!("{name}: {error}"));
        Self {
            name: name.to_owned(),
            child,
            log: log.to_owned(),
        }
    }

    /// Its program.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits until `holds`.
    ///
    /// # Panics
    ///
    /// Where it does not come true, or the daemon has ended.
    pub fn wait_until(&mut self, mut holds: impl FnMut() -> bool) {
        let deadline = Instant::now() + scaled(PATIENCE);
        while !holds() {
            let ended = self.child.try_wait().expect("a child of this process");
            assert!(
                ended.is_none() && Instant::now() < deadline,
                "{} is of no use: {ended:?}\n{}",
                self.name,
                tail(&self.log)
            );
            sleep(Duration::from_millis(10));
        }
    }

    /// Kills it.
    pub fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.end();
    }
}

/// The last lines of a file.
fn tail(path: &Path) -> String {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
}
