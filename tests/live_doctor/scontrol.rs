//! A `scontrol` that is not there, hangs, or says what it should not.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use support::doctor::Diagnosis;
use tempfile::TempDir;

use super::doctor;

/// What is said with this script as `scontrol`.
fn with(script: &str) -> Diagnosis {
    let dir = TempDir::new().expect("a directory");
    let path = dir.path().join("scontrol");
    fs::write(&path, format!("#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a script");
    Diagnosis::of(doctor(&["--json"]).env("PATH", dir.path()))
}

/// As `scontrol show config` writes it, and nothing for other questions.
const ANSWERS: &str = "test \"$*\" = 'show config' || exit 1; echo 'SLURM_VERSION = 22.05.8'; \
    echo 'ProctrackType = proctrack/cgroup'; echo 'TaskPlugin = task/cgroup'; echo 'PrologFlags = Contain'; \
    echo 'JobAcctGatherType = jobacct_gather/linux';";

#[test]
fn one_that_answers_is_understood() {
    let diagnosis = with(&format!("{ANSWERS} echo 'ConstrainRAMSpace = yes'"));
    diagnosis.assert("slurm", "ok", "Slurm 22.05.8: ProctrackType=proctrack/cgroup", "");
}

#[test]
fn one_that_hangs_is_given_up() {
    with("sleep 600").assert(
        "slurm",
        "unknown",
        "scontrol did not answer within 5 s",
        "scontrol show config",
    );
}

#[test]
fn garbage_is_unknown() {
    let diagnosis = with("head -c 100000 /dev/urandom");
    diagnosis.assert("slurm", "unknown", "not understood", "scontrol show config");
    assert_eq!(diagnosis.code, Some(1));
}

#[test]
fn a_flood_is_given_up() {
    with("yes 'SLURM_VERSION = 1'").assert("slurm", "unknown", "wrote more than", "");
}

#[test]
fn one_that_fails_is_told_in_its_words() {
    let diagnosis = with("echo 'slurm_load_ctl_conf error: Unable to contact slurm controller' >&2; exit 1");
    diagnosis.assert("slurm", "unknown", "Unable to contact slurm controller", "");
}
