//! The scripts by themselves: what slurmd gives them, and what there may be on a node.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::PathBuf;

use support::need_bpf;

use super::hooks::{Hooks, names_in};

/// A user with an entry in every Debian.
const USER: u32 = 1;

const JOB: [(&str, &str); 4] = [
    ("SLURM_JOB_ID", "12"),
    ("SLURM_JOB_UID", "1"),
    ("SLURM_JOB_GID", "1"),
    ("SLURMD_NODENAME", "n1"),
];

/// Answers in the place of Slurm's.
const SCONTROL: &str = "#!/bin/sh\ncat {dir}/job\n";

/// The scripts with programs in the place of Slurm's and of sw-bpf, a record with a summary, and an output.
struct Fake {
    hooks: Hooks,
    output: PathBuf,
}

impl Fake {
    fn new() -> Self {
        let hooks = Hooks::install();
        hooks.write("bin/scontrol", 0o755, SCONTROL);
        let records = hooks.path("records");
        fs::create_dir(&records).expect("a directory");
        hooks.write("records/12.jsonl", 0o600, "{\"kind\":\"summary\"}\n");
        let sw_bpf = hooks.fake("echo \"$@\" >{dir}/called; echo summary");
        hooks.set(&sw_bpf, &records, "");
        // Where that user may go.
        let output = hooks.write("out", 0o644, "");
        chown(&output, Some(USER), Some(USER)).expect("an owner");
        let fake = Self { hooks, output };
        fake.job("n1", "");
        fake
    }

    /// Sets what Slurm says.
    fn job(&self, node: &str, name: &str) {
        let text = format!(
            "JobId=12 JobName=x{name}\n   UserId=daemon(1) GroupId=daemon(1)\n   BatchHost={node}\n   \
             StdErr=/nowhere\n   StdOut={}\n\nJobId=13 JobName=y\n   BatchHost=n1\n   StdOut=/nowhere\n",
            self.output.display()
        );
        self.hooks.write("job", 0o644, &text);
    }

    fn written(&self) -> String {
        fs::read_to_string(&self.output).expect("an output")
    }

    fn epilog(&self, more: &[(&str, &str)]) {
        let answer = self.hooks.run("epilog.sh", &[&JOB[..], more].concat());
        assert_eq!((answer.stdout.as_str(), answer.stderr.as_str()), ("", ""));
    }
}

#[test]
fn the_summary_goes_to_the_output_on_the_node_of_the_script() {
    if !need_bpf() {
        return;
    }
    let fake = Fake::new();
    fake.epilog(&[]);
    assert_eq!(fake.written(), "\nsummary\n");
    let called = fs::read_to_string(fake.hooks.path("called")).expect("called");
    let records = fake.hooks.path("records");
    assert_eq!(called, format!("show 12 --records {}\n", records.display()));
    // The other nodes of the job, and what is no batch job.
    for node in ["n2", "", "n10"] {
        fake.job(node, "");
        fake.epilog(&[]);
    }
    fake.hooks.write("job", 0o644, "slurm_load_jobs error\n");
    fake.epilog(&[]);
    assert_eq!(fake.written(), "\nsummary\n");
    assert_eq!(fake.hooks.told(), [""; 0]);
}

/// A name that looks like what Slurm says can lead to another file, but only as its user.
#[test]
fn a_forged_output_is_written_to_as_the_user_alone() {
    if !need_bpf() {
        return;
    }
    let fake = Fake::new();
    let roots = fake.hooks.write("roots", 0o644, "root's\n");
    fake.hooks.write(
        "job",
        0o644,
        &format!(
            "JobId=12 JobName=x\n   BatchHost=n1\n   StdOut={}\n",
            roots.display()
        ),
    );
    fake.epilog(&[]);
    assert_eq!(fs::read_to_string(&roots).expect("there"), "root's\n");
    // A job of root's: who owns the directory is not looked at, so nothing is written.
    fake.job("n1", "");
    fake.epilog(&[("SLURM_JOB_UID", "0"), ("SLURM_JOB_GID", "0")]);
    assert_eq!(fake.written(), "");
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
    let fake = Fake::new();
    let before = names_in(&fake.hooks.path(""));
    for value in hostile {
        for key in ["SLURM_JOB_ID", "SLURM_JOB_UID", "SLURM_JOB_GID"] {
            fake.epilog(&[(key, value)]);
        }
    }
    for node in ["../x", "", ".", "*", "$(touch x)"] {
        fake.epilog(&[("SLURMD_NODENAME", node)]);
    }
    for script in ["epilog.sh", "task-prolog.sh"] {
        assert_eq!(fake.hooks.run(script, &[]).stdout, "");
    }
    assert_eq!(fake.written(), "");
    assert_eq!(names_in(&fake.hooks.path("")), before);
}

#[test]
fn settings_that_others_can_write_are_not_used() {
    if !need_bpf() {
        return;
    }
    let fake = Fake::new();
    let settings = fake.hooks.path("settings");
    for (mode, owner) in [(0o664, 0), (0o646, 0), (0o644, USER)] {
        fs::set_permissions(&settings, fs::Permissions::from_mode(mode)).expect("a mode");
        chown(&settings, Some(owner), None).expect("an owner");
        fake.epilog(&[]);
        let told = fake.hooks.told().join("\n");
        assert!(
            told.contains("is not used: it has to belong to root"),
            "{mode:o}: {told}"
        );
        assert!(!fake.hooks.path("called").exists());
        fs::remove_file(fake.hooks.path("log")).expect("a log");
    }
}

/// Nothing in the settings is executed, and what makes no sense is left.
#[test]
fn settings_are_lines_of_text() {
    if !need_bpf() {
        return;
    }
    let fake = Fake::new();
    let text = fs::read_to_string(fake.hooks.path("settings")).expect("settings");
    let odd = "touch {dir}/executed\nexit 3\n$(touch {dir}/executed)\nLIMIT=0\nLIMIT=x\nLIMIT=99999999999999999999\n\
               SW_BPF=relative\nRECORD_DIR=\nPATH=/nowhere\nset -e\n'\n\"\n(\n\\\n";
    fake.hooks
        .write("settings", 0o644, &format!("{text}{odd}SLURM_JOB_ID=13"));
    fake.epilog(&[]);
    assert_eq!(fake.written(), "\nsummary\n");
    assert!(!fake.hooks.path("executed").exists());
    let told = fake.hooks.run("task-prolog.sh", &[("SLURM_JOB_ID", "12")]).stdout;
    let record = fake.hooks.path("records").join("12.jsonl");
    assert_eq!(told, format!("export SWBPF_RECORD={}\n", record.display()));
}

#[test]
fn a_scontrol_that_is_elsewhere_or_fails_is_told() {
    if !need_bpf() {
        return;
    }
    let fake = Fake::new();
    let settings = fs::read_to_string(fake.hooks.path("settings")).expect("settings");
    let set = |more: &str| {
        fake.hooks
            .write("settings", 0o644, &format!("{settings}{more}\n"))
    };
    let failing = "#!/bin/sh\necho 'Unable to contact slurm controller' >&2\nexit 1\n";
    fake.hooks.write("failing", 0o755, failing);
    for (more, reason) in [
        ("SCONTROL={dir}/none", "/none is not there (SCONTROL)"),
        (
            "SCONTROL={dir}/failing",
            "failing failed: Unable to contact slurm controller",
        ),
    ] {
        set(more);
        fake.epilog(&[]);
        let told = fake.hooks.told().join("\n");
        assert!(told.contains(reason), "{told}");
        assert_eq!(fake.written(), "");
        fs::remove_file(fake.hooks.path("log")).expect("a log");
    }
    fs::rename(fake.hooks.path("bin/scontrol"), fake.hooks.path("elsewhere")).expect("moved");
    set("SCONTROL={dir}/elsewhere");
    fake.epilog(&[]);
    assert_eq!(fake.written(), "\nsummary\n");
}
