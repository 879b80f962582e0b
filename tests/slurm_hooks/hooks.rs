//! The scripts as they are installed, in a directory of a test's own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use support::command::{output, sw_bpf};
use support::measure::{program, wait_until};
use support::pace::factor;
use support::slurm::{Answer, Config, JobId, Slurm, run};
use tempfile::TempDir;

use super::agent::Agent;

/// Seconds within which the Epilog is to end, on a machine of today.
const LIMIT: u32 = 5;

/// Most that it can be told to take.
const MOST_LIMIT: u32 = 59;

/// In that directory, by its path as the scripts have it, and by its name here.
const PLACES: [(&str, &str); 2] = [
    ("SETTINGS=/etc/default/sw-bpf", "SETTINGS={dir}/settings"),
    ("PATH=/usr/sbin:", "PATH={dir}/bin:/usr/sbin:"),
];

/// Takes the place of the system's, so that what is told can be read.
const LOGGER: &str = "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nprintf '%s\\n' \"$2\" >>{dir}/log\n";

/// The scripts, their settings, and what they write. Dropped, it ends what they have started.
pub struct Hooks {
    dir: TempDir,
}

impl Hooks {
    /// Installs them, without settings.
    pub fn install() -> Self {
        let hooks = Self {
            dir: TempDir::new().expect("a directory"),
        };
        set_mode(hooks.dir.path(), 0o755);
        fs::create_dir(hooks.path("bin")).expect("a directory");
        hooks.write("bin/logger", 0o755, LOGGER);
        let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/slurm");
        for name in ["epilog.sh", "task-prolog.sh"] {
            let mut text = fs::read_to_string(packaging.join(name)).expect("a script");
            for (from, to) in PLACES {
                text = text.replace(from, to);
            }
            assert!(text.contains("{dir}"), "{name} has no place of this test");
            hooks.write(name, 0o755, &text);
        }
        hooks
    }

    /// Writes the settings.
    pub fn set(&self, sw_bpf: &Path, records: &Path, more: &str) {
        let text = format!(
            "SW_BPF=\"{}\"\nRECORD_DIR={}\nLIMIT={}\n{more}",
            sw_bpf.display(),
            records.display(),
            limit()
        );
        self.write("settings", 0o644, &text);
    }

    /// A program in the place of sw-bpf.
    pub fn fake(&self, body: &str) -> PathBuf {
        self.write("bin/fake", 0o755, &format!("#!/bin/sh\n{body}\n"))
    }

    /// Writes a file of root's, in which `{dir}` stands for its directory.
    pub fn write(&self, name: &str, mode: u32, text: &str) -> PathBuf {
        let path = self.path(name);
        let text = text.replace("{dir}", &self.dir.path().display().to_string());
        fs::write(&path, text).expect("a file");
        set_mode(&path, mode);
        path
    }

    /// A path in their directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// What was told to syslog.
    pub fn told(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Runs a script as slurmd does, without Slurm and without a `PATH`.
    pub fn run(&self, name: &str, variables: &[(&str, &str)]) -> Answer {
        let mut command = Command::new(self.path(name));
        command.env_clear().envs(variables.iter().copied());
        let answer = run(&mut command, Duration::from_mins(1));
        assert_eq!(answer.status.code(), Some(0), "{}", answer.stderr);
        answer
    }

    /// Processes that they have started.
    fn processes(&self) -> Vec<Pid> {
        let entries = fs::read_dir("/proc").expect("processes").flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let dir = self.dir.path().display().to_string();
        let is_ours = |pid: &i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&dir)
        };
        numbers.filter(is_ours).filter_map(Pid::from_raw).collect()
    }
}

impl Drop for Hooks {
    fn drop(&mut self) {
        for pid in self.processes() {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// A cluster that has them, with an agent beside it.
pub struct Scene {
    pub agent: Agent,
    pub slurm: Slurm,
    pub hooks: Hooks,
}

impl Scene {
    /// The cluster drains a node whose Epilog takes longer than it promises.
    pub fn start() -> Self {
        Self::with(&format!("PrologEpilogTimeout={}", limit() + 1))
    }

    /// The same with these lines in `slurm.conf`.
    pub fn with(slurm_conf: &str) -> Self {
        let hooks = Hooks::install();
        let slurm = Slurm::start(&Config {
            epilog: Some(hooks.path("epilog.sh")),
            task_prolog: Some(hooks.path("task-prolog.sh")),
            slurm_conf: slurm_conf.to_owned(),
            ..Config::default()
        });
        let agent = Agent::start(&slurm);
        hooks.set(&program("sw-bpf"), &agent.path("jobs"), "");
        Self { agent, slurm, hooks }
    }

    /// Runs a job to its end and to that of its Epilog, and gives what its output file has then.
    pub fn output_of(&self, script: &str, options: &[&str], state: &str) -> (JobId, String) {
        let (job, ended) = self.slurm.run_job(script, options);
        assert_eq!(ended, state, "{}", self.slurm.output(job));
        self.wait_for_epilog();
        (job, self.slurm.output(job))
    }

    /// Waits until the Epilog of a job that is over has ended, and asserts that the node takes the next one.
    pub fn wait_for_epilog(&self) {
        wait_until("the node is idle", || {
            let state = self.slurm.client("sinfo", &["--noheader", "--format=%T"]);
            assert!(!state.contains("drain") && !state.contains("down"), "{state}");
            state == "idle"
        });
        assert_eq!(self.hooks.processes(), [], "{:?}", self.hooks.told());
    }

    /// What `sw-bpf show` says of a job.
    pub fn shown(&self, job: JobId, more: &[&str]) -> String {
        shown(&self.agent.path("jobs"), job, more)
    }

    /// Whether `holds` of what `sw-bpf show` says of a run by one of its summaries: that which the Epilog found, or a later one, which
    /// has Slurm's words where these came after the end.
    pub fn is_shown(&self, job: JobId, run: u32, mut holds: impl FnMut(&str) -> bool) -> bool {
        let name = match run {
            0 => format!("{job}.jsonl"),
            run => format!("{job}.{run}.jsonl"),
        };
        let record = fs::read_to_string(self.agent.path("jobs").join(&name)).expect("a record");
        let before = TempDir::new().expect("a directory");
        let mut text = String::new();
        record.split_inclusive('\n').any(|line| {
            text.push_str(line);
            fs::write(before.path().join(&name), &text).expect("a record");
            let is_summary = line.contains("\"kind\":\"summary\"");
            is_summary && holds(&shown(before.path(), job, &["--run", &run.to_string()]))
        })
    }
}

/// What `sw-bpf show` says of a job by these records.
fn shown(records: &Path, job: JobId, more: &[&str]) -> String {
    let id = job.to_string();
    let mut command = sw_bpf(&["show", &id]);
    let shown = output(command.args(more).arg("--records").arg(records));
    assert!(shown.status.success(), "{shown:?}");
    String::from_utf8(shown.stdout).expect("text")
}

/// [`LIMIT`] as it is here.
pub fn limit() -> u32 {
    (LIMIT * factor()).min(MOST_LIMIT)
}

/// Sets the mode of a file.
pub fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

/// Names of what is in a directory, sorted; none where there is no directory.
pub fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
