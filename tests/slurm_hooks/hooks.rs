//! The scripts as they are installed, in a directory of a test's own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::command::record;
use support::measure::{program, wait_until};
use support::pace::factor;
use support::slurm::{Answer, Config, JobId, Slurm, cgroups, run};
use tempfile::TempDir;

/// Seconds within which sw-bpf is to be ready. Its programs are verified anew for each job, and a busy machine takes its time.
const PATIENT: u32 = 30;

/// Most that the scripts wait for sw-bpf, in seconds.
const MOST_LIMIT: u32 = 59;

/// In it, by its path as the scripts have it, and by its name here.
const PLACES: [(&str, &str); 4] = [
    ("SETTINGS=/etc/default/sw-bpf", "SETTINGS={dir}/settings"),
    ("STATE_DIR=/run/sw-bpf-jobs", "STATE_DIR={dir}/state"),
    ("PATH=/usr/sbin:", "PATH={dir}/bin:/usr/sbin:"),
    ("CGROUPS=/sys/fs/cgroup", "CGROUPS={cgroups}"),
];

/// Takes the place of the system's, so that what is told can be read.
const LOGGER: &str = "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nprintf '%s\\n' \"$2\" >>{dir}/log\n";

/// The scripts, their settings, and what they write. Dropped, it ends what they have started.
pub struct Hooks {
    dir: TempDir,
}

impl Hooks {
    /// Installs them; sw-bpf is the one of this build.
    pub fn install() -> Self {
        let hooks = Self::install_with(Path::new("/sys/fs/cgroup"));
        hooks.set(&program("sw-bpf"), PATIENT, "");
        hooks
    }

    /// The same for a tree of cgroups, without settings.
    pub fn install_with(cgroups: &Path) -> Self {
        let hooks = Self {
            dir: TempDir::new().expect("a directory"),
        };
        set_mode(hooks.dir.path(), 0o755);
        fs::create_dir(hooks.path("bin")).expect("a directory");
        hooks.write("bin/logger", 0o755, LOGGER);
        let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/slurm");
        for name in ["prolog.sh", "epilog.sh", "task-prolog.sh"] {
            let mut text = fs::read_to_string(packaging.join(name)).expect("a script");
            for (from, to) in PLACES {
                text = text.replace(from, &to.replace("{cgroups}", &cgroups.display().to_string()));
            }
            assert!(text.contains("{dir}"), "{name} has no place of this test");
            hooks.write(name, 0o755, &text);
        }
        hooks
    }

    /// Writes the settings; sw-bpf is to be ready within `limit` seconds, as [`limit`].
    pub fn set(&self, sw_bpf: &Path, limit: u32, more: &str) {
        let records = self.records();
        let text = format!(
            "SW_BPF=\"{}\"\nRECORD_DIR={}\nLIMIT={}\n{more}",
            sw_bpf.display(),
            records.display(),
            self::limit(limit)
        );
        self.write("settings", 0o644, &text);
    }

    /// A program in the place of sw-bpf: a script, whose fifth argument is the record.
    pub fn fake(&self, limit: u32, body: &str) {
        let path = self.write("bin/fake", 0o755, &format!("#!/bin/sh\n{body}\n"));
        self.set(&path, limit, "");
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

    /// The directory of the records.
    pub fn records(&self) -> PathBuf {
        self.path("records")
    }

    /// Names of the records, sorted.
    pub fn record_names(&self) -> Vec<String> {
        names_in(&self.records())
    }

    /// A cluster that has them.
    pub fn cluster(&self, config: Config) -> Slurm {
        Slurm::start(&Config {
            prolog: Some(self.path("prolog.sh")),
            epilog: Some(self.path("epilog.sh")),
            task_prolog: Some(self.path("task-prolog.sh")),
            ..config
        })
    }

    /// Waits until the Epilog of a job that is over has cleared away, and asserts that nothing of the job is left and the node
    /// takes the next one.
    pub fn assert_cleared(&self, slurm: &Slurm, job: JobId) {
        wait_until("the node is idle", || {
            let state = slurm.client("sinfo", &["--noheader", "--format=%T"]);
            assert!(!state.contains("drain") && !state.contains("down"), "{state}");
            state == "idle"
        });
        self.assert_nothing_left();
        let dirs: Vec<_> = cgroups::of_nodes()
            .iter()
            .flat_map(|dir| cgroups::tree(dir))
            .filter(|dir| {
                dir.ends_with(format!("job_{job}")) || dir.ends_with(format!("uid_{}", slurm.user().uid))
            })
            .collect();
        assert_eq!(dirs, [""; 0].map(PathBuf::from));
    }

    /// Asserts that no state and no process is left.
    pub fn assert_nothing_left(&self) {
        assert_eq!(names_in(&self.path("state")), [""; 0], "{:?}", self.told());
        assert_eq!(self.processes(), [], "{:?}", self.told());
    }

    /// Runs a job to its end, and gives the last line of its record.
    pub fn summary(&self, slurm: &Slurm, script: &str, options: &[&str], state: &str) -> Value {
        let (job, ended) = slurm.run_job(script, options);
        assert_eq!(ended, state, "{}", slurm.output(job));
        self.summary_of(slurm, job)
    }

    /// The last line of the record of a job that is over.
    pub fn summary_of(&self, slurm: &Slurm, job: JobId) -> Value {
        self.assert_cleared(slurm, job);
        assert_eq!(self.told(), [""; 0]);
        self.last_line(&format!("{job}.jsonl"))
    }

    /// The last line of a record that has ended.
    pub fn last_line(&self, name: &str) -> Value {
        record(&self.records().join(name)).pop().expect("a line")
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

/// Seconds of a machine of today, as they are here and as the scripts can wait.
pub fn limit(seconds: u32) -> u32 {
    (seconds * factor()).min(MOST_LIMIT)
}

impl Drop for Hooks {
    fn drop(&mut self) {
        for pid in self.processes() {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
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
