//! Every answer, on hosts of plain directories.

mod anywhere;
mod processes;

use std::path::PathBuf;

use super::*;
use crate::job::cgroup::fake::FakeHost;
use crate::job::slurm::{ArrayIds, HetIds, State};

const SLUID: &str = "sFNDM35NQ39R00";

/// A host, and who asks on it.
struct Scene {
    host: FakeHost,
    caller: Caller,
    wanted_node: Option<&'static str>,
}

impl Scene {
    /// Jobs of user 1001 in these directories, each with a process.
    fn new(jobs: &[&str]) -> Self {
        let host = jobs.iter().fold(FakeHost::v1(), |host, job| {
            host.file(&format!("memory/{job}/step_batch/cgroup.procs"), "9\n")
        });
        Self {
            host,
            caller: Caller {
                uid: 1001,
                ..Caller::default()
            },
            wanted_node: None,
        }
    }

    fn by(mut self, uid: u32) -> Self {
        self.caller.uid = uid;
        self
    }

    /// The environment of process `pid`, which is in the directory `job`.
    fn process(mut self, job: &str, pid: u32, environ: &[impl AsRef<str>]) -> Self {
        let environ: Vec<_> = environ.iter().map(AsRef::as_ref).collect();
        self.host = self
            .host
            .file(
                &format!("memory/{job}/step_batch/cgroup.procs"),
                &format!("{pid}\n"),
            )
            .file(&format!("proc/{pid}/environ"), &environ.join("\0"));
        self
    }

    fn find(&self, id: &str, asked: Result<&[JobFacts], &Unknown>) -> Found {
        let id = id.parse().expect(id);
        let question = Question {
            id: &id,
            wanted_node: self.wanted_node,
            asked,
            caller: &self.caller,
        };
        let places = self.host.hierarchies().slurm_jobs().expect("jobs");
        among(&places, &question, &self.host.at("proc")).expect("readable")
    }

    /// What is found, in short.
    fn told(&self, id: &str, asked: Result<&[JobFacts], &Unknown>) -> String {
        let root = self.host.at("memory");
        match self.find(id, asked) {
            Found::Here(here) => {
                let path: PathBuf = here
                    .place
                    .cgroup
                    .path()
                    .strip_prefix(root)
                    .expect("of the host")
                    .into();
                let step = here.step.map(|step| format!(".{step}")).unwrap_or_default();
                format!("{}{step} in {}", here.shown, path.display())
            }
            other => match other.or_refuse(&id.parse().expect(id)) {
                Err(error) => format!("{}: {error}", error.exit_code()),
                Ok(here) => panic!("{here:?}"),
            },
        }
    }
}

fn facts(job_id: u32, state: &str) -> JobFacts {
    JobFacts {
        job_id,
        uid: Some(1001),
        user: Some("alice".into()),
        state: State::of([state.to_owned()]),
        nodes: (state == "RUNNING").then(|| vec!["cn01".to_owned(), "cn02".to_owned()]),
        ..JobFacts::default()
    }
}

fn task(job_id: u32, array: u32, tasks: &str, state: &str) -> JobFacts {
    JobFacts {
        array: Some(ArrayIds {
            job: array,
            tasks: tasks.parse().expect("tasks"),
        }),
        ..facts(job_id, state)
    }
}

fn component(job_id: u32, leader: u32, offset: u32) -> JobFacts {
    JobFacts {
        het: Some(HetIds { leader, offset }),
        ..facts(job_id, "RUNNING")
    }
}

fn silent() -> Unknown {
    Unknown::Absent { program: "scontrol" }
}

#[test]
fn words_of_another_users_job_are_not_taken() {
    let scene = Scene::new(&["slurm/uid_1001/job_7"]);
    let of = |uid| JobFacts {
        job_id: 7,
        uid: Some(uid),
        ..JobFacts::default()
    };
    for (uid, is_taken) in [(1001, true), (1002, false)] {
        let Found::Here(here) = scene.find("7", Ok(&[of(uid)])) else {
            panic!("it is here");
        };
        assert_eq!(here.facts.is_some(), is_taken, "{uid}");
    }
}

#[test]
fn one_job_is_found_by_its_raw_id() {
    let scene = Scene::new(&["slurm/uid_1001/job_7", "slurm/uid_1001/job_77"]);
    let here = "7 in slurm/uid_1001/job_7";
    assert_eq!(scene.told("7", Ok(&[facts(7, "RUNNING")])), here);
    assert_eq!(scene.told("7", Err(&silent())), here);
    // Slurm has forgotten it, or is another cluster's: the cgroup is there all the same.
    assert_eq!(scene.told("7", Ok(&[])), here);
    assert_eq!(
        scene.told("7.batch", Err(&silent())),
        "7.batch in slurm/uid_1001/job_7"
    );
    assert_eq!(
        scene.told("7.0", Err(&silent())),
        "67: no job 7.0 to measure: the job has no such step here; it has batch"
    );
}

#[test]
fn tasks_of_an_array_are_found_by_what_slurm_says() {
    let scene = Scene::new(&[
        "slurm/uid_1001/job_4",
        "slurm/uid_1001/job_19",
        "slurm/uid_1001/job_20",
    ]);
    let array = [
        task(4, 4, "2", "RUNNING"),
        task(19, 4, "13", "RUNNING"),
        task(21, 4, "3", "RUNNING"),
    ];
    assert_eq!(
        scene.told("4_13", Ok(&array[1..2])),
        "4_13 in slurm/uid_1001/job_19"
    );
    assert_eq!(scene.told("4_2", Ok(&array[..1])), "4_2 in slurm/uid_1001/job_4");
    assert_eq!(
        scene.told("19", Ok(&array[1..2])),
        "4_13 in slurm/uid_1001/job_19"
    );
    assert_eq!(
        scene.told("4", Ok(&array)),
        "2: 4 means several jobs here, name one of them:\n  4_2\n  4_13"
    );
    assert_eq!(
        scene.told("4.batch", Ok(&array)),
        "2: 4.batch means several jobs here, name one of them:\n  4_2.batch\n  4_13.batch"
    );
    assert_eq!(
        scene.told("4_[3-13]", Ok(&array[1..])),
        "4_13 in slurm/uid_1001/job_19"
    );
    assert_eq!(
        scene.told("4_3", Ok(&array[2..])),
        "68: job 4_3 does not run on this host but on cn01, cn02: \
         `srun --overlap --jobid=21 -w cn01 sw-bpf attach 21`"
    );
}

#[test]
fn a_component_is_found_and_the_leader_means_all() {
    let scene = Scene::new(&["slurm/uid_1001/job_2", "slurm/uid_1001/job_3"]);
    let both = [component(2, 2, 0), component(3, 2, 1)];
    assert_eq!(scene.told("2+1", Ok(&both[1..])), "2+1 in slurm/uid_1001/job_3");
    assert_eq!(
        scene.told("2", Ok(&both)),
        "2: 2 means several jobs here, name one of them:\n  2+0\n  2+1"
    );
    let scene = Scene::new(&["slurm/uid_1001/job_3"]);
    assert_eq!(scene.told("2", Ok(&both)), "2+1 in slurm/uid_1001/job_3");
}

#[test]
fn one_job_under_two_slurmd_is_told_apart_by_node() {
    let mut scene = Scene::new(&["slurm_n1/uid_1001/job_7", "slurm_n2/uid_1001/job_7"]);
    let both = [facts(7, "RUNNING")];
    assert_eq!(
        scene.told("7", Ok(&both)),
        "2: job 7 is on several nodes of this host, name one of them:\n  7 --node n1\n  7 --node n2"
    );
    scene.caller.node = Some("n2".into());
    assert!(
        scene.told("7", Ok(&both)).starts_with("2: "),
        "the caller is not in it"
    );
    scene.caller.job = Some(JobDirName::Id(7));
    assert_eq!(scene.told("7", Ok(&both)), "7 in slurm_n2/uid_1001/job_7");
    scene.wanted_node = Some("n1");
    assert_eq!(scene.told("7", Ok(&both)), "7 in slurm_n1/uid_1001/job_7");
    scene.wanted_node = Some("n3");
    let elsewhere = scene.told("7", Ok(&both));
    assert!(elsewhere.starts_with("68: "), "{elsewhere}");
}

#[test]
fn only_the_user_and_root_may_look() {
    let scene = Scene::new(&["slurm/uid_1001/job_7"]).by(5);
    let known = [facts(7, "RUNNING")];
    let refused = "77: job 7 is of alice: only its user and root may measure it, and where the agent runs, who is in its --admin-group";
    assert_eq!(scene.told("7", Ok(&known)), refused);
    assert_eq!(
        scene.told("7", Err(&silent())),
        refused.replace("alice", "uid 1001")
    );
    let away = Scene::new(&[]).by(5);
    assert_eq!(away.told("7", Ok(&known)), refused);
    assert_eq!(away.told("7", Ok(&[facts(7, "PENDING")])), refused);
    let root = Scene::new(&["slurm/uid_1001/job_7"]).by(0);
    assert_eq!(root.told("7", Ok(&known)), "7 in slurm/uid_1001/job_7");
    // Whose job it is, nothing says.
    let mut host = Scene::new(&[]).by(5);
    host.host = FakeHost::v2().dir("unified/system.slice/slurmstepd.scope/job_7");
    assert!(
        host.told("7", Err(&silent()))
            .starts_with("77: job 7 is of another user")
    );
}

#[test]
fn what_is_not_here_is_said_with_its_code() {
    let scene = Scene::new(&["slurm/uid_1001/job_1"]);
    let mut pending = facts(7, "PENDING");
    pending.reason = Some("Prio\u{1b}rity\n".into());
    assert_eq!(
        scene.told("7", Ok(&[pending])),
        "65: job 7 has not started (Prio?rity?): `squeue --start -j 7` tells when Slurm expects it to"
    );
    let mut ended = facts(7, "TIMEOUT");
    ended.end = "2026-11-30T07:57:36Z".parse().ok();
    assert_eq!(
        scene.told("7", Ok(&[ended])),
        "66: job 7 has ended (TIMEOUT, 2026-11-30T07:57:36Z): `sacct -j 7` has what Slurm recorded of it"
    );
    assert!(
        scene
            .told("7", Ok(&[]))
            .starts_with("67: no job 7 to measure: Slurm does not know it")
    );
    assert!(scene.told("7", Ok(&[facts(7, "NEW_WORD")])).starts_with("67: "));
    assert!(scene.told("7", Ok(&[facts(7, "RUNNING")])).starts_with("68: "));
    let waits = [task(4, 4, "2-6%1", "PENDING"), task(19, 4, "1", "COMPLETED")];
    assert!(scene.told("4", Ok(&waits)).starts_with("65: "));
}

#[test]
fn a_job_that_should_be_here_and_has_no_cgroup_is_not_elsewhere() {
    let mut scene = Scene::new(&[]);
    let known = [facts(7, "RUNNING")];
    for (node, host) in [(Some("cn02"), None), (None, Some("cn01"))] {
        scene.caller.node = node.map(Into::into);
        scene.caller.host = host.map(Into::into);
        let told = scene.told("7", Ok(&known));
        assert!(
            told.starts_with("67: ") && told.contains("has no cgroup"),
            "{told}"
        );
    }
    let scene = Scene::new(&["slurm_cn01/uid_1001/job_1"]);
    assert!(scene.told("7", Ok(&known)).starts_with("67: "));
}

#[test]
fn what_is_left_of_a_job_is_not_the_job() {
    let scene = Scene::new(&[]).process("slurm/uid_1001/job_7", 1, &[""]);
    let left = Scene {
        host: scene
            .host
            .file("memory/slurm/uid_1001/job_7/step_batch/cgroup.procs", ""),
        ..scene
    };
    assert!(left.told("7", Ok(&[facts(7, "COMPLETED")])).starts_with("66: "));
    assert!(left.told("7", Ok(&[facts(7, "PENDING")])).starts_with("65: "));
    // About to start, or nobody says otherwise.
    assert_eq!(
        left.told("7", Ok(&[facts(7, "RUNNING")])),
        "7 in slurm/uid_1001/job_7"
    );
    assert_eq!(left.told("7", Err(&silent())), "7 in slurm/uid_1001/job_7");
    let live = Scene::new(&["slurm/uid_1001/job_7"]);
    assert_eq!(
        live.told("7", Ok(&[facts(7, "COMPLETED")])),
        "7 in slurm/uid_1001/job_7"
    );
}

#[test]
fn long_lists_are_cut() {
    let mut known = facts(7, "RUNNING");
    known.nodes = Some((1..=100).map(|node| format!("cn{node}")).collect());
    let told = Scene::new(&[]).told("7", Ok(&[known]));
    assert!(told.contains("cn8 and 92 more:"), "{told}");
    let tasks: Vec<_> = (1..=20)
        .map(|n| task(100 + n, 4, &n.to_string(), "RUNNING"))
        .collect();
    let told = Scene::new(&[]).told("4", Ok(&tasks));
    assert!(told.contains("cn01 (4_8) and 12 more:"), "{told}");
}

#[test]
fn the_caller_is_who_runs_the_test() {
    let scene = Scene::new(&[]);
    let caller = Caller::current(&scene.host.hierarchies(), None);
    assert_eq!(caller.uid, rustix::process::geteuid().as_raw());
    assert!(
        caller
            .host
            .is_some_and(|host| !host.is_empty() && !host.contains('.'))
    );
}

/// On version 2 it is nowhere else than where it went.
#[test]
fn the_caller_is_in_the_job_that_it_has_left() {
    let job = "unified/system.slice/cn01_slurmstepd.scope/job_7";
    let host = FakeHost::v2().dir(&format!("{job}/step_0/user/task_0"));
    for left in [host.at(job), host.at(job).join("step_0")] {
        let caller = Caller::current(&host.hierarchies(), Some(&left));
        assert_eq!(caller.job, Some(JobDirName::Id(7)), "{}", left.display());
    }
    let caller = Caller::current(&host.hierarchies(), Some(&host.at("unified")));
    assert_eq!(caller.job, None);
}
