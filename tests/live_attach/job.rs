//! Rows for the steps and tasks of a job, and its end.

use std::fs;
use std::process::Stdio;

use serde_json::Value;
use support::command::{answer, output, sw_bpf};
use support::measure::{MIB, program, wait_until};
use swbpf::job::cgroup::Controller;

use super::tree::{Tree, assert_holds, batch, end, is_exact, start_in, step, summary};

/// Four tasks that spike one after the other: each has its own peak, and the job's is that of the fattest, not their sum.
#[test]
fn each_step_and_task_has_its_own_peak() {
    let Some(tree) = Tree::new(Controller::Memory) else {
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("record");
    let script = batch(&tree);
    let attached = tree.attach(&path);
    let sizes = [("task_0", 40), ("task_1", 200), ("task_2", 40), ("task_3", 60)];
    for (task, mib) in sizes {
        let below = format!("step_0/{task}");
        let size = format!("{mib}M");
        assert!(
            tree.run(&below, &["anon", "--size", &size, "--hold-ms", "5"])
                .success()
        );
    }
    for (task, _) in sizes {
        tree.remove(&format!("step_0/{task}"));
    }
    tree.remove("step_0");
    end(script);
    let summary = summary(attached, &path);
    let step_0 = step(&summary, "0");
    let tasks = step_0["tasks"].as_array().expect("tasks");
    assert_eq!(tasks.len(), sizes.len());
    for (task, (_, mib)) in tasks.iter().zip(sizes) {
        assert_holds(task, mib);
        assert!(is_exact(task, &summary), "{task}");
    }
    assert_holds(step_0, 200);
    let job = summary["memory"]["needed_peak_bytes"].as_u64().expect("a peak");
    // The batch script's own is beside it.
    assert!((200 * MIB..203 * MIB).contains(&job), "{job}");
    let spent = |row: &Value| row["busy_seconds"].as_f64().expect("CPU time");
    let of_tasks: f64 = tasks.iter().map(spent).sum();
    assert!(
        (of_tasks - spent(step_0)).abs() < 1e-3,
        "{of_tasks} of {}",
        spent(step_0)
    );
}

/// Steps that begin while sw-bpf attaches, each living some 50 ms: every one that begins after the target was found has a row,
/// and none is in doubt.
#[test]
fn no_step_is_missed_that_begins_while_it_attaches() {
    let Some(tree) = Tree::new(Controller::Memory) else {
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("record");
    let script = batch(&tree);
    let mut command = sw_bpf(&["attach", "--json"]);
    command.arg(&path).arg("--cgroup").arg(&tree.job);
    let attached = command.stdout(Stdio::null()).spawn().expect("sw-bpf starts");
    let mut steps = 0;
    // Until some have begun after the first line, which comes a second after the begin.
    let mut after = 0;
    while after < 20 {
        let name = format!("step_{steps}");
        assert!(
            tree.run(
                &format!("{name}/task_0"),
                &["anon", "--size", "8M", "--hold-ms", "1"]
            )
            .success()
        );
        tree.remove(&format!("{name}/task_0"));
        tree.remove(&name);
        steps += 1;
        after += u32::from(fs::metadata(&path).is_ok_and(|file| file.len() > 0));
    }
    end(script);
    let summary = summary(attached, &path);
    let told = summary["steps"].as_array().expect("steps");
    let first = told
        .iter()
        .filter(|step| !step["began_at"].is_null())
        .filter_map(|step| step["step_id"].as_str()?.parse::<u32>().ok())
        .min()
        .expect("a step that began under watch");
    assert!(first < steps, "{first} of {steps}");
    for number in first..steps {
        let row = step(&summary, &number.to_string());
        assert_holds(row, 8);
        assert_holds(&row["tasks"][0], 8);
        assert!(is_exact(row, &summary) && row["ended_at"].is_string(), "{row}");
    }
    assert_eq!(summary["loss"]["without_row"], 0);
}

/// A directory that a user left behind keeps the job's: the end is that no process is left.
#[test]
fn the_end_is_that_the_last_process_has_left() {
    let Some(tree) = Tree::new(Controller::Memory) else {
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("record");
    let script = batch(&tree);
    tree.make("step_batch/task_0/left/behind");
    let attached = tree.attach(&path);
    end(script);
    let summary = summary(attached, &path);
    assert!(tree.job.exists());
    let row = step(&summary, "batch");
    assert!(row["ended_at"].is_string(), "{row}");
    assert!(
        row["tasks"].as_array().expect("tasks").len() == 1,
        "nested ones are no tasks: {row}"
    );
}

/// Started inside of the job, sw-bpf moves out: nothing of it is counted, and nothing of it is left there.
#[test]
fn its_own_memory_is_left_out_where_it_runs_inside() {
    let Some(tree) = Tree::new(Controller::Memory) else {
        return;
    };
    let script = batch(&tree);
    let own = tree.make("step_5/task_0");
    let job = tree.job.to_str().expect("text");
    for (source, most) in [("kernel", MIB), ("sampled", 2 * MIB)] {
        let child = start_in(
            &own,
            program("sw-bpf").as_os_str(),
            &["--once", "--json", "--force-source", source, "--cgroup", job],
        );
        let answer = answer(&child.wait_with_output().expect("an end"));
        assert_eq!(answer["target"]["own_processes"], "left", "{source}");
        let needed = answer["memory"]["needed_bytes"].as_u64().expect("a number");
        // Of sh, sleep, and what the kernel keeps of the cgroups; sw-bpf alone holds several MiB with its programs' maps.
        assert!(needed < most, "{source}: {needed}");
        assert_eq!(answer["processes"]["alive"], 1);
    }
    let left = fs::read_dir(&tree.mount).expect("the root").flatten();
    let left: Vec<_> = left
        .map(|entry| entry.file_name())
        .filter(|name| name.to_string_lossy().starts_with("sw-bpf-attach"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    end(script);
}

/// Slurm without memory cgroups: time is exact, memory is that of the processes, and what to set is named.
#[test]
fn without_a_memory_cgroup_the_processes_tell() {
    let Some(tree) = Tree::new(Controller::Freezer) else {
        return;
    };
    let mut holder = start_in(
        &tree.make("step_0/task_0"),
        program("workload").as_os_str(),
        &["anon", "--size", "50M", "--hold-ms", "4000"],
    );
    wait_until("memory", || {
        let mut command = sw_bpf(&["--once", "--json", "--window", "300ms", "--cgroup"]);
        let answer = answer(&output(command.arg(&tree.job)));
        let memory = &answer["memory"];
        assert_eq!(
            (&answer["source"], &memory["source"]),
            (&"kernel".into(), &"sampled".into())
        );
        assert_eq!(answer["cpu"]["source"], "kernel");
        let reason = answer["unknown"]["memory.error_bound_bytes"]
            .as_str()
            .expect("a reason");
        assert!(reason.contains("ConstrainRAMSpace"), "{reason}");
        let row = &step(&answer, "0")["needed_bytes"];
        let of_job = memory["needed_bytes"].as_u64().unwrap_or(0);
        let of_step = row.as_u64().unwrap_or(0);
        let is_whole = |bytes| (50 * MIB..52 * MIB).contains(&bytes);
        is_whole(of_job) && is_whole(of_step)
    });
    assert!(holder.wait().expect("an end").success());
}
