//! What users see of the jobs: their own, with no capability.

use std::process::Command;

use serde_json::Value;
use support::command::{answer, failure, output, snapshot, told};
use support::measure::{MIB, program, wait_until};
use support::slurm::{Config, Slurm};
use support::{need_bpf, need_slurm};

use super::agent::{Agent, assert_whole};

const OTHER_USER: u32 = 12_345;

/// `sw-bpf` as the user of the jobs types it.
fn as_user(agent: &Agent, slurm: &Slurm, arguments: &[&str]) -> Command {
    let mut command = slurm.as_user(program("sw-bpf"));
    command
        .args(arguments)
        .env("SWBPF_SOCKET", agent.path("run/agent.sock"));
    command
}

/// The same as a user of this id.
fn as_other(agent: &Agent, uid: u32, arguments: &[&str]) -> Command {
    let uid = uid.to_string();
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", &uid, "--regid", &uid, "--clear-groups"])
        .arg(program("sw-bpf"))
        .args(arguments)
        .env("SWBPF_SOCKET", agent.path("run/agent.sock"));
    command
}

fn text(command: &mut Command) -> String {
    let output = output(command);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn jobs(command: &mut Command) -> Vec<Value> {
    let listing: Value = serde_json::from_str(&text(command)).expect("JSON");
    listing["jobs"].as_array().expect("jobs").clone()
}

/// Another user has what anybody can see, and is told whom the agent tells.
fn check_other_now(agent: &Agent, cgroup: &str) {
    let options = ["--once", "--json", "--window", "0.1", "--cgroup", cgroup];
    let other = output(&mut as_other(agent, OTHER_USER, &options));
    let said = told(&other);
    assert!(said.contains("to its user, to root and to the group"), "{said}");
    let held_by = &answer(&other)["probes"]["held_by"];
    assert_eq!(held_by, "nobody", "sampled, as by anybody");
}

/// The user of a job sees it while it runs and when it has ended; to another user it is as if it had never been.
#[test]
fn a_user_sees_the_own_jobs_and_no_other_does() {
    if !need_slurm() || !need_bpf() {
        return;
    }
    let slurm = Slurm::start(&Config::default());
    let agent = Agent::start(&slurm);
    let script = "#!/bin/sh\nworkload anon --size 100M --hold-ms 5\necho spiked\nexec until-let-go\n";
    let job = slurm.sbatch(script, &["--mem=300M"]);
    slurm.wait_line(job, "spiked");
    let id = job.to_string();

    // On version 2, Slurm has to say first whose it is.
    let mut now = Value::Null;
    wait_until("the agent's answer", || {
        now = answer(&output(&mut as_user(
            &agent,
            &slurm,
            &["--once", "--json", "--window", "0.1", &id],
        )));
        now["probes"]["held_by"] == "agent"
    });
    assert_whole(&now, 100);
    check_other_now(&agent, now["target"]["cgroup"].as_str().expect("text"));
    let running = jobs(&mut as_user(
        &agent,
        &slurm,
        &["list", "--json", "--state", "running"],
    ));
    assert_eq!(running.len(), 1, "{running:#?}");
    assert_eq!(running[0]["job_id"], id);

    slurm.let_go(job);
    assert_eq!(slurm.wait_end(job), "COMPLETED");
    let summary = agent.summary(job);
    let shown = snapshot(text(&mut as_user(&agent, &slurm, &["show", "--json", &id])).trim_end());
    assert_eq!(shown, summary);
    assert_whole(&shown, 100);
    let words = text(&mut as_user(&agent, &slurm, &["show", &id]));
    assert!(words.contains("Peak memory"), "{words}");
    let ended = jobs(&mut as_user(&agent, &slurm, &["list", "--json", "--since", "1h"]));
    assert_eq!(ended.len(), 1, "{ended:#?}");
    assert_eq!(
        (&ended[0]["state"], &ended[0]["user"]),
        (&"ended".into(), &slurm.user().name.clone().into())
    );
    assert!(ended[0]["needed_peak_bytes"].as_u64() >= Some(100 * MIB));

    check_other(&agent, &id);
}

/// That another user is told nothing of a job.
fn check_other(agent: &Agent, id: &str) {
    let all = jobs(&mut as_other(agent, OTHER_USER, &["list", "--json"]));
    assert_eq!(all, Vec::<Value>::new());
    let refused = failure(&output(&mut as_other(agent, OTHER_USER, &["show", id])));
    let absent = failure(&output(&mut as_other(agent, OTHER_USER, &["show", "999999"])));
    assert_eq!(refused.0, absent.0);
    assert_eq!(refused.1.replace(id, "999999"), absent.1);
}
