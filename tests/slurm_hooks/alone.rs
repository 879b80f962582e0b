//! The scripts by themselves: what slurmd gives them, and what there may be on a node.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};
use support::measure::wait_until;
use support::need_bpf;
use tempfile::TempDir;

use super::hooks::{Hooks, names_in};

/// A recorder that notes its arguments, says that it counts, and stays until the job has a peak.
const RECORDER: &str = "echo \"$1 $2 $3 $4 $5\" >{dir}/called\necho '{\"source\":\"kernel\"}' >\"$5\"\nuntil [ -e \"$3/memory.peak\" ]; do sleep 0.05; done";

const JOB: [(&str, &str); 3] = [
    ("SLURM_JOB_ID", "12"),
    ("SLURM_JOB_UID", "65534"),
    ("SLURMD_NODENAME", "n1"),
];

/// A tree that looks like that of cgroups, and the scripts for it.
struct Fake {
    hooks: Hooks,
    tree: TempDir,
}

impl Fake {
    /// The directories, each of which counts memory.
    fn with(dirs: &[&str]) -> Self {
        let tree = TempDir::new().expect("a directory");
        let fake = Self {
            hooks: Hooks::install_with(tree.path()),
            tree,
        };
        for dir in dirs {
            fake.make(dir);
        }
        fake.hooks.fake(20, RECORDER);
        fake
    }

    fn version_2(dirs: &[&str]) -> Self {
        let fake = Self::with(dirs);
        fs::write(fake.tree.path().join("cgroup.controllers"), "cpu memory\n").expect("a file");
        fake
    }

    fn make(&self, dir: &str) -> PathBuf {
        let path = self.tree.path().join(dir);
        fs::create_dir_all(&path).expect("a directory");
        fs::write(path.join("memory.current"), "0\n").expect("a file");
        path
    }

    /// The directory that was recorded, from the root of the tree.
    fn recorded(&self) -> Option<String> {
        let called = fs::read_to_string(self.hooks.path("called")).ok()?;
        let words: Vec<_> = called.split_whitespace().collect();
        let ["attach", "--cgroup", job, "--json", record] = words[..] else {
            panic!("{called}");
        };
        assert_eq!(Path::new(record), self.hooks.records().join("12.jsonl"));
        let inside = Path::new(job)
            .strip_prefix(self.tree.path())
            .expect("in the tree");
        Some(inside.to_str().expect("text").to_owned())
    }

    /// The process that records, and when it was started.
    fn recorder(&self) -> (i32, u64) {
        let text = fs::read_to_string(self.hooks.path("state/12/recorder")).expect("a recorder");
        let numbers = text.trim().split_once(' ');
        let numbers = numbers.and_then(|(pid, start)| Some((pid.parse().ok()?, start.parse().ok()?)));
        numbers.expect("a process and its start")
    }

    /// Asserts that a directory was recorded, and that the Epilog clears away behind a job that was in it.
    fn assert_recorded(&self, expected: &str) {
        assert_eq!(
            self.recorded().as_deref(),
            Some(expected),
            "{:?}",
            self.hooks.told()
        );
        fs::write(self.tree.path().join(expected).join("memory.peak"), "4096\n").expect("a file");
        self.epilog();
        self.hooks.assert_nothing_left();
        assert_eq!(self.hooks.record_names(), ["12.jsonl"]);
    }

    fn prolog(&self, more: &[(&str, &str)]) {
        let answer = self.hooks.run("prolog.sh", &[&JOB[..], more].concat());
        assert_eq!((answer.stdout.as_str(), answer.stderr.as_str()), ("", ""));
    }

    fn epilog(&self) {
        let answer = self.hooks.run("epilog.sh", &JOB);
        assert_eq!((answer.stdout.as_str(), answer.stderr.as_str()), ("", ""));
    }
}

/// Whether a process is there; one that nobody has waited for yet is not.
fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Where Slurm makes the directories of jobs, by version of the cgroups, with what else is there.
const LAYOUTS: [(u8, &str, &str); 8] = [
    (1, "", "memory/slurm/uid_65534/job_12"),
    // The first job since the host was started.
    (1, "freezer/slurm_n1", "memory/slurm_n1/uid_65534/job_12"),
    (
        1,
        "memory/slurm_n10/uid_65534/job_12 memory/slurm",
        "memory/slurm_n1/uid_65534/job_12",
    ),
    (2, "", "system.slice/slurmstepd.scope/job_12"),
    (
        2,
        "system.slice/slurmstepd.scope/job_12",
        "system.slice/n1_slurmstepd.scope/job_12",
    ),
    (2, "", "a.slice/a-b.slice/slurmstepd.scope/job_12"),
    (
        2,
        "user.slice/user-1000.slice/slurmstepd.scope/job_12",
        "z.slice/slurmstepd.scope/job_12",
    ),
    (
        2,
        "system.slice/slurmstepd.scope/system",
        "system.slice/slurmstepd.scope/sEKNKTV3WPV500",
    ),
];

#[test]
fn the_directory_is_the_one_that_slurm_will_take() {
    if !need_bpf() {
        return;
    }
    for (version, others, expected) in LAYOUTS {
        let dirs: Vec<_> = others.split_whitespace().chain([expected]).collect();
        let fake = if version == 2 {
            Fake::version_2(&dirs)
        } else {
            Fake::with(&dirs)
        };
        let sluid = expected.rsplit('/').next().filter(|name| name.starts_with('s'));
        fake.prolog(&[("SLURM_JOB_SLUID", sluid.unwrap_or_default())]);
        fake.assert_recorded(expected);
    }
}

/// From Slurm 26.05 on, `cgroup.conf` may ask for directories named by the job's number.
#[test]
fn directories_are_named_by_number_where_slurm_is_told_so() {
    if !need_bpf() {
        return;
    }
    let scope = "system.slice/slurmstepd.scope";
    for (line, name) in [
        ("CgroupJobIdPaths=yes", "job_12"),
        (" cgroupjobidpaths = YES", "job_12"),
        ("#CgroupJobIdPaths=yes", "sEKNKTV3WPV500"),
        ("CgroupJobIdPaths=no", "sEKNKTV3WPV500"),
    ] {
        let dirs = ["job_12", "sEKNKTV3WPV500"].map(|name| format!("{scope}/{name}"));
        let fake = Fake::version_2(&dirs.each_ref().map(String::as_str));
        fake.hooks.write(
            "cgroup.conf",
            0o644,
            &format!("CgroupPlugin=autodetect\n{line}\n"),
        );
        let conf = fake.hooks.path("slurm.conf").display().to_string();
        fake.prolog(&[("SLURM_JOB_SLUID", "sEKNKTV3WPV500"), ("SLURM_CONF", &conf)]);
        fake.assert_recorded(&format!("{scope}/{name}"));
    }
}

/// No Slurm is to be seen, or what is there does not count memory.
#[test]
fn without_a_directory_that_counts_memory_nothing_is_recorded() {
    if !need_bpf() {
        return;
    }
    let counts_nothing = Fake::with(&["freezer/slurm_n1"]);
    fs::create_dir_all(counts_nothing.tree.path().join("memory/slurm_n1")).expect("a directory");
    let cases = [
        (Fake::with(&[]), "no directory of Slurm"),
        (
            Fake::version_2(&["user.slice/user-1.slice/slurmstepd.scope"]),
            "no directory of Slurm",
        ),
        (counts_nothing, "does not count memory"),
    ];
    for (fake, reason) in cases {
        fake.prolog(&[]);
        assert_eq!(fake.recorded(), None);
        let told = fake.hooks.told();
        assert!(told.len() == 1 && told[0].contains(reason), "{told:#?}");
        fake.epilog();
        fake.hooks.assert_nothing_left();
        assert_eq!(fake.hooks.record_names(), [""; 0]);
        assert!(!fake.tree.path().join("memory/slurm_n1/uid_65534").exists());
    }
}

/// What is no id is part of no path and of no command.
#[test]
fn hostile_ids_make_nothing() {
    if !need_bpf() {
        return;
    }
    let hostile = [
        "",
        "0x1",
        "-1",
        "1 2",
        "1;touch x",
        "../1",
        "$(touch x)",
        "1\n2",
        "00012",
        "99999999999",
        "*",
        "\u{661}",
    ];
    let fake = Fake::with(&["memory/slurm_n1"]);
    let before = names_in(fake.hooks.path("").as_path());
    for value in hostile {
        for key in ["SLURM_JOB_ID", "SLURM_JOB_UID"] {
            for script in ["prolog.sh", "epilog.sh"] {
                let answer = fake.hooks.run(script, &[&JOB[..], &[(key, value)]].concat());
                assert_eq!(
                    (answer.stdout.as_str(), answer.stderr.as_str()),
                    ("", ""),
                    "{value}"
                );
            }
        }
    }
    for node in ["../x", "a/b", "..", ".", "a b", "a\nb", "$(touch x)"] {
        fake.prolog(&[("SLURMD_NODENAME", node)]);
    }
    for sluid in ["../x", "a/b", "..", "/", "a;b"] {
        fake.prolog(&[("SLURM_JOB_SLUID", sluid)]);
    }
    for script in ["prolog.sh", "epilog.sh", "task-prolog.sh"] {
        assert_eq!(fake.hooks.run(script, &[]).stdout, "");
    }
    assert_eq!(names_in(fake.hooks.path("").as_path()), before);
    assert_eq!(
        names_in(&fake.tree.path().join("memory/slurm_n1")),
        ["memory.current"]
    );
}

#[test]
fn settings_that_others_can_write_are_not_used() {
    if !need_bpf() {
        return;
    }
    let fake = Fake::with(&["memory/slurm_n1/uid_65534/job_12"]);
    let settings = fake.hooks.path("settings");
    for (mode, owner) in [(0o664, 0), (0o646, 0), (0o644, 65534)] {
        fs::set_permissions(&settings, fs::Permissions::from_mode(mode)).expect("a mode");
        chown(&settings, Some(owner), None).expect("an owner");
        // Without them it is the sw-bpf of the system, and not this test's.
        fake.prolog(&[("LIMIT", "1")]);
        let told = fake.hooks.told().join("\n");
        assert!(
            told.contains("is not used: it has to belong to root"),
            "{mode:o}: {told}"
        );
        assert_eq!(fake.recorded(), None);
        fs::remove_file(fake.hooks.path("log")).expect("a log");
        fake.epilog();
    }
}

/// Nothing in the settings is executed, and what makes no sense is left.
#[test]
fn settings_are_lines_of_text() {
    if !need_bpf() {
        return;
    }
    let fake = Fake::with(&["memory/slurm_n1/uid_65534/job_12"]);
    let text = fs::read_to_string(fake.hooks.path("settings")).expect("settings");
    let odd = "touch {dir}/executed\nexit 3\n$(touch {dir}/executed)\nLIMIT=0\nLIMIT=x\nLIMIT=99999999999999999999\n\
               MOST_JOBS=$(touch {dir}/executed)\nMOST_JOBS=\nSW_BPF=relative\nRECORD_DIR=\nPATH=/nowhere\nset -e\n'\n\"\n(\n\\\n";
    fake.hooks
        .write("settings", 0o644, &format!("{text}{odd}SLURM_JOB_ID=13"));
    fake.prolog(&[]);
    assert_eq!(
        fake.recorded().as_deref(),
        Some("memory/slurm_n1/uid_65534/job_12")
    );
    assert!(!fake.hooks.path("executed").exists());
    let told = fake.hooks.run("task-prolog.sh", &[("SLURM_JOB_ID", "12")]).stdout;
    assert_eq!(
        told,
        format!(
            "export SWBPF_RECORD={}\n",
            fake.hooks.records().join("12.jsonl").display()
        )
    );
}

/// A link in the place of the directory of records, or of that of the state.
#[test]
fn only_roots_directories_are_written_to() {
    if !need_bpf() {
        return;
    }
    let theirs = TempDir::new().expect("a directory");
    chown(theirs.path(), Some(65534), None).expect("an owner");
    for name in ["records", "state"] {
        let fake = Fake::with(&["memory/slurm_n1/uid_65534/job_12"]);
        symlink(theirs.path(), fake.hooks.path(name)).expect("a link");
        fake.prolog(&[]);
        fake.epilog();
        assert_eq!(names_in(theirs.path()), [""; 0], "{name}");
        assert_eq!(fake.recorded(), None);
    }
}

#[test]
fn no_more_jobs_are_recorded_at_once_than_set() {
    if !need_bpf() {
        return;
    }
    let fake = Fake::with(&[
        "memory/slurm_n1/uid_65534/job_12",
        "memory/slurm_n1/uid_65534/job_13",
    ]);
    fake.hooks.set(&fake.hooks.path("bin/fake"), 20, "MOST_JOBS=1\n");
    fake.prolog(&[]);
    let other = [("SLURM_JOB_ID", "13")];
    fake.prolog(&other);
    assert_eq!(
        fake.hooks.told(),
        ["job 13: not recorded: 1 jobs are already (MOST_JOBS)"]
    );
    assert_eq!(fake.hooks.record_names(), ["12.jsonl"]);
    // One that has ended, and no Epilog came, is none.
    let (pid, _) = fake.recorder();
    kill_process(Pid::from_raw(pid).expect("a process"), Signal::KILL).expect("a process");
    wait_until("it has ended", || !is_alive(pid));
    fake.prolog(&other);
    assert_eq!(fake.hooks.record_names(), ["12.jsonl", "13.jsonl"]);
}

/// The number of a recorder that has ended is another process's by now: that one is left alone.
#[test]
fn only_the_recorder_itself_is_ended() {
    if !need_bpf() {
        return;
    }
    let fake = Fake::with(&["memory/slurm_n1/uid_65534/job_12"]);
    fake.prolog(&[]);
    let (pid, start) = fake.recorder();
    fake.hooks
        .write("state/12/recorder", 0o600, &format!("{pid} {}\n", start - 1));
    fake.epilog();
    assert!(is_alive(pid));
    assert_eq!(names_in(&fake.hooks.path("state")), [""; 0]);
}
