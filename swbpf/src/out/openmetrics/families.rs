//! Every metric: its name, its meaning, and where in the snapshot its number is. `docs/metrics.md` is made from this.

use Samples::{Labelled, One};

use super::{AgentTold, JobSample, MAX_LABEL};
use crate::{
    out::escape,
    snapshot::{Loss, Source, Usage},
};

/// What a number does over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only rises.
    Counter,
    /// It goes up and down, or says what is.
    Gauge,
}

/// A number of a sample.
#[derive(Debug, Clone, Copy)]
pub enum Number {
    /// Bytes or a count.
    Whole(u64),
    /// Seconds or cores.
    Real(f64),
}

/// Takes one sample: the labels of its own, and its number.
type Take<'a> = &'a mut dyn FnMut(&[(&str, &str)], Number);

/// Where the numbers of a family are.
pub enum Samples<T> {
    /// One for each thing; `None` where it is not known.
    One(fn(&T) -> Option<Number>),
    /// Several, each with labels of these names.
    Labelled(&'static [&'static str], fn(&T, Take<'_>)),
}

/// A metric.
pub struct Family<T> {
    /// Its name with its unit; that of a counter's samples ends with `_total` too.
    pub name: &'static str,
    /// What its number does over time.
    pub kind: Kind,
    /// Its unit; empty where there is none.
    pub unit: &'static str,
    /// What it means, in one line.
    pub help: &'static str,
    /// Its numbers.
    pub samples: Samples<T>,
}

impl<T> Family<T> {
    /// What its samples are called.
    pub fn sample_name(&self) -> String {
        match self.kind {
            Kind::Counter => format!("{}_total", self.name),
            Kind::Gauge => self.name.to_owned(),
        }
    }

    fn described(&self, labels: &[&'static str]) -> Described {
        let own = match self.samples {
            One(_) => &[],
            Labelled(names, _) => names,
        };
        Described {
            name: self.sample_name(),
            kind: self.kind,
            unit: self.unit,
            labels: [labels, own].concat(),
            help: self.help,
        }
    }
}

/// A metric as it is documented.
#[derive(Debug, Clone)]
pub struct Described {
    /// What its samples are called.
    pub name: String,
    /// What its number does over time.
    pub kind: Kind,
    /// Its unit; empty where there is none.
    pub unit: &'static str,
    /// Names of its labels; those of a target that is no job have `cgroup` in place of `jobid`.
    pub labels: Vec<&'static str>,
    /// What it means.
    pub help: &'static str,
}

/// All metrics: of jobs, of steps, of the agent.
pub fn described() -> [(&'static str, Vec<Described>); 3] {
    [
        (
            "Jobs",
            JOB.iter().map(|family| family.described(&["jobid"])).collect(),
        ),
        (
            "Steps",
            STEP.iter()
                .map(|family| family.described(&["jobid", "step"]))
                .collect(),
        ),
        (
            "Agent",
            agent().iter().map(|family| family.described(&[])).collect(),
        ),
    ]
}

macro_rules! families {
    ($($kind:ident $name:literal [$unit:literal] $help:literal $samples:expr;)*) => {
        [$(Family { name: $name, kind: Kind::$kind, unit: $unit, help: $help, samples: $samples }),*]
    };
}

fn whole(number: Option<u64>) -> Option<Number> {
    number.map(Number::Whole)
}

fn real(number: Option<f64>) -> Option<Number> {
    number.map(Number::Real)
}

/// Of each target.
pub static JOB: [Family<JobSample>; 17] = families! {
        Gauge "swbpf_job_info" [""]
            "Always 1: source (kernel: every change is counted; sampled) and rung (kind of hook) of the numbers, and id, as Slurm shows the job."
            Labelled(&["source", "rung", "id"], info);
        Gauge "swbpf_job_from_start" [""]
            "1 where the job was measured from its first instruction, 0 where it ran already."
            One(|job| Some(Number::Whole(u64::from(job.snapshot.coverage.from_start))));
        Gauge "swbpf_job_covered_seconds" ["seconds"]
            "How long the job has been measured."
            One(|job| real(Some(job.snapshot.coverage.seconds)));
        Gauge "swbpf_job_needed_bytes" ["bytes"]
            "What the kernel could not take back now: anonymous, shared and kernel memory."
            One(|job| whole(job.snapshot.memory.needed_bytes));
        Gauge "swbpf_job_needed_peak_bytes" ["bytes"]
            "Highest needed memory since the job was first measured, of all its processes together at one instant."
            One(|job| whole(job.snapshot.memory.needed_peak_bytes));
        Gauge "swbpf_job_needed_window_peak_bytes" ["bytes"]
            "Highest needed memory within the reader's window (swbpf_agent_window_seconds), at any instant of it."
            One(|job| whole(job.window_peak_bytes));
        Gauge "swbpf_job_needed_error_bytes" ["bytes"]
            "How far the three numbers of needed memory can be from the truth, either way."
            One(|job| whole(job.snapshot.memory.error_bound_bytes));
        Gauge "swbpf_job_charged_bytes" ["bytes"]
            "The kernel's own counter of charged memory, page cache among it."
            One(|job| whole(job.snapshot.memory.current_bytes));
        Gauge "swbpf_job_limit_bytes" ["bytes"]
            "Limit of charged memory; absent where there is none."
            One(|job| whole(job.snapshot.memory.limit_bytes));
        Counter "swbpf_job_cpu_seconds" ["seconds"]
            "CPU time since the job was first measured."
            One(|job| real(job.snapshot.cpu.busy_seconds));
        Gauge "swbpf_job_allocated_cores" [""]
            "Processors that the job may use, by its cpuset and quota."
            One(|job| real(job.snapshot.cpu.cores_allocated));
        Gauge "swbpf_job_running_threads_max" [""]
            "Most threads of the job that were on a processor at one instant."
            One(|job| {
                let concurrency = job.snapshot.cpu.concurrency.as_ref();
                whole(concurrency.map(|concurrency| u64::from(concurrency.max)))
            });
        Counter "swbpf_job_processes_started" [""]
            "Processes begun since the job was first measured, however short."
            One(|job| whole(job.snapshot.processes.started));
        Counter "swbpf_job_processes_ended" [""]
            "Processes ended since the job was first measured."
            One(|job| whole(job.snapshot.processes.ended));
        Counter "swbpf_job_oom_kills" [""]
            "Processes killed for want of memory since the job was first measured."
            One(oom_kills);
        Counter "swbpf_job_rebased" [""]
            "How often lost events made the base of its needed memory be taken anew."
            One(|job| whole(job.snapshot.loss.map(|loss| loss.rebased)));
        Gauge "swbpf_job_steps_left_out" [""]
            "Steps within the window without series of their own: those numbered 32 and above, and all but the last one of a name."
            One(|job| whole(job.steps_left_out));
};

fn info(job: &JobSample, take: Take<'_>) {
    let snapshot = &job.snapshot;
    let source = match snapshot.memory.source {
        Source::Kernel => "kernel",
        Source::Sampled => "sampled",
        Source::Unavailable => "unavailable",
    };
    let id = snapshot.job_id.as_deref().unwrap_or_default();
    let labels = [
        ("source", source),
        ("rung", snapshot.probes.rung.as_str()),
        ("id", &escape::head(id, MAX_LABEL)),
    ];
    // A label without a value is none.
    let known = if id.is_empty() { &labels[..2] } else { &labels[..] };
    take(known, Number::Whole(1));
}

/// Those that were told and those that were counted alone; where nobody counts, none are known.
fn oom_kills(job: &JobSample) -> Option<Number> {
    let snapshot = &job.snapshot;
    let untold = snapshot.oom_kills_untold?;
    whole(untold.checked_add(snapshot.oom_kills.len() as u64))
}

/// Of each step that has series.
pub static STEP: [Family<Usage>; 7] = families! {
        Gauge "swbpf_step_needed_bytes" ["bytes"]
            "Needed memory of the step now; absent once it has ended."
            One(|usage| whole(usage.needed_bytes));
        Gauge "swbpf_step_needed_peak_bytes" ["bytes"]
            "Highest needed memory of the step while it was measured."
            One(|usage| whole(usage.needed_peak_bytes));
        Gauge "swbpf_step_needed_error_bytes" ["bytes"]
            "How far both can be from the truth, either way."
            One(|usage| whole(usage.error_bound_bytes));
        Counter "swbpf_step_cpu_seconds" ["seconds"]
            "CPU time of the step while it was measured."
            One(|usage| real(usage.busy_seconds));
        Counter "swbpf_step_processes_started" [""]
            "Processes begun in the step while it was measured."
            One(|usage| whole(usage.processes_started));
        Counter "swbpf_step_processes_ended" [""]
            "Processes ended in the step while it was measured."
            One(|usage| whole(usage.processes_ended));
        Counter "swbpf_step_oom_kills" [""]
            "Processes of the step killed for want of memory while it was measured."
            One(|usage| whole(usage.oom_kills));
};

/// Of the agent.
pub fn agent<'a>() -> [Family<AgentTold<'a>>; 14] {
    families! {
        Gauge "swbpf_build_info" [""]
            "Always 1: version of sw-bpf, kernel release, and kind of hook (rung) that tells changes of memory."
            Labelled(&["version", "kernel", "rung"], |told, take| {
                let agent = told.agent;
                let labels = [("version", &agent.version), ("kernel", &agent.kernel), ("rung", &agent.rung)];
                take(&labels.map(|(name, value)| (name, value.as_str())), Number::Whole(1));
            });
        Gauge "swbpf_agent_start_time_seconds" ["seconds"]
            "When the agent started, since 1970."
            One(|told| real(Some(told.agent.started_seconds)));
        Gauge "swbpf_agent_window_seconds" ["seconds"]
            "How far the window of this reader reaches back: by HTTP to its last whole answer, in the file 90 s or more, and never to before the agent's start."
            One(|told| real(Some(told.agent.window_seconds)));
        Gauge "swbpf_agent_jobs" [""]
            "Jobs that are measured now."
            One(|told| whole(Some(told.agent.jobs)));
        Gauge "swbpf_agent_jobs_left_out" [""]
            "Jobs without series: another one has the same label, or they could not be read."
            One(|told| whole(Some(told.left_out)));
        Gauge "swbpf_agent_records_failing" [""]
            "Jobs, running or ended, whose record could not be written at the last try."
            One(|told| whole(Some(told.agent.records_failing)));
        Gauge "swbpf_agent_slots_used" [""]
            "Places in the kernel's maps that are taken, of jobs and of steps and tasks below them."
            Labelled(&["of"], |told, take| {
                told.agent.slots.iter().for_each(|slots| take(&[("of", slots.of)], Number::Whole(slots.used)));
            });
        Gauge "swbpf_agent_slots" [""]
            "Places in the kernel's maps. A job without one is not measured, a step without one counts for its job alone."
            Labelled(&["of"], |told, take| {
                told.agent.slots.iter().for_each(|slots| take(&[("of", slots.of)], Number::Whole(slots.room)));
            });
        Counter "swbpf_losses" [""]
            "What was lost since the kernel programs were loaded, by reason (the keys of loss in docs/fields.md, and without_target: jobs that found no place)."
            Labelled(&["reason"], losses);
        Counter "swbpf_programs_timed_run_seconds" ["seconds"]
            "Time in the kernel programs within the windows of some 20 ms in which they are timed; by swbpf_programs_timed_runs_total it is the time of an event."
            One(|told| real(Some(told.agent.timed_run_seconds)));
        Counter "swbpf_programs_timed_runs" [""]
            "Runs of the kernel programs within these windows."
            One(|told| whole(Some(told.agent.timed_runs)));
        Counter "swbpf_programs_timed_seconds" ["seconds"]
            "Length of these windows together; swbpf_programs_timed_run_seconds_total by it is the share of one CPU."
            One(|told| real(Some(told.agent.timed_seconds)));
        Counter "swbpf_agent_cpu_seconds" ["seconds"]
            "CPU time of the agent itself."
            One(|told| real(Some(told.agent.cpu_seconds)));
        Gauge "swbpf_agent_resident_memory_bytes" ["bytes"]
            "Resident set of the agent itself."
            One(|told| whole(told.agent.resident_bytes));
    }
}

fn losses(told: &AgentTold<'_>, take: Take<'_>) {
    let Loss {
        kernel_memory_misses,
        lru_misses,
        other_misses,
        notices_dropped,
        collisions,
        unseen_switches,
        without_row,
        too_deep,
        rebased: _,
    } = told.agent.loss;
    for (reason, lost) in [
        ("kernel_memory_misses", kernel_memory_misses),
        ("lru_misses", lru_misses),
        ("other_misses", Some(other_misses)),
        ("notices_dropped", Some(notices_dropped)),
        ("collisions", Some(collisions)),
        ("unseen_switches", Some(unseen_switches)),
        ("without_row", Some(without_row)),
        ("without_target", Some(told.agent.without_target)),
        ("too_deep", Some(too_deep)),
    ] {
        if let Some(lost) = lost {
            take(&[("reason", reason)], Number::Whole(lost));
        }
    }
}
