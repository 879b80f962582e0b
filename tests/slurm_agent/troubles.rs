//! What goes wrong with Slurm while the agent records.

use support::measure::wait_until;
use support::slurm::{Config, Slurm};
use support::{need_bpf, need_slurm};

use super::agent::{Agent, assert_whole};

/// `slurmd` is killed and started again while a job runs: the job, and one after it, are recorded whole.
#[test]
fn a_job_outlives_its_slurmd() {
    if !need_slurm() || !need_bpf() {
        return;
    }
    let mut slurm = Slurm::start(&Config::default());
    let agent = Agent::start(&slurm);
    let script = "#!/bin/sh\nworkload anon --size 60M --hold-ms 5\necho one\nexec until-let-go\n";
    let job = slurm.sbatch(script, &["--mem=300M"]);
    slurm.wait_line(job, "one");
    slurm.restart_slurmd();
    slurm.let_go(job);
    assert_eq!(slurm.wait_end(job), "COMPLETED");
    assert_whole(&agent.summary(job), 60);
    let script = "#!/bin/sh\nexec workload anon --size 90M --hold-ms 5\n";
    let (job, state) = slurm.run_job(script, &["--mem=300M"]);
    assert_eq!(state, "COMPLETED");
    assert_whole(&agent.summary(job), 90);
}

/// Has each `scontrol` of the agent hang.
fn hang_scontrol(agent: &Agent) {
    let wrapper = agent.path("bin/scontrol");
    std::fs::write(&wrapper, "#!/bin/sh\nexec /bin/sleep 1000\n").expect("a script");
}

/// A `scontrol` that never answers: the job is recorded all the same, and its record says what is missing and why.
#[test]
fn a_hung_scontrol_delays_no_record() {
    if !need_slurm() || !need_bpf() {
        return;
    }
    let slurm = Slurm::start(&Config::default());
    let agent = Agent::start(&slurm);
    hang_scontrol(&agent);
    let script = "#!/bin/sh\nworkload anon --size 60M --hold-ms 5\necho one\nexec until-let-go\n";
    let job = slurm.sbatch(script, &["--mem=300M"]);
    slurm.wait_line(job, "one");
    let record = agent.record(job);
    wait_until("the reason in a line", || {
        std::fs::read_to_string(&record)
            .is_ok_and(|text| text.contains("scontrol did not answer within 15 s"))
    });
    slurm.let_go(job);
    assert_eq!(slurm.wait_end(job), "COMPLETED");
    let summary = agent.summary(job);
    assert_whole(&summary, 60);
    assert!(summary["job"].is_null());
    let why = summary["unknown"]["job"].as_str().expect("a reason");
    assert!(why.contains("did not answer"), "{why}");
}
