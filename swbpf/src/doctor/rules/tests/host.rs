//! What else there is on a host.

use super::*;

#[test]
fn a_gpu_needs_the_library_and_a_library_that_is_spoilt_is_told() {
    let gpus = |files: usize, library| {
        told(Topic::Gpus, move |facts| {
            facts.gpus = Gpus {
                device_files: Ok(files),
                library,
            };
        })
    };
    let unusable = || Library::Unusable("invalid ELF header".into());
    let idle = || Library::Idle("driver not loaded".into());
    assert_told(&gpus(0, Library::Absent), Verdict::Ok, "no device file", None);
    assert_told(
        &gpus(2, Library::Absent),
        Verdict::Degraded,
        "2 device files",
        Some("NVML"),
    );
    assert_told(
        &gpus(0, unusable()),
        Verdict::Degraded,
        "invalid ELF header",
        Some("NVML"),
    );
    assert_told(&gpus(0, idle()), Verdict::Ok, "driver not loaded", None);
    assert_told(
        &gpus(1, idle()),
        Verdict::Degraded,
        "driver not loaded",
        Some("nvidia-smi"),
    );
    let answers = |names: &[&str]| Library::Answers {
        driver: "550.1".into(),
        names: names.iter().map(ToString::to_string).collect(),
    };
    assert_told(
        &gpus(2, answers(&["A", "B"])),
        Verdict::Ok,
        "A, B; driver 550.1",
        None,
    );
    assert_told(&gpus(0, answers(&[])), Verdict::Ok, "no GPU; driver 550.1", None);
}

#[test]
fn without_bpffs_the_agent_alone_cannot_start() {
    let bpffs = |points: Known<Vec<PathBuf>>| told(Topic::Bpffs, |facts| facts.bpf.file_systems = points);
    let check = bpffs(Ok(Vec::new()));
    assert_told(&check, Verdict::Ok, "not mounted", None);
    assert!(
        check.means.contains("`mount -t bpf bpf /sys/fs/bpf`"),
        "{check:?}"
    );
    let check = bpffs(Ok(vec![PathBuf::from("/mnt")]));
    assert_told(&check, Verdict::Ok, "mounted on /mnt", None);
    assert!(check.means.contains("--pin-dir"), "{check:?}");
    let check = bpffs(Ok(vec![PathBuf::from("/mnt"), PathBuf::from("/sys/fs/bpf")]));
    assert_told(&check, Verdict::Ok, "mounted on /mnt, /sys/fs/bpf", None);
    assert!(!check.means.contains("cannot"), "{check:?}");
    assert_told(&bpffs(Err(cannot())), Verdict::Ok, "may not be read", None);
}

#[test]
fn no_agent_is_a_fact_and_one_that_does_not_answer_is_told() {
    let agent = |met: Known<Met>| {
        told(Topic::Agent, |facts| {
            facts.agent.socket = PathBuf::from("/x/agent.sock");
            facts.agent.met = met;
        })
    };
    let answers = agent(Ok(Met::Agent));
    assert_told(&answers, Verdict::Ok, "answers at /x/agent.sock, version 1", None);
    for (met, found) in [
        (Met::Nothing, "there is no /x/agent.sock"),
        (Met::NoSocket, "/x/agent.sock is no socket"),
    ] {
        let check = agent(Ok(met));
        assert_told(&check, Verdict::Ok, found, None);
        assert!(check.means.contains("docs/agent.md"), "{check:?}");
    }
    for (met, found, change) in [
        (Met::Nobody, "nobody listens at /x/agent.sock", "start"),
        (Met::OtherVersion, "another version", "restart"),
        (Met::Silent, "within 1 s", "journalctl"),
        (Met::Odd, "no agent", "ss -xlp"),
    ] {
        assert_told(&agent(Ok(met)), Verdict::Degraded, found, Some(change));
    }
    assert_told(&agent(Err(cannot())), Verdict::Unknown, "may not be read", None);
}

#[test]
fn only_a_real_time_kernel_is_interrupted_in_more_places() {
    let build = |build: &str| told(Topic::Preemption, |facts| facts.machine.build = build.to_owned());
    let check = told(Topic::Preemption, |facts| {
        facts.machine.is_real_time = true;
        facts.machine.build = "#1 SMP PREEMPT_RT 2026".to_owned();
    });
    assert_told(
        &check,
        Verdict::Degraded,
        "PREEMPT_RT",
        Some("without PREEMPT_RT"),
    );
    assert_told(
        &build("#1 SMP PREEMPT_DYNAMIC 2026"),
        Verdict::Ok,
        "PREEMPT_DYNAMIC, voluntary",
        None,
    );
    assert_told(&build("#1 SMP PREEMPT 2026"), Verdict::Ok, "PREEMPT", None);
    assert_told(&build("#1 SMP 2026"), Verdict::Ok, "none, or voluntary", None);
}

#[test]
fn many_cpus_have_a_bound_that_is_told() {
    let check = told(Topic::Cpus, |facts| {
        facts.machine.cpus = 64;
        facts.machine.batch_bound_bytes = Some(64 * 16 * 4096);
    });
    assert_told(&check, Verdict::Ok, "64 CPUs", None);
    assert!(check.means.contains("4.0 MiB"), "{check:?}");
    let check = told(Topic::Cpus, |facts| facts.machine.batch_bound_bytes = None);
    assert_told(&check, Verdict::Ok, "8 CPUs", None);
}

#[test]
fn a_slow_clock_is_told() {
    let check = told(Topic::Clock, |facts| facts.machine.clock = Ok("hpet".into()));
    assert_told(
        &check,
        Verdict::Degraded,
        "hpet, a tick each 4.0 ms",
        Some("clock source"),
    );
    let check = told(Topic::Clock, |facts| facts.machine.clock = Err(cannot()));
    assert_told(&check, Verdict::Ok, "may not be read", None);
    assert!(check.means.contains("8.0 ms"));
}
