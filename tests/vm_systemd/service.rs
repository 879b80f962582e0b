//! The service, set up by the words of docs/agent.md.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use support::command::output;
use support::measure::{program, wait_until};
use support::slurm::Slurm;

pub const UNIT: &str = "sw-bpf-agent.service";

/// Settings of this machine, as an administrator writes them. A minute of the watchdog is not waited for.
const DROP_IN: &str = "/etc/systemd/system/sw-bpf-agent.service.d";

/// The service. Dropped, it is stopped, and what it has counted with and recorded is gone.
pub struct Service;

impl Service {
    /// Sets it up beside a Slurm, and starts it.
    pub fn set_up(slurm: &Slurm) -> Self {
        let conf = slurm.dir("etc/slurm.conf");
        let settings = format!(
            "[Service]\nEnvironment=SLURM_CONF={}\nWatchdogSec=20\n",
            conf.display()
        );
        fs::create_dir_all(DROP_IN).expect("a directory");
        fs::write(Path::new(DROP_IN).join("test.conf"), settings).expect("settings");
        let service = Self;
        let built = tempfile::tempdir().expect("a directory");
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        fs::create_dir_all(built.path().join("target/release")).expect("a directory");
        symlink(program("sw-bpf"), built.path().join("target/release/sw-bpf")).expect("a link");
        symlink(repository.join("packaging"), built.path().join("packaging")).expect("a link");
        let mut shell = Command::new("sh");
        shell.args(["-ec", &steps(&repository)]).current_dir(built.path());
        said(&mut shell);
        service
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let stop = ["disable", "--now", UNIT];
        let _ = Command::new("systemctl").args(stop).status();
        for dir in ["/sys/fs/bpf/sw-bpf", "/var/lib/sw-bpf", "/run/sw-bpf", DROP_IN] {
            let _ = fs::remove_dir_all(dir);
        }
    }
}

/// `systemctl` with a verb and options, on the service.
pub fn systemctl(arguments: &[&str]) {
    said(Command::new("systemctl").args(arguments).arg(UNIT));
}

/// What systemd says of it by this name.
pub fn value(name: &str) -> String {
    let mut show = Command::new("systemctl");
    show.args(["show", "--value", "--property", name, UNIT]);
    said(&mut show).trim_end().to_owned()
}

/// That another process is up after `act`, with a job that it records.
pub fn restarts_by(what: &str, act: impl FnOnce()) {
    let before = value("MainPID");
    act();
    wait_until(&format!("a start after {what}"), || {
        let now = value("MainPID");
        now != before && now != "0" && value("StatusText") == "Recording 1 jobs"
    });
    assert_eq!(value("ActiveState"), "active");
}

/// What it has told the journal.
pub fn told() -> String {
    said(Command::new("journalctl").args(["--no-pager", "--output=short-monotonic", "--unit", UNIT]))
}

/// The commands that docs/agent.md has.
fn steps(repository: &Path) -> String {
    let docs = fs::read_to_string(repository.join("docs/agent.md")).expect("docs/agent.md");
    let (_, after) = docs.split_once("## Set it up\n\n```sh\n").expect("steps");
    let (steps, _) = after.split_once("```").expect("an end");
    steps.to_owned()
}

/// What a program says, which must be good.
fn said(command: &mut Command) -> String {
    let output = output(command);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}{error}");
    text
}
