//! A target found in every layout.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use super::fake::FakeHost;
use super::membership::Membership;
use super::{Cgroup, CgroupError, Controller, Hierarchies, Version};

const JOB: &str = "/slurm/uid_0/job_1";

fn members(lines: &[(&[Controller], &str)]) -> Vec<Membership> {
    lines
        .iter()
        .map(|(controllers, inside)| Membership {
            version: if controllers.is_empty() {
                Version::V2
            } else {
                Version::V1
            },
            controllers: controllers.to_vec(),
            inside: inside.into(),
        })
        .collect()
}

fn dir_of(cgroup: &Cgroup, controller: Controller) -> Option<&Path> {
    cgroup.dir(controller).map(|dir| dir.path.as_path())
}

#[test]
fn v1_job_by_any_of_its_directories() {
    let host = FakeHost::v1()
        .dir(&format!("memory{JOB}/step_0"))
        .dir(&format!("freezer{JOB}/step_0"))
        .dir("cpuset/slurm");
    let freezer = host.at("freezer/slurm/uid_0/job_1");
    for path in [JOB, "slurm/uid_0/job_1", freezer.to_str().expect("UTF-8")] {
        let cgroup = host.cgroup(path);
        assert_eq!(cgroup.path(), host.at("memory/slurm/uid_0/job_1"), "{path}");
        assert_eq!(cgroup.version(), Version::V1);
        assert_eq!(
            cgroup.id(),
            fs::metadata(cgroup.path()).expect("the directory").ino()
        );
        assert_eq!(dir_of(&cgroup, Controller::Freezer), Some(freezer.as_path()));
        assert_eq!(dir_of(&cgroup, Controller::Cpuacct), None);
        assert_eq!(dir_of(&cgroup, Controller::Cpuset), None);
        let nearest = cgroup.nearest_dir(Controller::Cpuset).expect("an ancestor");
        assert_eq!(nearest.path, host.at("cpuset/slurm"));
        assert_eq!(
            nearest.ancestors().collect::<Vec<_>>(),
            [host.at("cpuset/slurm"), host.at("cpuset")]
        );
    }
}

#[test]
fn v1_job_without_memory_is_named_by_its_freezer() {
    let host = FakeHost::v1().dir(&format!("freezer{JOB}"));
    let cgroup = host.cgroup(JOB);
    assert_eq!(cgroup.path(), host.at("freezer/slurm/uid_0/job_1"));
    assert_eq!(dir_of(&cgroup, Controller::Memory), None);
}

#[test]
fn on_v2_a_cgroup_can_be_without_a_controller() {
    let host = FakeHost::v2()
        .file("unified/a/cgroup.controllers", "cpu memory\n")
        .file("unified/a/b/cgroup.controllers", "cpu\n")
        .dir("unified/a/b/c");
    let cgroup = host.cgroup("/a/b");
    assert_eq!(cgroup.path(), host.at("unified/a/b"));
    assert_eq!(cgroup.dir(Controller::Memory), None);
    let limits = cgroup.nearest_dir(Controller::Memory).map(|dir| &dir.path);
    assert_eq!(limits, Some(&host.at("unified/a")));
    for controller in [Controller::Cpu, Controller::Cpuacct, Controller::Freezer] {
        assert!(cgroup.dir(controller).is_some(), "{controller:?}");
    }
}

#[test]
fn v2_has_everything_in_one_directory() {
    let host = FakeHost::v2().dir("unified/system.slice/x");
    let cgroup = host.cgroup("/system.slice/x");
    let path = host.at("unified/system.slice/x");
    assert_eq!((cgroup.path(), cgroup.version()), (path.as_path(), Version::V2));
    for controller in [
        Controller::Memory,
        Controller::Cpuacct,
        Controller::Freezer,
        Controller::Cpuset,
    ] {
        assert_eq!(
            dir_of(&cgroup, controller),
            Some(path.as_path()),
            "{controller:?}"
        );
    }
    assert_eq!(dir_of(&cgroup, Controller::Hugetlb), None);
}

#[test]
fn hybrid_counts_memory_where_the_controller_is() {
    let v1 = FakeHost::v1().unified("hugetlb").hierarchies();
    assert_eq!(v1.version_of(Controller::Memory), Some(Version::V1));
    assert_eq!(v1.version_of(Controller::Cpuacct), Some(Version::V1));
    assert_eq!(v1.version_of(Controller::Hugetlb), Some(Version::V2));
    let v2 = FakeHost::new()
        .mount("cpu", "cpu,cpuacct", "/")
        .unified("memory")
        .hierarchies();
    assert_eq!(v2.version_of(Controller::Memory), Some(Version::V2));
    assert_eq!(v2.version_of(Controller::Cpuacct), Some(Version::V1));
    let none = FakeHost::new().unified("").hierarchies();
    assert_eq!(none.version_of(Controller::Memory), None);
    assert_eq!(none.version_of(Controller::Cpuacct), Some(Version::V2));
}

#[test]
fn the_root_is_a_cgroup_too() {
    let host = FakeHost::v1();
    assert_eq!(host.cgroup("/").path(), host.at("memory"));
    assert_eq!(
        host.cgroup(host.at("cpuset").to_str().expect("UTF-8")).path(),
        host.at("memory")
    );
}

#[test]
fn links_and_dots_are_followed_and_do_not_lead_out() {
    let host = FakeHost::v1().dir(&format!("memory{JOB}")).dir("elsewhere");
    symlink(host.at("memory/slurm"), host.at("link")).expect("a link");
    let by_link = host.cgroup(host.at("link/uid_0/../uid_0/job_1").to_str().expect("UTF-8"));
    assert_eq!(by_link.path(), host.at("memory/slurm/uid_0/job_1"));
    assert_eq!(host.cgroup("/slurm/uid_0/../uid_0/job_1").path(), by_link.path());
    let error = host
        .hierarchies()
        .cgroup_at(Path::new("/../elsewhere"))
        .expect_err("it leads out");
    assert!(matches!(error, CgroupError::Gone { .. }), "{error}");
}

#[test]
fn what_is_no_cgroup_is_told_apart() {
    let host = FakeHost::v1().file("memory/a/memory.stat", "").dir("plain");
    let at = |path: &Path| host.hierarchies().cgroup_at(path).expect_err("no cgroup");
    for path in ["plain", "memory/a/memory.stat"] {
        let error = at(&host.at(path));
        assert!(matches!(error, CgroupError::NotACgroup { .. }), "{path}: {error}");
    }
    for path in [
        "",
        "memory/b",
        "memory/a/memory.stat/x",
        "nul\0byte",
        "x\u{1b}[31m",
    ] {
        let error = at(&host.at("memory").join(path).join("y"));
        assert!(matches!(error, CgroupError::Gone { .. }), "{path}: {error}");
        assert!(!error.to_string().contains('\u{1b}'), "{error}");
    }
}

#[test]
fn nothing_mounted_is_told() {
    assert!(matches!(Hierarchies::parse(b""), Err(CgroupError::NotMounted)));
}

#[test]
fn a_process_names_its_cgroup() {
    let host = FakeHost::v1()
        .dir("memory/a/b")
        .dir("cpuacct/a/b")
        .dir("cpuset/a");
    let all = members(&[
        (&[Controller::Memory], "/a/b"),
        (&[Controller::Cpuacct], "/a/b"),
        (&[Controller::Cpuset], "/a"),
        (&[Controller::Freezer], "/"),
    ]);
    let cgroup = host.hierarchies().cgroup_of_members(1, &all).expect("a cgroup");
    assert_eq!(cgroup.path(), host.at("memory/a/b"));
    assert_eq!(
        dir_of(&cgroup, Controller::Cpuacct),
        Some(host.at("cpuacct/a/b").as_path())
    );
    assert_eq!(dir_of(&cgroup, Controller::Cpuset), None);
    assert_eq!(
        cgroup.nearest_dir(Controller::Cpuset).expect("its limits").path,
        host.at("cpuset/a")
    );
}

#[test]
fn a_process_in_the_root_of_memory_is_named_by_a_cgroup_of_its_own() {
    let host = FakeHost::v1().dir("freezer/job");
    let all = members(&[(&[Controller::Memory], "/"), (&[Controller::Freezer], "/job")]);
    let cgroup = host.hierarchies().cgroup_of_members(1, &all).expect("a cgroup");
    assert_eq!(cgroup.path(), host.at("freezer/job"));
    assert_eq!(dir_of(&cgroup, Controller::Memory), None);
    let root = host
        .hierarchies()
        .cgroup_of_members(1, &members(&[(&[Controller::Memory], "/")]));
    assert_eq!(root.expect("the root").path(), host.at("memory"));
}

#[test]
fn a_container_sees_its_part() {
    let host = FakeHost::new()
        .mount("memory", "memory", "/docker/x")
        .dir("memory/a");
    assert_eq!(host.cgroup("/docker/x/a").path(), host.at("memory/a"));
    let pid = |inside| {
        host.hierarchies()
            .cgroup_of_members(7, &members(&[(&[Controller::Memory], inside)]))
    };
    assert_eq!(pid("/docker/x/a").expect("a cgroup").path(), host.at("memory/a"));
    assert!(matches!(pid("/docker/x/gone"), Err(CgroupError::Gone { .. })));
    assert!(matches!(
        pid("/docker/y"),
        Err(CgroupError::NotVisible { pid: 7, .. })
    ));
    assert!(matches!(
        pid("/docker/x/../y"),
        Err(CgroupError::NotVisible { .. })
    ));
}

#[test]
fn processes_and_cgroups_below_are_found() {
    let host = FakeHost::v1()
        .file("memory/a/cgroup.procs", "")
        .file("memory/a/b/cgroup.procs", "30\n4\n")
        .file("memory/a/b/c/cgroup.procs", "5\n4\n0\n");
    let cgroup = host.cgroup("/a");
    assert_eq!(cgroup.procs().expect("processes"), [4, 5, 30]);
    assert!(cgroup.is_populated().expect("populated"));
    let below: Vec<_> = cgroup
        .descendants()
        .expect("cgroups")
        .into_iter()
        .map(|below| below.path)
        .collect();
    assert_eq!(below, [host.at("memory/a/b"), host.at("memory/a/b/c")]);
    assert!(!host.cgroup("/").procs().expect("processes").is_empty());
}

#[test]
fn v2_tells_whether_it_is_populated() {
    let host = FakeHost::v2().file("unified/a/cgroup.events", "populated 1\nfrozen 0\n");
    assert!(host.cgroup("/a").is_populated().expect("populated"));
    let host = host
        .file("unified/a/cgroup.events", "populated 0\nfrozen 0\n")
        .file("unified/a/cgroup.procs", "9\n");
    assert!(!host.cgroup("/a").is_populated().expect("not populated"));
}

#[test]
fn a_cgroup_made_anew_under_the_same_name_is_another() {
    let host = FakeHost::v1().dir("memory/a");
    let cgroup = host.cgroup("/a");
    assert!(cgroup.exists());
    fs::rename(host.at("memory/a"), host.at("memory/old")).expect("moved");
    assert!(!cgroup.exists());
    let host = host.file("memory/a/cgroup.procs", "1\n");
    assert!(!cgroup.exists());
    assert!(!cgroup.is_populated().expect("it has ended"));
    assert_eq!(cgroup.procs().expect("none"), [0_u32; 0]);
    drop(host);
}
