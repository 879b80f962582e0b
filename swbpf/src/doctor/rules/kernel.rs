//! Can the kernel count, and will it for this user.

use super::SAMPLED;
use crate::doctor::diagnosis::{Check, Topic, Verdict};
use crate::doctor::facts::{Bpf, Heard, Machine, Programs, Trial};
use crate::doctor::gather::BTF;
use crate::error::{IN_USER_NAMESPACE, MOUNT_PROC, NO_PROC, way_to_capabilities};
use crate::kernel::ladder::Rung;
use crate::out::units::bytes;

/// What to change where something is not known for want of capabilities.
const AS_FOR_CAPABILITIES: &str = "as for the capabilities";

/// What it means that the kind of hook that was asked for cannot be used.
const ASKED_IN_VAIN: &str = "with this --force-source nothing is measured";

/// Architecture that sw-bpf is tested on.
const TESTED: &str = "x86_64";

pub fn kernel(machine: &Machine) -> Check {
    let found = format!("Linux {} on {}", machine.release, machine.architecture);
    if machine.architecture == TESTED {
        Check::new(
            Topic::Kernel,
            Verdict::Ok,
            found,
            "sw-bpf is tested on this architecture",
        )
    } else {
        let means = format!("sw-bpf is tested on {TESTED} alone");
        Check::new(Topic::Kernel, Verdict::Unknown, found, means)
    }
}

pub fn btf(bpf: &Bpf) -> Check {
    match &bpf.btf {
        Ok(length) => Check::new(
            Topic::Btf,
            Verdict::Ok,
            format!("{} in {BTF}", bytes(*length)),
            "the kernel programs find their way by it",
        ),
        Err(reason) => Check::new(Topic::Btf, Verdict::Degraded, reason, SAMPLED)
            .change("use a kernel built with CONFIG_DEBUG_INFO_BTF=y, as those of all distributions are")
            .change("if something is mounted over that file (`findmnt -R /sys`), unmount it"),
    }
}

pub fn bpf(bpf: &Bpf, trial: &Trial) -> Check {
    let is_compiled = match trial {
        Trial::Good { is_compiled, .. } => *is_compiled,
        _ => None,
    };
    let told = |verdict, found: &str, means: &str| Check::new(Topic::Bpf, verdict, found, means);
    if let Err(reason) = &bpf.unprivileged
        && !matches!(trial, Trial::Good { .. })
    {
        return told(
            Verdict::Unknown,
            &format!("bpf(2): {reason}"),
            "a kernel without it cannot count",
        )
        .change(if reason == NO_PROC {
            MOUNT_PROC
        } else {
            "use a kernel built with CONFIG_BPF_SYSCALL=y, and look from outside of the container"
        });
    }
    match (is_compiled, &bpf.jit) {
        (Some(true), _) | (None, Ok(1..)) => told(
            Verdict::Ok,
            "bpf(2), with JIT",
            "programs run at the processor's own speed",
        ),
        (Some(false), _) | (None, Ok(0)) => told(
            Verdict::Degraded,
            "bpf(2), without JIT",
            "programs are interpreted: each event costs several times as much",
        )
        .change("sysctl net.core.bpf_jit_enable=1"),
        (None, Err(reason)) => told(
            Verdict::Unknown,
            &format!("bpf(2); JIT: {reason}"),
            "without JIT each event costs several times as much",
        )
        .change("look as root, or from the host's network namespace"),
    }
}

pub fn capabilities(bpf: &Bpf) -> Check {
    let unprivileged = match &bpf.unprivileged {
        Ok(value) => format!("; kernel.unprivileged_bpf_disabled={value}"),
        Err(_) => String::new(),
    };
    if !bpf.is_of_host {
        return Check::new(Topic::Capabilities, Verdict::Degraded, IN_USER_NAMESPACE, SAMPLED)
            .change("run sw-bpf outside of the container");
    }
    if !bpf.lacking.is_empty() {
        let found = format!("without {}{unprivileged}", bpf.lacking.join(" and "));
        return Check::new(
            Topic::Capabilities,
            Verdict::Degraded,
            found,
            format!("this user's {SAMPLED}"),
        )
        .change(way_to_capabilities(bpf.is_withheld));
    }
    Check::new(
        Topic::Capabilities,
        Verdict::Ok,
        format!("CAP_BPF and CAP_PERFMON{unprivileged}"),
        "this user may load the kernel programs",
    )
}

pub fn lockdown(bpf: &Bpf, trial: &Trial) -> Check {
    let told = |verdict, found: &str, means: &str| Check::new(Topic::Lockdown, verdict, found, means);
    match (&bpf.lockdown, trial) {
        (Ok(mode), _) if mode == "confidentiality" => told(
            Verdict::Degraded,
            mode,
            &format!("the kernel refuses tracing programs: {SAMPLED}"),
        )
        .change("boot with lockdown=integrity, or without lockdown"),
        (Ok(mode), _) => told(Verdict::Ok, mode, "it does not forbid the kernel programs"),
        (Err(reason), Trial::Good { .. }) => told(
            Verdict::Ok,
            reason,
            "the kernel programs load, so it does not forbid them",
        ),
        (Err(reason), Trial::NotTried(_)) if !bpf.may_load() => told(
            Verdict::Unknown,
            reason,
            "this follows from the capabilities: a trial of the programs would tell whether it forbids them",
        )
        .change(AS_FOR_CAPABILITIES),
        (Err(reason), _) => told(
            Verdict::Unknown,
            reason,
            "confidentiality would forbid the kernel programs",
        )
        .change("mount -t securityfs none /sys/kernel/security"),
    }
}

pub fn programs(programs: &Programs) -> Check {
    let told = |verdict, found: &str, means: &str| Check::new(Topic::Programs, verdict, found, means);
    let plan = match (&programs.plan, programs.asked) {
        (Ok(plan), _) => plan,
        (Err(reason), Some(_)) => return asked_in_vain(reason),
        (Err(reason), None) => return told(Verdict::Degraded, reason, SAMPLED),
    };
    match &programs.trial {
        Trial::Good { heard, .. } => {
            let (verdict, means) = on(heard.rung);
            let found = format!("{}; loaded, attached, and they see what sw-bpf sees", rung(heard));
            told(verdict, &found, means)
        }
        Trial::Failed(reason) if programs.asked.is_some() => asked_in_vain(reason),
        Trial::Failed(reason) => {
            let found = format!("{}; a trial failed: {reason}", rung(plan));
            told(Verdict::Degraded, &found, SAMPLED)
                .change("see the checks above; where they are all ok, report it with this output")
        }
        Trial::Hindered(reason) => {
            let means = match programs.asked {
                Some(_) => ASKED_IN_VAIN,
                None => SAMPLED,
            };
            told(
                Verdict::Degraded,
                &format!("{}; a trial was hindered: {reason}", rung(plan)),
                means,
            )
        }
        Trial::NotTried(reason) => {
            let found = format!("{}; not tried: {reason}", rung(plan));
            told(
                Verdict::Unknown,
                &found,
                "this follows from the capabilities: whether they load and attach is known of a trial alone",
            )
            .change(AS_FOR_CAPABILITIES)
        }
    }
}

/// That the kind of hook that was asked for cannot be used.
fn asked_in_vain(reason: &str) -> Check {
    Check::new(Topic::Programs, Verdict::Degraded, reason, ASKED_IN_VAIN)
        .change("leave --force-source out: then the best that there is here is tried")
}

/// The rung, and why it is no better one.
fn rung(heard: &Heard) -> String {
    let name = heard.rung.name();
    match &heard.why_not_better {
        Some(why) => format!("{name}, since {why}"),
        None => name.to_owned(),
    }
}

/// What a rung means.
fn on(rung: Rung) -> (Verdict, &'static str) {
    match rung {
        Rung::Tracepoint | Rung::Fentry => (
            Verdict::Ok,
            "every change of memory and every switch of a task is counted",
        ),
        Rung::Kprobe => (
            Verdict::Degraded,
            "changes of memory are counted; what kprobes miss is not: error_bound_bytes is what the kernel's files leave open",
        ),
    }
}

pub fn events(programs: &Programs) -> Check {
    let told = |verdict, found: String, means: &str| Check::new(Topic::Events, verdict, found, means);
    let (heard, verdict, means) = match (&programs.plan, &programs.trial) {
        (_, Trial::Good { heard, .. }) => (heard, Verdict::Ok, "nothing is left unseen"),
        (Ok(plan), Trial::NotTried(_)) => (
            plan,
            Verdict::Unknown,
            "this follows from the capabilities: with them nothing would be left unseen",
        ),
        (Err(_), _) | (_, Trial::Failed(_) | Trial::Hindered(_)) => {
            let means = "starts, ends and moves of processes and kills for want of memory are not seen";
            return told(Verdict::Degraded, "no kernel programs".to_owned(), means);
        }
    };
    let (used, absent) = (heard.hooks.len(), heard.absent.len());
    let found = format!("{used} of {} hooks", used + absent);
    if heard.absent.is_empty() {
        return told(verdict, found, means).listing(&heard.hooks);
    }
    let names: Vec<_> = heard.absent.iter().map(|(name, _)| name.as_str()).collect();
    let reasons: Vec<_> = heard
        .absent
        .iter()
        .map(|(name, reason)| format!("{name}: {reason}"))
        .collect();
    let found = format!("{found}, without {}", names.join(", "));
    told(Verdict::Degraded, found, &reasons.join("; ")).listing(&heard.hooks)
}
