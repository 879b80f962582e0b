//! Jobs found in every layout, and nothing else taken for one.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;
use crate::job::cgroup::fake::FakeHost;
use crate::job::cgroup::membership::Membership;
use crate::job::cgroup::{Controller, Version};
use crate::job::id::{StepName, tests as ids};

const SLUID: &str = "sFNDM35NQ39R00";

fn places(host: &FakeHost) -> Vec<JobPlace> {
    host.hierarchies().slurm_jobs().expect("jobs")
}

/// Name, node, uid and directory below the host.
fn told(host: &FakeHost) -> Vec<(String, Option<String>, Option<u32>, PathBuf)> {
    let root = host.at("");
    places(host)
        .into_iter()
        .map(|place| {
            let path = place.cgroup.path().strip_prefix(&root).expect("of the host");
            (place.name.to_string(), place.node, place.uid, path.to_path_buf())
        })
        .collect()
}

fn row(
    name: &str,
    node: Option<&str>,
    uid: Option<u32>,
    path: &str,
) -> (String, Option<String>, Option<u32>, PathBuf) {
    (name.into(), node.map(Into::into), uid, path.into())
}

#[test]
fn v1_jobs_are_found_in_whichever_controllers_have_them() {
    let host = FakeHost::v1()
        .dir("memory/slurm/uid_1000/job_7/step_batch/task_0")
        .dir("freezer/slurm/uid_1000/job_7/step_batch")
        .dir("freezer/slurm/uid_1000/job_77/step_0")
        .dir("cpuset/slurm/uid_1000/job_77/step_0")
        .dir("cpuset/slurm/system");
    assert_eq!(
        told(&host),
        [
            row("7", None, Some(1000), "memory/slurm/uid_1000/job_7"),
            row("77", None, Some(1000), "freezer/slurm/uid_1000/job_77"),
        ]
    );
    let job = &places(&host)[0];
    assert!(job.cgroup.dir(Controller::Freezer).is_some());
    assert!(job.cgroup.dir(Controller::Cpuset).is_none());
    assert_eq!(job.steps().expect("steps"), [StepName::Batch]);
    assert!(job.step_path(StepName::Batch).is_dir());
    assert_eq!(places(&host)[1].cgroup.dir(Controller::Memory), None);
}

#[test]
fn several_slurmd_on_one_host_are_told_apart() {
    let host = FakeHost::v1()
        .dir("memory/slurm_node1/uid_0/job_7")
        .dir("memory/slurm_node2/uid_0/job_7");
    assert_eq!(
        told(&host),
        [
            row("7", Some("node1"), Some(0), "memory/slurm_node1/uid_0/job_7"),
            row("7", Some("node2"), Some(0), "memory/slurm_node2/uid_0/job_7"),
        ]
    );
    let host = FakeHost::v2()
        .dir("unified/system.slice/cn1_slurmstepd.scope/job_77/step_0/user/task_0")
        .dir("unified/system.slice/cn1_slurmstepd.scope/job_88/step_0/slurm")
        .dir("unified/system.slice/cn1_slurmstepd.scope/system")
        .dir("unified/system.slice/cn_2_slurmstepd.scope/job_77");
    let scope = "unified/system.slice/cn1_slurmstepd.scope";
    assert_eq!(
        told(&host),
        [
            row("77", Some("cn1"), None, &format!("{scope}/job_77")),
            row("88", Some("cn1"), None, &format!("{scope}/job_88")),
            row(
                "77",
                Some("cn_2"),
                None,
                "unified/system.slice/cn_2_slurmstepd.scope/job_77"
            ),
        ]
    );
}

#[test]
fn v2_jobs_are_found_below_any_slices() {
    let host = FakeHost::v2()
        .dir("unified/slurmstepd.scope/job_1")
        .dir("unified/a.slice/a-b.slice/a-b-c.slice/slurmstepd.scope/job_2")
        .dir("unified/a.slice/b.slice/c.slice/d.slice/slurmstepd.scope/job_3")
        .dir("unified/a.slice/b.slice/c.slice/d.slice/e.slice/slurmstepd.scope/job_4")
        .dir(&format!(
            "unified/system.slice/slurmstepd.scope/{SLUID}/step_batch/user"
        ))
        .dir(&format!("unified/system.slice/slurmstepd.scope/job_{SLUID}"));
    let names: Vec<_> = told(&host).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names, ["2", "3", "1", SLUID, SLUID]);
}

#[test]
fn hybrid_jobs_are_where_their_version_puts_them() {
    let host = FakeHost::v1()
        .unified("hugetlb")
        .dir("memory/slurm/uid_5/job_1")
        .dir("unified/slurm/uid_5/job_2")
        .dir("memory/system.slice/slurmstepd.scope/job_3")
        .dir("unified/system.slice/slurmstepd.scope/job_4");
    let names: Vec<_> = told(&host).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names, ["1", "4"]);
}

#[test]
fn a_container_sees_jobs_below_its_root() {
    let host = FakeHost::new()
        .mount("memory", "memory", "/docker/x")
        .dir("memory/slurm/uid_5/job_1/step_0");
    assert_eq!(told(&host), [row("1", None, Some(5), "memory/slurm/uid_5/job_1")]);
    let (place, below) = host
        .hierarchies()
        .slurm_job_at(&host.at("memory/slurm/uid_5/job_1/step_0"))
        .expect("readable")
        .expect("a job");
    assert_eq!(
        (place.name, below.as_path()),
        (JobDirName::Id(1), Path::new("step_0"))
    );
}

#[test]
fn what_looks_like_a_job_elsewhere_is_none() {
    let mut host = FakeHost::v2();
    for path in [
        "system.slice/slurmstepd.scope/job_7x",
        "system.slice/slurmstepd.scope/job_07",
        "system.slice/slurmstepd.scope/job_0",
        "system.slice/slurmstepd.scope/job_",
        "system.slice/slurmstepd.scope/Job_7",
        "system.slice/slurmstepd.scope/sfndm35nq39r00",
        "system.slice/slurmstepd.scope/system/job_7",
        "system.slice/slurmstepd.scope.d/job_7",
        "system.slice/_slurmstepd.scope/job_7",
        "system.slice/xslurmstepd.scope/job_7",
        "system.slice/slurmd.service/slurmstepd.scope/job_7",
        "user.slice/user-1.slice/user@1.service/slurmstepd.scope/job_7",
        "user.slice/user-1.slice/user@1.service/app.slice/slurmstepd.scope/job_7",
        ".slice/slurmstepd.scope/job_7",
        "job_7",
    ] {
        host = host.dir(&format!("unified/{path}"));
        assert_eq!(JobPath::of(&Path::new("/").join(path)), None, "{path}");
    }
    assert_eq!(told(&host), []);
    let mut host = FakeHost::v1().file("memory/slurm/uid_1/job_7", "");
    for path in [
        "slurmx/uid_1/job_7",
        "slurm_/uid_1/job_7",
        "slurm/uid_x/job_7",
        "slurm/job_7",
        "a/slurm/uid_1/job_7",
    ] {
        host = host.dir(&format!("memory/{path}"));
    }
    assert_eq!(told(&host), []);
}

#[test]
fn links_and_what_belongs_to_others_are_not_followed() {
    let host = FakeHost::v2()
        .dir("unified/system.slice/slurmstepd.scope")
        .dir("unified/x.service/job_7");
    std::os::unix::fs::symlink(
        host.at("unified/x.service/job_7"),
        host.at("unified/system.slice/slurmstepd.scope/job_7"),
    )
    .expect("a link");
    assert_eq!(told(&host), []);
    let host = host
        .dir("unified/system.slice/slurmstepd.scope/job_8")
        .dir("unified/b.slice/slurmstepd.scope/job_9");
    assert_eq!(told(&host).len(), 2);
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(host.at("unified/b.slice"), Some(12345), None).expect("given away");
        assert_eq!(told(&host).len(), 1);
    }
}

#[test]
fn the_job_of_a_path_is_the_outermost() {
    let inside = "/slurm_n1/uid_7/job_3/step_0/task_1/slurm/uid_0/job_4";
    let job = JobPath::of(Path::new(inside)).expect("a job");
    assert_eq!(job.name, JobDirName::Id(3));
    assert_eq!((job.node.as_deref(), job.uid), (Some("n1"), Some(7)));
    assert_eq!(job.job, Path::new("/slurm_n1/uid_7/job_3"));
    assert_eq!(job.below, Path::new("step_0/task_1/slurm/uid_0/job_4"));
    let inside = format!("/system.slice/slurmstepd.scope/{SLUID}/step_batch/user/task_special");
    let job = JobPath::of(Path::new(&inside)).expect("a job");
    assert_eq!(job.name.to_string(), SLUID);
    assert_eq!(
        job.job,
        Path::new(&format!("/system.slice/slurmstepd.scope/{SLUID}"))
    );
    assert_eq!(job.below, Path::new("step_batch/user/task_special"));
    for none in [
        "/",
        "",
        "slurm/uid_1/job_2",
        "/slurm/uid_1",
        "/system.slice/slurmstepd.scope",
        "/slurm/uid_1/../job_2",
    ] {
        assert_eq!(JobPath::of(Path::new(none)), None, "{none}");
    }
}

#[test]
fn a_process_names_its_job_even_where_memory_is_not_constrained() {
    let host = FakeHost::v1().dir("freezer/slurm/uid_7/job_3/step_0");
    let members = [
        (Controller::Memory, "/"),
        (Controller::Freezer, "/slurm/uid_7/job_3/step_0"),
    ]
    .map(|(controller, inside)| Membership {
        version: Version::V1,
        controllers: vec![controller],
        inside: inside.into(),
    });
    let (place, below) = host
        .hierarchies()
        .job_of_members(&members)
        .expect("readable")
        .expect("a job");
    assert_eq!((place.name, place.uid), (JobDirName::Id(3), Some(7)));
    assert_eq!(
        role(place.cgroup.version(), &below),
        Role::Step(StepName::number(0))
    );
    assert!(
        host.hierarchies()
            .job_of_members(&members[..1])
            .expect("readable")
            .is_none()
    );
}

#[test]
fn roles_follow_the_layout() {
    let step = StepName::number(0);
    let nested = |task| Role::Nested {
        step: Some(step),
        task,
    };
    let stranger = Role::Nested {
        step: None,
        task: None,
    };
    for (below, v1, v2) in [
        ("", Role::Job, Role::Job),
        ("step_0", Role::Step(step), Role::Step(step)),
        ("step_0/task_3", Role::Task { step, task: 3 }, nested(None)),
        ("step_0/task_3/a/b", nested(Some(3)), nested(None)),
        ("step_0/slurm", nested(None), Role::Slurmstepd { step }),
        ("step_0/slurm/a", nested(None), nested(None)),
        ("step_0/user", nested(None), Role::User { step }),
        ("step_0/user/task_3", nested(None), Role::Task { step, task: 3 }),
        ("step_0/user/task_special", nested(None), Role::Special { step }),
        ("step_0/user/task_special/a", nested(None), nested(None)),
        ("step_0/user/task_3/task_4", nested(None), nested(Some(3))),
        ("step_0/user/a", nested(None), nested(None)),
        ("hold", Role::Other, Role::Other),
        ("step_x", Role::Other, Role::Other),
        ("step_x/task_0", stranger, stranger),
    ] {
        assert_eq!(role(Version::V1, Path::new(below)), v1, "{below}");
        assert_eq!(role(Version::V2, Path::new(below)), v2, "{below}");
    }
}

#[test]
fn the_owner_of_a_v2_job_is_that_of_its_oldest_process() {
    let pid = |host: FakeHost, pid: u32, uid: u32, started: u32| {
        let zeros = "0 ".repeat(18);
        host.file(
            &format!("proc/{pid}/stat"),
            &format!("{pid} (a) b) S {zeros}{started} 0"),
        )
        .file(
            &format!("proc/{pid}/status"),
            &format!("Name:\tUid: 4\\nUid: 5\nUid:\t{uid}\t0\t0\t0\n"),
        )
    };
    let job = "unified/system.slice/slurmstepd.scope/job_7";
    let host = FakeHost::v2()
        .file(&format!("{job}/cgroup.procs"), "")
        .file(&format!("{job}/step_0/slurm/cgroup.procs"), "10\n")
        .file(&format!("{job}/step_0/user/cgroup.procs"), "")
        .file(
            &format!("{job}/step_0/user/task_0/cgroup.procs"),
            "13\n12\n0\n99\n",
        );
    let host = pid(pid(pid(host, 10, 0, 1), 12, 1000, 50), 13, 100_005, 70);
    let place = &places(&host)[0];
    assert_eq!(procs::uid(&place.cgroup, &host.at("proc")), Some(1000));
    let uid = |host: &FakeHost| procs::uid(&places(host)[0].cgroup, &host.at("proc"));
    let host = host.file(&format!("{job}/step_0/user/task_0/cgroup.procs"), "");
    assert_eq!(uid(&host), None);
    // The one that Slurm holds in the extern step is root's, whoever's the job is.
    let held = format!("{job}/step_extern/user/task_special/cgroup.procs");
    let host = pid(host.file(&held, "20\n"), 20, 0, 2);
    assert_eq!(uid(&host), None);
    let host = pid(host.file(&held, "20\n21\n"), 21, 1000, 90);
    assert_eq!(uid(&host), Some(1000));
    let host = host.file(&held, "20\n");
    let host = host.file(
        &format!("{job}/step_0/user/task_0/cgroup.procs"),
        &format!("{}\n", std::process::id()),
    );
    let own = rustix::process::getuid().as_raw();
    assert_eq!(places(&host)[0].uid, Some(own));
}

#[test]
fn directories_of_a_hostile_user_are_not_gone_into() {
    let host = FakeHost::v1().dir("memory/slurm/uid_7/job_3/step_0");
    let step = host.at("memory/slurm/uid_7/job_3/step_0");
    for number in 0..200 {
        fs::create_dir_all(step.join(format!("uid_{number}/job_{number}"))).expect("a directory");
    }
    assert_eq!(told(&host), [row("3", None, Some(7), "memory/slurm/uid_7/job_3")]);
}

fn any_name() -> impl Strategy<Value = JobDirName> {
    prop_oneof![
        (1_u32..0xffff_fffe).prop_map(JobDirName::Id),
        (1_u64..).prop_map(|bits| JobDirName::Sluid(Sluid::from_bits(bits).expect("not 0"))),
    ]
}

fn dir_of(name: JobDirName) -> String {
    match name {
        JobDirName::Id(id) => format!("job_{id}"),
        JobDirName::Sluid(sluid) => sluid.to_string(),
    }
}

proptest! {
    #[test]
    fn a_path_of_a_job_names_it(
        name in any_name(), uid: u32, step in ids::any_step(), node in "[a-z][a-z0-9_-]{0,8}", nested in "(/[a-z]{1,5}){0,3}",
    ) {
        let v1 = format!("/slurm_{node}/uid_{uid}/{}/step_{step}{nested}", dir_of(name));
        let job = JobPath::of(Path::new(&v1)).expect("a job");
        prop_assert_eq!((job.name, job.uid, job.node.as_deref()), (name, Some(uid), Some(node.as_str())));
        prop_assert_eq!(job.job.join(&job.below), Path::new(&v1));
        let v2 = format!("/a.slice/{node}_slurmstepd.scope/{}/step_{step}/user{nested}", dir_of(name));
        let job = JobPath::of(Path::new(&v2)).expect("a job");
        prop_assert_eq!((job.name, job.uid, job.node.as_deref()), (name, None, Some(node.as_str())));
        prop_assert_eq!(job.job.join(&job.below), Path::new(&v2));
    }

    #[test]
    fn only_the_exact_name_is_a_job(name in any_name(), text in "[a-zA-Z0-9_]{0,16}") {
        let dir = dir_of(name);
        prop_assert_eq!(JobDirName::from_dir(&dir), Some(name));
        prop_assert_eq!(JobDirName::from_dir(&format!("{dir} ")), None);
        prop_assert_eq!(JobDirName::from_dir(&dir.to_ascii_uppercase()), None);
        if let Some(found) = JobDirName::from_dir(&text) {
            prop_assert!(text.ends_with(&found.to_string()));
        }
    }

    #[test]
    fn no_path_makes_them_panic(path in "(?s)(/|slurm|uid_|job_|step_|task_|[0-9]|\\.\\.|.slice|slurmstepd.scope|.){0,12}") {
        let _ = JobPath::of(Path::new(&path));
        let _ = (role(Version::V1, Path::new(&path)), role(Version::V2, Path::new(&path)));
    }
}
