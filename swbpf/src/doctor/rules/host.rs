//! What else there is on this host.

use crate::doctor::diagnosis::{Check, Topic, Verdict};
use crate::doctor::facts::{Agent, Bpf, Gpus, Library, Machine, Met};
use crate::out::units::{bytes, duration};
use crate::wire;

/// Where bpffs is mounted by custom, and the agent keeps its programs.
const BPFFS: &str = "/sys/fs/bpf";

/// Clocks that are read through a device, which takes microseconds, or that only tick.
const SLOW_CLOCKS: [&str; 4] = ["acpi_pm", "hpet", "jiffies", "refined-jiffies"];

pub fn gpus(gpus: &Gpus) -> Check {
    const NOT_READ: &str = "this version of sw-bpf does not read GPUs";
    let told = |verdict, found: String| Check::new(Topic::Gpus, verdict, found, NOT_READ);
    let files = match &gpus.device_files {
        Ok(0) => "no device file of an NVIDIA GPU".to_owned(),
        Ok(1) => "1 device file of an NVIDIA GPU".to_owned(),
        Ok(count) => format!("{count} device files of NVIDIA GPUs"),
        Err(reason) => reason.clone(),
    };
    let has_gpu = gpus.device_files.as_ref().is_ok_and(|count| *count > 0);
    match &gpus.library {
        Library::Absent if has_gpu => told(Verdict::Degraded, format!("{files}, and no libnvidia-ml.so.1"))
            .change("install the driver's library NVML (libnvidia-ml1)"),
        Library::Absent => told(Verdict::Ok, format!("{files}, no libnvidia-ml.so.1")),
        Library::Unusable(reason) => told(
            Verdict::Degraded,
            format!("{files}; libnvidia-ml.so.1 cannot be used: {reason}"),
        )
        .change("install the driver's library NVML (libnvidia-ml1) anew, of the driver's own version"),
        Library::Idle(reason) if has_gpu => told(
            Verdict::Degraded,
            format!("{files}; libnvidia-ml.so.1 says: {reason}"),
        )
        .change("see that `nvidia-smi` answers"),
        Library::Idle(reason) => told(Verdict::Ok, format!("{files}; libnvidia-ml.so.1 says: {reason}")),
        Library::Answers { driver, names } => {
            let names = if names.is_empty() {
                "no GPU".to_owned()
            } else {
                names.join(", ")
            };
            told(Verdict::Ok, format!("{names}; driver {driver}"))
        }
    }
}

pub fn bpffs(bpf: &Bpf) -> Check {
    let found = match &bpf.file_systems {
        Ok(points) if points.is_empty() => "not mounted".to_owned(),
        Ok(points) => {
            let points: Vec<_> = points.iter().map(|point| point.display().to_string()).collect();
            format!("mounted on {}", points.join(", "))
        }
        Err(reason) => reason.clone(),
    };
    let means = match &bpf.file_systems {
        Ok(points) if points.is_empty() => format!(
            "`sw-bpf agent` cannot start: it keeps its programs there; `mount -t bpf bpf {BPFFS}`. All else does without"
        ),
        Ok(points) if !points.iter().any(|point| point.as_os_str() == BPFFS) => format!(
            "`sw-bpf agent` cannot start without a `--pin-dir` in it: it keeps its programs in {BPFFS}; \
             `mount -t bpf bpf {BPFFS}`. All else does without"
        ),
        _ => "`sw-bpf agent` keeps its programs there: counting goes on when it ends".to_owned(),
    };
    Check::new(Topic::Bpffs, Verdict::Ok, found, means)
}

pub fn agent(agent: &Agent) -> Check {
    const NONE: &str = "each command measures for itself, and no job is recorded; `sw-bpf agent` records all from their \
                        birth (docs/agent.md)";
    const BESIDE: &str = "each command measures for itself; it is not known whether jobs are recorded";
    let at = agent.socket.display();
    let told = |verdict, found: String, means: &str| Check::new(Topic::Agent, verdict, found, means);
    let degraded =
        |found: String, means: &str, change: &str| told(Verdict::Degraded, found, means).change(change);
    match &agent.met {
        Ok(Met::Agent) => told(
            Verdict::Ok,
            format!("it answers at {at}, version {} of its requests", wire::VERSION),
            "jobs are recorded from their birth, and their users see them without a privilege",
        ),
        Ok(Met::Nothing) => told(Verdict::Ok, format!("none: there is no {at}"), NONE),
        Ok(Met::NoSocket) => told(Verdict::Ok, format!("none: {at} is no socket"), NONE),
        Ok(Met::Nobody) => degraded(
            format!("none: nobody listens at {at}, its agent has ended"),
            "each command measures for itself; records go on when the next agent starts",
            "start it: `systemctl start sw-bpf-agent`, or `sw-bpf agent`",
        ),
        Ok(Met::OtherVersion) => degraded(
            format!("at {at}, of another version"),
            "it records jobs; each command of this version measures for itself",
            "use the sw-bpf that it was started from, or install this one for it and restart it: \
             `systemctl restart sw-bpf-agent`",
        ),
        Ok(Met::Silent) => degraded(
            format!("who listens at {at} does not answer within 1 s"),
            BESIDE,
            "see what it does (`journalctl -u sw-bpf-agent`), and restart it: `systemctl restart sw-bpf-agent`",
        ),
        Ok(Met::Odd) => degraded(
            format!("who listens at {at} is no agent of sw-bpf"),
            BESIDE,
            "see who it is (`ss -xlp`), end it, and start the agent: `systemctl start sw-bpf-agent`, or `sw-bpf agent`",
        ),
        Err(reason) => told(Verdict::Unknown, reason.clone(), BESIDE),
    }
}

pub fn preemption(machine: &Machine) -> Check {
    let told = |verdict, found: String, means: &str| Check::new(Topic::Preemption, verdict, found, means);
    let has = |word| machine.build.split_ascii_whitespace().any(|found| found == word);
    if machine.is_real_time {
        return told(
            Verdict::Degraded,
            "PREEMPT_RT".to_owned(),
            "the kernel programs can be interrupted in more places: `loss` counts what they do not see then, and \
             error_bound_bytes is wider",
        )
        .change("for exact numbers, a kernel without PREEMPT_RT");
    }
    let found = match (&machine.preemption, has("PREEMPT_DYNAMIC"), has("PREEMPT")) {
        (Ok(model), true, _) => format!("PREEMPT_DYNAMIC, {model}"),
        (Err(_), true, _) => "PREEMPT_DYNAMIC".to_owned(),
        (_, _, true) => "PREEMPT".to_owned(),
        _ => "none, or voluntary".to_owned(),
    };
    told(
        Verdict::Ok,
        found,
        "not PREEMPT_RT: the programs on memory are not interrupted by tasks",
    )
}

pub fn cpus(machine: &Machine) -> Check {
    let found = match machine.cpus {
        1 => "1 CPU".to_owned(),
        cpus => format!("{cpus} CPUs"),
    };
    match machine.batch_bound_bytes {
        None => Check::new(Topic::Cpus, Verdict::Ok, found, "nothing is counted here"),
        Some(0) => Check::new(
            Topic::Cpus,
            Verdict::Ok,
            found,
            "each change of memory is added at once",
        ),
        // No fault of the host, and nothing to change.
        Some(bound) => Check::new(
            Topic::Cpus,
            Verdict::Ok,
            found,
            format!(
                "each keeps some pages to itself before it adds them: a peak can be up to {} higher than told, and \
                 error_bound_bytes says so",
                bytes(bound)
            ),
        ),
    }
}

pub fn pages(machine: &Machine) -> Check {
    Check::new(
        Topic::Pages,
        Verdict::Ok,
        format!("of {}", bytes(machine.page_bytes)),
        "memory is counted in whole pages",
    )
}

pub fn clock(machine: &Machine) -> Check {
    let tick = duration(machine.tick_ns as f64 / 1e9);
    let moment = format!(
        "the moment of a peak is told to {}",
        duration(2.0 * machine.tick_ns as f64 / 1e9)
    );
    match &machine.clock {
        Ok(clock) if SLOW_CLOCKS.contains(&clock.as_str()) => Check::new(
            Topic::Clock,
            Verdict::Degraded,
            format!("{clock}, a tick each {tick}"),
            format!("{moment}; reading this clock is slow or coarse, and each switch of a task reads it"),
        )
        .change("see in the kernel's log why it does not use a better clock source"),
        Ok(clock) => Check::new(
            Topic::Clock,
            Verdict::Ok,
            format!("{clock}, a tick each {tick}"),
            moment,
        ),
        Err(reason) => Check::new(
            Topic::Clock,
            Verdict::Ok,
            format!("a tick each {tick}; its source: {reason}"),
            moment,
        ),
    }
}
