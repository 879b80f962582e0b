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

/// A `scontrol` that answers only when the job has ended: the summary comes once more, with Slurm's words.
#[test]
fn a_late_answer_of_slurm_is_recorded() {
    if !need_slurm() || !need_bpf() {
        return;
    }
    let slurm = Slurm::start(&Config::default());
    let agent = Agent::start(&slurm);
    hang_scontrol(&agent);
    let script = "#!/bin/sh\nexec workload anon --size 60M --hold-ms 5\n";
    let (job, state) = slurm.run_job(script, &["--mem=300M"]);
    assert_eq!(state, "COMPLETED");
    let before = agent.summary(job);
    assert!(before["job"].is_null());
    agent.wrap_scontrol();
    // The one that hangs is given up after 15 s, and the next is asked 15 s later.
    wait_until("the answer", || !agent.summary(job)["job"].is_null());
    let after = agent.summary(job);
    assert_eq!(after["job"]["user"], slurm.user().name);
    assert_eq!(after["job"]["job_id"].to_string(), job.to_string());
    for section in ["memory", "cpu", "coverage", "steps"] {
        assert_eq!(before[section], after[section]);
    }
    assert!(super::can_read(slurm.user().uid, &agent.record(job)));
    let text = std::fs::read_to_string(agent.record(job)).expect("a record");
    assert_eq!(text.matches("\"kind\":\"summary\"").count(), 2, "{text}");
}
