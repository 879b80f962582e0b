//! Jobs found by what their processes say of them.

use super::{SLUID, Scene, facts, silent};
use crate::job::slurm::JobFacts;

#[test]
fn without_slurm_tasks_are_found() {
    let task = |raw: u32, array: u32, task: u32| {
        [
            "A=B".to_owned(),
            format!("SLURM_JOB_ID={raw}"),
            format!("SLURM_ARRAY_JOB_ID={array}"),
            format!("SLURM_ARRAY_TASK_ID={task}"),
        ]
    };
    let scene = Scene::new(&["slurm/uid_1001/job_5"])
        .process("slurm/uid_1001/job_19", 19, &task(19, 4, 1))
        .process("slurm/uid_1001/job_4", 4, &task(4, 4, 3))
        // The environment is not that of the job that the process is in.
        .process("slurm/uid_1001/job_9", 90, &task(999, 4, 7));
    let silent = silent();
    let told = |id| scene.told(id, Err(&silent));
    assert_eq!(told("4_1"), "4_1 in slurm/uid_1001/job_19");
    assert_eq!(told("4_[2-9]"), "4_3 in slurm/uid_1001/job_4");
    assert_eq!(
        told("4"),
        "2: 4 means several jobs here, name one of them:\n  4_1\n  4_3"
    );
    assert_eq!(told("19"), "4_1 in slurm/uid_1001/job_19");
    assert_eq!(told("5"), "5 in slurm/uid_1001/job_5");
    assert_eq!(
        told("4_7"),
        "67: no job 4_7 to measure: no cgroup here is known to be its, and Slurm could not be asked: \
         scontrol is not in PATH"
    );
}

#[test]
fn without_slurm_components_are_found() {
    let groups = [
        "SLURM_JOB_ID=2",
        "SLURM_JOB_ID_HET_GROUP_0=2",
        "SLURM_JOB_ID_HET_GROUP_1=3",
    ];
    let named = ["SLURM_JOB_ID=8", "SLURM_HET_JOB_ID=6", "SLURM_HET_JOB_OFFSET=2"];
    let sluid = format!("SLURM_JOB_SLUID={SLUID}");
    let scene = Scene::new(&[])
        .process("slurm/uid_1001/job_3", 3, &groups)
        .process("slurm/uid_1001/job_8", 8, &named)
        .process(
            "slurm/uid_1001/job_10",
            10,
            &["SLURM_JOB_ID=10", &sluid, "SLURM_ARRAY_JOB_ID=x"],
        );
    let silent = silent();
    let told = |id| scene.told(id, Err(&silent));
    assert_eq!(told("2+1"), "2+1 in slurm/uid_1001/job_3");
    assert_eq!(told("2"), "2+1 in slurm/uid_1001/job_3");
    assert_eq!(told("6+2"), "6+2 in slurm/uid_1001/job_8");
    assert_eq!(told(SLUID), "10 in slurm/uid_1001/job_10");
}

#[test]
fn directories_named_by_sluid_are_found_by_either_id() {
    let dir = format!("slurm/uid_1001/{SLUID}");
    let environ = ["SLURM_JOB_ID=7".to_owned(), format!("SLURM_JOB_SLUID={SLUID}")];
    let scene = Scene::new(&[]).process(&dir, 5, &environ);
    let known = JobFacts {
        sluid: SLUID.parse().ok(),
        ..facts(7, "RUNNING")
    };
    let found = format!("7 in {dir}");
    assert_eq!(scene.told("7", Ok(&[known])), found);
    assert_eq!(scene.told("7", Err(&silent())), found);
    // A version that names directories so and does not tell the id.
    assert_eq!(scene.told("7", Ok(&[facts(7, "RUNNING")])), found);
    assert_eq!(scene.told(SLUID, Err(&silent())), found);
    let scene = Scene::new(&[&dir]);
    assert_eq!(scene.told(SLUID, Err(&silent())), format!("{SLUID} in {dir}"));
}
