//! Steps and jobs that are short, many, or interactive.

use std::fs;
use std::io::Write as _;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use support::measure::wait_until;
use support::need_slurm;
use support::slurm::cgroups::path_in;
use support::slurm::{CLIENT_LIMIT, Config, JobId, Slurm, cgroups, ended_within, run};

fn with_accounting() -> Slurm {
    Slurm::start(&Config {
        accounting: true,
        ..Config::default()
    })
}

/// Ids of the rows that are stored of a job, without its number.
fn stored(slurm: &Slurm, job: JobId) -> Vec<String> {
    let rows = slurm.sacct(job, &[]);
    let id = job.to_string();
    rows.iter()
        .map(|row| row.id.strip_prefix(&id).expect("its number").to_owned())
        .collect()
}

#[test]
fn every_step_is_stored_beside_the_script() {
    if !need_slurm() {
        return;
    }
    let slurm = with_accounting();
    let script = "#!/bin/sh\nsrun workload anon --size 8M\nsrun sh -c 'exit 3'\ntrue\n";
    let (job, state) = slurm.run_job(script, &[]);
    assert_eq!(state, "COMPLETED");
    assert_eq!(stored(&slurm, job), ["", ".batch", ".extern", ".0", ".1"]);
    let rows = slurm.sacct(job, &["ExitCode", "DerivedExitCode"]);
    let codes: Vec<_> = rows.iter().map(|row| row.get("ExitCode")).collect();
    assert_eq!(codes, ["0:0", "0:0", "0:0", "0:0", "3:0"]);
    assert_eq!(rows[0].get("DerivedExitCode"), "3:0");
    let states: Vec<_> = rows.iter().map(|row| row.get("State")).collect();
    assert_eq!(
        states,
        ["COMPLETED", "COMPLETED", "COMPLETED", "COMPLETED", "FAILED"]
    );
}

#[test]
fn fifty_steps_and_a_job_of_a_moment_are_all_stored() {
    if !need_slurm() {
        return;
    }
    let slurm = with_accounting();
    let many = "#!/bin/sh\nfor step in $(seq 50); do srun true || exit 1; done\n";
    let (job, state) = slurm.run_job(many, &[]);
    assert_eq!(state, "COMPLETED");
    let steps = stored(&slurm, job);
    assert_eq!(steps.len(), 3 + 50, "{steps:?}");
    assert_eq!(steps.last().map(String::as_str), Some(".49"));

    let (job, state) = slurm.run_job("#!/bin/sh\ncat /proc/self/cgroup\nsleep 0.2\n", &[]);
    assert_eq!(state, "COMPLETED");
    assert_eq!(stored(&slurm, job), ["", ".batch", ".extern"]);
    let output = slurm.output(job);
    assert!(is_in_task_of(&output, job.0, "step_batch"), "{output}");
}

#[test]
fn an_allocation_without_a_script_has_steps_alone() {
    if !need_slurm() {
        return;
    }
    let slurm = Slurm::start(&Config::default());
    let mut salloc = slurm.as_user("salloc");
    salloc.args(["-n1", "srun", "cat", "/proc/self/cgroup"]);
    let text = run(&mut salloc, CLIENT_LIMIT).good();
    assert!(is_in_task_of(&text, 1, "step_0"), "{text}");
    let mut srun = slurm.as_user("srun");
    let text = run(srun.args(["cat", "/proc/self/cgroup"]), CLIENT_LIMIT).good();
    assert!(is_in_task_of(&text, 2, "step_0"), "{text}");
}

#[test]
fn a_shell_on_the_node_is_the_interactive_step() {
    if !need_slurm() {
        return;
    }
    let slurm = Slurm::start(&Config {
        slurm_conf: "LaunchParameters=use_interactive_step".to_owned(),
        ..Config::default()
    });
    // It wants a terminal.
    let mut terminal = slurm.as_user("script");
    terminal.args(["--quiet", "--return", "--command", "salloc -n1", "/dev/null"]);
    let mut shell = terminal
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("util-linux has `script`");
    // What comes before the shell has its terminal is lost: it is told again until it is heard.
    let task = slurm
        .job_cgroup(JobId(1))
        .join(cgroups::task("step_interactive", 0));
    wait_until("the shell runs", || !cgroups::processes(&task).is_empty());
    let heard = slurm.dir("work").join("heard");
    wait_until("the shell hears", || {
        tell(&mut shell, "cat /proc/self/cgroup >heard");
        sleep(Duration::from_millis(100));
        fs::read_to_string(&heard).is_ok_and(|text| text.ends_with('\n'))
    });
    tell(&mut shell, "exit");
    assert!(ended_within(&mut shell, CLIENT_LIMIT).is_some_and(|status| status.success()));
    let text = fs::read_to_string(heard).expect("what it wrote");
    assert!(is_in_task_of(&text, 1, "step_interactive"), "{text}");
    if cgroups::version() == 1 {
        assert!(
            path_in(&text, "freezer").ends_with("/job_1/step_interactive"),
            "{text}"
        );
    }
}

/// Whether a text such as `/proc/self/cgroup` is that of a process in the first task of a step.
fn is_in_task_of(text: &str, job: u32, step: &str) -> bool {
    path_in(text, "memory").ends_with(&format!("/job_{job}/{}", cgroups::task(step, 0)))
}

fn tell(shell: &mut Child, line: &str) {
    let stdin = shell.stdin.as_mut().expect("a pipe");
    writeln!(stdin, "{line}").expect("a reader");
}
