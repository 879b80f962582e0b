//! Every job finds its summary at the end of its output, whatever its end was.

use serde_json::Value;
use support::measure::{MIB, program};
use support::slurm::{CLIENT_LIMIT, run};

use super::agent::assert_whole;
use super::hooks::Scene;
use super::need;

/// The job is its spike: its script becomes the program that allocates, and gives it back 5 ms later.
#[test]
fn the_output_of_a_job_ends_with_its_summary() {
    if !need() {
        return;
    }
    let scene = Scene::start();
    let script = "#!/bin/sh\necho before\nexec workload anon --size 300M --hold-ms 5\n";
    let (job, output) = scene.output_of(script, &["--mem=600M"], "COMPLETED");
    let is_told = |begin: &str, job, output: &str| {
        let is_told = scene.is_shown(job, 0, |shown| output == format!("{begin}\n{shown}"));
        assert!(is_told, "{output}");
    };
    is_told("before\n", job, &output);
    assert_eq!(scene.hooks.told(), [""; 0]);
    assert_whole(&scene.agent.summary(job), 300);

    // A job of a moment, and one whose output has a name of its own.
    let (job, output) = scene.output_of("#!/bin/sh\n", &["--mem=100M"], "COMPLETED");
    is_told("", job, &output);
    let own = ["--mem=100M", "--output=my out.txt"];
    let (job, output) = scene.output_of("#!/bin/sh\necho there\n", &own, "COMPLETED");
    assert_eq!(output, "", "in another file");
    let own = std::fs::read_to_string(scene.slurm.dir("work").join("my out.txt")).expect("its output");
    is_told("there\n", job, &own);
    assert_eq!(scene.hooks.told(), [""; 0]);
}

#[test]
fn each_task_of_an_array_has_its_summary() {
    if !need() {
        return;
    }
    let scene = Scene::start();
    let script = "#!/bin/sh\nworkload anon --size $((40 * SLURM_ARRAY_TASK_ID))M\nexec until-let-go\n";
    let array = scene.slurm.sbatch(script, &["--array=1-3", "--mem=300M"]);
    for number in 1..=3 {
        let name = format!("{array}_{number}");
        scene.slurm.wait_running(&name);
        let parts = scene.slurm.parts(array);
        let (_, job) = parts.iter().find(|(part, _)| *part == name).expect("a task");
        // That it is a task is Slurm's word.
        scene.agent.wait_for_words(*job);
        scene.slurm.let_go(*job);
        assert_eq!(scene.slurm.wait_end(name), "COMPLETED");
    }
    scene.wait_for_epilog();
    for (number, mib) in [(1, 40), (2, 80), (3, 120)] {
        let parts = scene.slurm.parts(array);
        let name = format!("{array}_{number}");
        let (_, job) = parts.iter().find(|(part, _)| *part == name).expect("a task");
        assert_whole(&scene.agent.summary(*job), mib);
        let shown = scene.shown(*job, &[]);
        assert!(shown.starts_with(&format!("sw-bpf: job {name} of ")), "{shown}");
        assert_eq!(scene.slurm.output(job), format!("\n{shown}"));
        // Its user may not search the records; Slurm knows which one it is.
        let mut own = scene.slurm.as_user(program("sw-bpf"));
        own.args(["show", &name, "--records"])
            .arg(scene.agent.path("jobs"));
        assert_eq!(run(&mut own, CLIENT_LIMIT).stdout.trim_end(), shown.trim_end());
    }
    assert_eq!(scene.hooks.told(), [""; 0]);
}

#[test]
fn a_job_that_is_ended_has_its_summary() {
    if !need() {
        return;
    }
    let scene = Scene::start();
    let job = scene.slurm.sbatch(
        "#!/bin/sh\nworkload anon --size 50M --hold-ms 5\necho here\nsleep 600\n",
        &["--mem=100M"],
    );
    scene.slurm.wait_line(job, "here");
    scene.slurm.scancel(job);
    assert_eq!(scene.slurm.wait_end(job), "CANCELLED");
    scene.wait_for_epilog();
    let output = scene.slurm.output(job);
    let ends_so = |shown: &str| output.ends_with(&format!("\n{shown}"));
    assert!(scene.is_shown(job, 0, ends_so), "{output}");
    assert_whole(&scene.agent.summary(job), 50);

    let script = "#!/bin/sh\nexec workload anon --size 400M\n";
    let (job, output) = scene.output_of(script, &["--mem=200M"], "OUT_OF_MEMORY");
    assert!(output.contains("\nOut of memory, 1 process killed\n"), "{output}");
    let kill = &scene.agent.summary(job)["oom_kills"][0];
    assert_eq!(
        (&kill["limit_of"], &kill["limit_bytes"]),
        (&"job".into(), &(200 * MIB).into())
    );
    assert_eq!(scene.hooks.told(), [""; 0]);
}

/// The same id, a new directory, a new record; that of the first run is kept.
#[test]
fn a_requeued_job_has_a_summary_of_each_run() {
    if !need() {
        return;
    }
    // A requeued job waits for as long as credentials are good for, else two minutes.
    let scene = Scene::with("AuthInfo=socket={dir}/run/munge.socket,cred_expire=5");
    let script = "#!/bin/sh\n\
        if [ \"${SLURM_RESTART_COUNT-0}\" = 0 ]; then\n\
        workload anon --size 90M; echo here; sleep 600\n\
        fi\n\
        workload anon --size 30M\n";
    let job = scene
        .slurm
        .sbatch(script, &["--mem=200M", "--requeue", "--open-mode=append"]);
    scene.slurm.wait_line(job, "here");
    scene.slurm.client("scontrol", &["requeue", &job.to_string()]);
    assert_eq!(scene.slurm.wait_end(job), "COMPLETED");
    scene.wait_for_epilog();
    assert_whole(&scene.agent.summary(job), 30);
    let json: Value = serde_json::from_str(&scene.shown(job, &["--run", "1", "--json"])).expect("JSON");
    assert_whole(&json, 90);
    let output = scene.slurm.output(job);
    let has_first = |shown: &str| output.contains(&format!("\n{shown}"));
    assert!(scene.is_shown(job, 1, has_first), "{output}");
    let ends_so = |shown: &str| output.ends_with(&format!("\n{shown}"));
    assert!(scene.is_shown(job, 0, ends_so), "{output}");
}

/// Slurm keeps the line as it is.
#[test]
fn the_comment_is_what_slurm_takes() {
    if !need() {
        return;
    }
    let scene = Scene::start();
    let (first, _) = scene.output_of(
        "#!/bin/sh\nworkload anon --size 20M\n",
        &["--mem=100M"],
        "COMPLETED",
    );
    let line = scene.shown(first, &["--admin-comment"]);
    let line = line.trim_end();
    assert!(line.contains("source=kernel"), "{line}");
    let job = scene.slurm.sbatch("#!/bin/sh\nuntil-let-go\n", &["--mem=100M"]);
    scene.slurm.wait_running(job);
    let mut update = scene.slurm.as_root("scontrol");
    update.args(["update", &format!("job={job}"), &format!("AdminComment={line}")]);
    let _ = run(&mut update, CLIENT_LIMIT).good();
    assert_eq!(scene.slurm.value(job, "AdminComment"), line);
    scene.slurm.let_go(job);
    assert_eq!(scene.slurm.wait_end(job), "COMPLETED");
}
