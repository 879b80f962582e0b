//! Jobs that are killed for want of memory: which limit was hit, and what Slurm makes of it.

use std::fs;

use support::measure::{MIB, wait_until};
use support::need_slurm;
use support::slurm::{Config, JobId, Row, Slurm, cgroups};

fn with_accounting() -> Slurm {
    Slurm::start(&Config {
        accounting: true,
        ..Config::default()
    })
}

fn stored(slurm: &Slurm, job: JobId) -> Vec<Row> {
    slurm.sacct(job, &["ExitCode", "DerivedExitCode"])
}

fn told<'a>(rows: &'a [Row], job: JobId, step: &str) -> (&'a str, &'a str) {
    let id = format!("{job}{step}");
    let row = rows.iter().find(|row| row.id == id);
    let row = row.unwrap_or_else(|| panic!("no {id}: {rows:?}"));
    (row.get("State"), row.get("ExitCode"))
}

/// The numbers behind `KEY=` in an output.
fn counts(output: &str, key: &str) -> Vec<u64> {
    let values = output
        .split_whitespace()
        .filter_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    values.map(|value| value.parse().expect("a number")).collect()
}

#[test]
fn a_script_over_its_limit_is_out_of_memory_whatever_it_exits_with() {
    if !need_slurm() {
        return;
    }
    let slurm = with_accounting();
    let script = format!(
        "#!/bin/sh\n{}workload anon --size 400M\necho job=$(hits $job) step=$(hits $limited)\nexit 9\n",
        cgroups::shell()
    );
    let (job, state) = slurm.run_job(&script, &["--mem=200M"]);
    assert_eq!(state, "OUT_OF_MEMORY");
    let rows = stored(&slurm, job);
    assert_eq!(told(&rows, job, ""), ("OUT_OF_MEMORY", "0:125"));
    assert_eq!(told(&rows, job, ".batch"), ("OUT_OF_MEMORY", "0:125"));
    // The limits are equal, and the job holds what the other steps hold too.
    let output = slurm.output(job);
    assert!(counts(&output, "job")[0] > 0, "{output}");
    assert_eq!(counts(&output, "step"), [0], "{output}");
}

#[test]
fn a_step_over_its_limit_leaves_the_job_completed() {
    if !need_slurm() {
        return;
    }
    let slurm = with_accounting();
    // The shell of the step outlives the kill, and reads the counters before they are gone.
    let script = format!(
        "#!/bin/sh\ncat >inside <<'END'\n{}workload anon --size 150M\n\
         echo job=$(hits $job) step=$(hits $limited)\nEND\n\
         srun --mem=100M sh inside\nexit 0\n",
        cgroups::shell()
    );
    let (job, state) = slurm.run_job(&script, &["--mem=400M"]);
    assert_eq!(state, "COMPLETED");
    let rows = stored(&slurm, job);
    assert_eq!(told(&rows, job, ""), ("COMPLETED", "0:0"));
    assert_eq!(told(&rows, job, ".0"), ("OUT_OF_MEMORY", "0:125"));
    assert_eq!(rows[0].get("DerivedExitCode"), "0:125");
    let output = slurm.output(job);
    assert!(counts(&output, "step")[0] > 0, "{output}");
    assert_eq!(counts(&output, "job"), [0], "{output}");
}

#[test]
fn two_steps_within_their_limits_can_hit_the_jobs() {
    if !need_slurm() {
        return;
    }
    let slurm = with_accounting();
    let script = format!(
        "#!/bin/bash\n{}for i in 0 1; do\n\
         srun --overlap --mem=200M workload anon --size 150M --hold-ms 1500 &\ndone\nwait -n\n\
         echo job=$(hits $job)\nfor other in $job/step_[01]; do echo step=$(hits $other${{limited#$step}}); done\n\
         wait\nexit 0\n",
        cgroups::shell()
    );
    let (job, state) = slurm.run_job(&script, &["--mem=200M"]);
    assert_eq!(state, "COMPLETED");
    let rows = stored(&slurm, job);
    let steps = [".0", ".1"].map(|step| told(&rows, job, step).0);
    assert!(steps.contains(&"OUT_OF_MEMORY"), "{steps:?}");
    assert_eq!(rows[0].get("DerivedExitCode"), "0:125");
    let output = slurm.output(job);
    assert!(counts(&output, "job")[0] > 0, "{output}");
    // The step that was spared is still there.
    assert_eq!(counts(&output, "step"), [0], "{output}");
}

#[test]
fn a_limit_below_the_step_is_told_as_well() {
    if !need_slurm() {
        return;
    }
    let slurm = with_accounting();
    let script = "#!/bin/sh\nsrun sh -c 'until-let-go; workload anon --size 150M; exit 0'\nexit 0\n";
    let job = slurm.sbatch(script, &["--mem=400M"]);
    // Slurm sets none there; an administrator may.
    let task = slurm.job_cgroup(job).join(cgroups::task("step_0", 0));
    wait_until("the task runs", || !cgroups::processes(&task).is_empty());
    fs::write(cgroups::limit(&task), (100 * MIB).to_string()).expect("a limit");
    slurm.let_go(job);
    assert_eq!(slurm.wait_end(job), "COMPLETED");
    let rows = stored(&slurm, job);
    assert_eq!(told(&rows, job, ".0"), ("OUT_OF_MEMORY", "0:125"));
}
