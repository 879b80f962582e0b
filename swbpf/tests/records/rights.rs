//! Who sees what.

use std::os::unix::process::CommandExt;
use std::process::Output;

use super::{AFTER, Scene, ended, snapshots, stderr};

/// Users of no other meaning.
const ALICE: u32 = 64_001;
const BOB: u32 = 64_002;

/// A record of alice's, in a directory that others can go through.
fn scene() -> Option<Scene> {
    use std::os::unix::fs::PermissionsExt;
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can be another user");
        return None;
    }
    let scene = Scene::new();
    let outer = scene.temp.path();
    std::fs::set_permissions(outer, std::fs::Permissions::from_mode(0o711)).expect("changed");
    for id in [7, 8] {
        let record = scene.record(&id.to_string(), &[ended(id, AFTER)]);
        record.let_read(ALICE).expect("an access control list");
    }
    scene.record("77", &[snapshots::job()]);
    Some(scene)
}

fn ask_as(scene: &Scene, uid: u32, arguments: &[&str]) -> Output {
    // The program itself may be where others cannot go.
    let program = scene.temp.path().join("sw-bpf");
    if !program.exists() {
        std::fs::copy(env!("CARGO_BIN_EXE_sw-bpf"), &program).expect("copied");
    }
    let mut command = std::process::Command::new(program);
    command
        .args(arguments)
        .arg("--records")
        .arg(scene.temp.path().join("jobs"))
        .env("PATH", scene.temp.path())
        .current_dir("/");
    command.uid(uid).gid(uid).output().expect("sw-bpf starts")
}

#[test]
fn a_user_is_shown_his_own_records_and_no_others() {
    let Some(scene) = scene() else { return };
    let own = ask_as(&scene, ALICE, &["show", "7"]);
    assert!(own.status.success(), "{}", stderr(&own));
    let other = ask_as(&scene, BOB, &["show", "7"]);
    assert_eq!(other.status.code(), Some(77), "{}", stderr(&other));
    assert!(stderr(&other).contains("only the job's user and root may"));
    assert!(other.stdout.is_empty());
    // By another id than the one that names it, all would have to be searched.
    let searched = ask_as(&scene, ALICE, &["show", "70_7"]);
    assert_eq!(searched.status.code(), Some(67));
    assert!(
        stderr(&searched).contains("sacct -X -o JobIDRaw -j 70_7"),
        "{}",
        stderr(&searched)
    );
}

#[test]
fn who_may_not_list_is_told_what_to_do() {
    let Some(scene) = scene() else { return };
    let output = ask_as(&scene, ALICE, &["list"]);
    assert_eq!(output.status.code(), Some(77), "{}", stderr(&output));
    assert!(stderr(&output).contains("sw-bpf show JOB"), "{}", stderr(&output));
}

#[test]
fn root_is_told_whose_each_is() {
    let Some(scene) = scene() else { return };
    let value: serde_json::Value =
        serde_json::from_str(&scene.answer(&["list", "--json", "--user", &ALICE.to_string()])).expect("JSON");
    let jobs = value["jobs"].as_array().expect("jobs");
    let uids: Vec<_> = jobs.iter().map(|job| job["uid"].as_u64()).collect();
    assert_eq!(uids, [Some(ALICE.into()); 2]);
}

/// What another process asks for on behalf of a user, as it runs as root.
#[test]
fn on_behalf_of_a_user_no_other_record_is_told() {
    use swbpf::record::{Filter, Records, View, find, list};
    let Some(scene) = scene() else { return };
    let records = Records::open(&scene.temp.path().join("jobs")).expect("there");
    let told = |user| {
        let view = View {
            user: Some(user),
            running: None,
        };
        let entries = list(&records, &Filter::default(), view).expect("a list");
        let mut names: Vec<_> = entries.into_iter().map(|entry| entry.record).collect();
        names.sort_unstable();
        names
    };
    assert_eq!(told(ALICE), ["7.jsonl", "8.jsonl"]);
    assert_eq!(told(BOB), [""; 0]);
    assert_eq!(told(0), ["7.jsonl", "77.jsonl", "8.jsonl"]);
    let find_as = |id: &str, user| find(&records, &id.parse().expect("an id"), 0, Some(user));
    assert!(find_as("7", ALICE).is_ok());
    // What is another's, and what is no plain file, is as what is not there.
    let jobs = scene.temp.path().join("jobs");
    std::fs::create_dir(jobs.join("9.jsonl")).expect("made");
    std::fs::hard_link(jobs.join("8.jsonl"), jobs.join("10.jsonl")).expect("linked");
    let without = |id: &str| {
        find_as(id, BOB)
            .expect_err("not his")
            .to_string()
            .replace(id, "ID")
    };
    for id in ["7", "9", "10"] {
        assert_eq!(find_as(id, BOB).expect_err("not his").exit_code(), 67);
        assert_eq!(without(id), without("4711"));
    }
    let of_root = find(&records, &"10".parse().expect("an id"), 0, None);
    let told = of_root.expect_err("no plain file").to_string();
    assert!(told.contains("it is no plain file"), "{told}");
    assert_eq!(find_as("70_7", ALICE).expect_err("not hers").exit_code(), 67);
}
