//! What runs before and after a job, and what is there by then.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use support::measure::{MIB, wait_until};
use support::need_slurm;
use support::slurm::{Config, JobId, Slurm, cgroups};
use tempfile::TempDir;

/// Scripts, and the file that they write their lines to.
struct Hooks {
    dir: TempDir,
    log: PathBuf,
}

impl Hooks {
    fn new() -> Self {
        let dir = TempDir::new().expect("a directory");
        let log = dir.path().join("log");
        fs::write(&log, "").expect("a file");
        // Users write to it too.
        open_to_all(dir.path(), 0o755);
        open_to_all(&log, 0o666);
        Self { dir, log }
    }

    /// A script that has `$log`, and what [`cgroups::hook_shell`] gives it.
    fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        let (log, cgroups) = (self.log.display(), cgroups::hook_shell());
        // A hook has no `PATH`.
        let text = format!("#!/bin/sh\nPATH=/usr/bin:/bin\nlog={log}\n{cgroups}{text}\nexit 0\n");
        fs::write(&path, text).expect("a script");
        open_to_all(&path, 0o755);
        path
    }

    fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.log).expect("a log");
        text.lines().map(str::to_owned).collect()
    }
}

fn open_to_all(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

fn ends(slurm: &Slurm, hooks: &Hooks, job: JobId) {
    assert_eq!(slurm.wait_end(job), "COMPLETED", "{}", slurm.output(job));
    wait_until("the epilog has run", || {
        hooks.lines().iter().any(|line| line.starts_with("epilog"))
    });
}

#[test]
fn hooks_run_around_the_directories_of_a_job() {
    if !need_slurm() {
        return;
    }
    let hooks = Hooks::new();
    let there = "there=$([ -d $job ] && echo yes || echo no)\n";
    let slurm = Slurm::start(&Config {
        prolog: Some(hooks.script("prolog", &format!("{there}echo prolog $there $(id -un) >>$log"))),
        epilog: Some(hooks.script("epilog", &format!("{there}echo epilog $there $(id -un) >>$log"))),
        task_prolog: Some(hooks.script(
            "task_prolog",
            "echo task_prolog ${SLURM_STEP_ID-none} $(id -un) >>$log",
        )),
        ..Config::default()
    });
    let (log, cgroups) = (hooks.log.display(), cgroups::shell());
    let script =
        format!("#!/bin/sh\n{cgroups}cd $job\necho script step_* >>{log}\nsrun sh -c 'echo task >>{log}'\n");
    let job = slurm.sbatch(&script, &[]);
    ends(&slurm, &hooks, job);
    let user = &slurm.user().name;
    assert_eq!(
        hooks.lines(),
        [
            "prolog no root".to_owned(),
            // Before the script too, which has no number of a step.
            format!("task_prolog none {user}"),
            // `PrologFlags=Contain`: the extern step is there before the script is.
            "script step_batch step_extern".to_owned(),
            format!("task_prolog 0 {user}"),
            "task".to_owned(),
            "epilog no root".to_owned(),
        ]
    );
}

#[test]
fn a_directory_that_the_prolog_makes_is_the_jobs_and_stays_until_the_epilog() {
    if !need_slurm() {
        return;
    }
    let hooks = Hooks::new();
    let inode = "$(stat -c %i $job)";
    let peak = format!("$(cat $job/{})", cgroups::peak_file());
    let slurm = Slurm::start(&Config {
        prolog: Some(hooks.script(
            "prolog",
            &format!("mkdir -p $job/hold\ncount\necho prolog {inode} >>$log"),
        )),
        epilog: Some(hooks.script(
            "epilog",
            &format!("line=\"epilog {inode} {peak}\"\nrmdir $job/hold $job\necho $line >>$log"),
        )),
        ..Config::default()
    });
    let cgroups = cgroups::shell();
    let script = format!("#!/bin/sh\n{cgroups}workload anon --size 100M\necho script $(stat -c %i $job)\n");
    let job = slurm.sbatch(&script, &["--mem=200M"]);
    ends(&slurm, &hooks, job);
    let lines = hooks.lines();
    let [prolog, epilog] = lines.as_slice() else {
        panic!("{lines:?}")
    };
    let inode = prolog.strip_prefix("prolog ").expect("an inode");
    assert_eq!(slurm.output(job), format!("script {inode}\n"));
    // Counters of the whole job, when all its processes and steps are gone.
    let peak = epilog
        .strip_prefix(&format!("epilog {inode} "))
        .expect("the same inode");
    let peak: u64 = peak.parse().expect("a number");
    assert!((100 * MIB..=200 * MIB).contains(&peak), "{peak}");
    let dir = slurm.job_cgroup(job);
    assert!(!dir.exists());
}
