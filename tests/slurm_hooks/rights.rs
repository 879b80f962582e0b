//! Whose record it is.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use support::slurm::{CLIENT_LIMIT, Config, run};

use super::hooks::Hooks;
use super::need;

/// The id of `daemon` on every Debian: a user who has no right here, and no job.
const OTHER: u32 = 1;

#[test]
fn only_its_user_can_read_a_record_and_the_job_knows_where_it_is() {
    if !need() {
        return;
    }
    let hooks = Hooks::install();
    let slurm = hooks.cluster(Config::default());
    let script = "#!/bin/sh\nhead -n 1 \"$SWBPF_RECORD\" | head -c 8\necho\n\
                  srun sh -c 'echo \"$SWBPF_RECORD\"'\n";
    let (job, state) = slurm.run_job(script, &["--mem=100M"]);
    assert_eq!(state, "COMPLETED");
    hooks.assert_cleared(&slurm, job);
    let record = hooks.records().join(format!("{job}.jsonl"));
    let path = record.display().to_string();
    assert_eq!(slurm.output(job), format!("{{\"schema\n{path}\n"));

    let of_record = fs::metadata(&record).expect("a record");
    assert_eq!(
        (of_record.uid(), of_record.mode() & 0o7777),
        (slurm.user().uid, 0o400)
    );
    let of_dir = fs::metadata(hooks.records()).expect("a directory");
    assert_eq!((of_dir.uid(), of_dir.mode() & 0o7777), (0, 0o711));
    assert_eq!(
        fs::metadata(hooks.path("state")).expect("a directory").mode() & 0o7777,
        0o700
    );

    let dir = hooks.records().display().to_string();
    let as_owner =
        |program: &str, argument: &str| run(slurm.as_user(program).arg(argument), CLIENT_LIMIT).status;
    assert!(as_owner("cat", &path).success());
    assert!(!as_owner("ls", &dir).success());
    assert!(!as_owner("rm", &path).success());
    let mut other = Command::new("cat");
    other.arg(&path).uid(OTHER).gid(OTHER);
    assert!(!run(&mut other, CLIENT_LIMIT).status.success());
}
