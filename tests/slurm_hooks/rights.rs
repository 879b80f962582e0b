//! Whose record it is, and what a user can make root write to.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use support::slurm::{CLIENT_LIMIT, cgroups, run};

use super::hooks::Scene;
use super::need;

/// The id of `daemon` on every Debian: a user who has no right here, and no job.
const OTHER: u32 = 1;

#[test]
fn only_its_user_can_read_a_record_and_the_job_knows_where_it_is() {
    if !need() {
        return;
    }
    let scene = Scene::start();
    let script = "#!/bin/sh\nhead -n 1 \"$SWBPF_RECORD\" | head -c 8\necho\n\
                  srun sh -c 'echo \"$SWBPF_RECORD\"'\n";
    let (job, output) = scene.output_of(script, &["--mem=100M"], "COMPLETED");
    let record = scene.agent.record(job);
    let path = record.display().to_string();
    // On version 2 the agent may learn whose the job is only after its first task has begun.
    if cgroups::version() == 1 {
        let begin = format!("{{\"schema\n{path}\n\nsw-bpf: job {job} of ");
        assert!(output.starts_with(&begin), "{output}");
    }

    let of_record = fs::metadata(&record).expect("a record");
    assert_eq!(of_record.uid(), 0);
    let of_dir = fs::metadata(scene.agent.path("jobs")).expect("a directory");
    assert_eq!((of_dir.uid(), of_dir.mode() & 0o7777), (0, 0o711));

    let dir = scene.agent.path("jobs").display().to_string();
    let as_owner =
        |program: &str, argument: &str| run(scene.slurm.as_user(program).arg(argument), CLIENT_LIMIT).status;
    assert!(as_owner("cat", &path).success());
    assert!(!as_owner("ls", &dir).success());
    assert!(!as_owner("rm", &path).success());
    let mut other = Command::new("cat");
    other.arg(&path).uid(OTHER).gid(OTHER);
    assert!(!run(&mut other, CLIENT_LIMIT).status.success());
}

/// What a job puts in the place of its output is written to by nobody but its user, and not waited for.
#[test]
fn root_writes_to_nothing_in_the_place_of_the_output() {
    if !need() {
        return;
    }
    let scene = Scene::start();
    let secret = scene.hooks.write("secret", 0o600, "root's\n");
    let open = scene.slurm.dir("work").join("open");
    let (secret_path, open_path) = (secret.display(), open.display());
    for swap in [
        format!("ln -s {secret_path} $out"),
        format!("echo mine >{open_path}; ln -s {open_path} $out"),
        "mkfifo $out".to_owned(),
        "mkdir $out".to_owned(),
        "ln -s /dev/full $out".to_owned(),
        ":".to_owned(),
        "echo shut >$out; chmod 0 $out".to_owned(),
    ] {
        let script = format!("#!/bin/sh\nout=$SLURM_JOB_ID.out\nrm $out\n{swap}\n");
        let (job, state) = scene.slurm.run_job(&script, &["--mem=100M"]);
        assert_eq!(state, "COMPLETED", "{swap}");
        scene.wait_for_epilog();
        assert_eq!(fs::read_to_string(&secret).expect("there"), "root's\n", "{swap}");
        if open.exists() {
            assert_eq!(fs::read_to_string(&open).expect("there"), "mine\n", "{swap}");
        }
        let output = scene.slurm.dir("work").join(format!("{job}.out"));
        if swap == ":" {
            assert!(!output.exists(), "it was made anew");
        }
        if swap.contains("chmod") {
            assert_eq!(fs::read_to_string(&output).expect("there"), "shut\n");
        }
    }
    // Output that is thrown away.
    let nowhere = ["--mem=100M", "--output=/dev/null"];
    let _ = scene.output_of("#!/bin/sh\n", &nowhere, "COMPLETED");
    assert_eq!(scene.hooks.told(), [""; 0]);
}
