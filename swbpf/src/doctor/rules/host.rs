//! What else there is on this host.

use crate::doctor::diagnosis::{Check, Topic, Verdict};
use crate::doctor::facts::{AtPath, Bpf, Gpus, Known, Library, Machine};
use crate::doctor::gather::AGENT_SOCKET;
use crate::out::units::{bytes, duration};

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
    let means = "this version of sw-bpf does without: its programs end with it";
    Check::new(Topic::Bpffs, Verdict::Ok, found, means)
}

pub fn agent(agent: &Known<AtPath>) -> Check {
    let found = match agent {
        Ok(AtPath::Nothing) => format!("none: there is no {AGENT_SOCKET}"),
        Ok(AtPath::Socket) => format!("a socket in {AGENT_SOCKET}"),
        Ok(AtPath::Other) => format!("{AGENT_SOCKET} is no socket"),
        Err(reason) => reason.clone(),
    };
    let means = "this version of sw-bpf asks none: each measures by itself";
    Check::new(Topic::Agent, Verdict::Ok, found, means)
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
