//! The summary that a person reads, and the plain line of a measurement under way.

mod comment;
mod gathered;
mod listed;
mod memory;
pub mod page;
mod processors;
mod steps;

use std::time::Duration;

pub use comment::{MAX_COMMENT, comment};
pub use gathered::gathered;
pub use listed::listed;
use page::{NOTE, Page, WIDTH};

use crate::error;
use crate::out::escape;
use crate::out::units::{bytes, duration, known, moment, percent};
use crate::snapshot::{Exit, Loss, OwnProcesses, Snapshot, Source, Step, TargetKind, Task};

/// Columns of a reason: four lines of notes.
const REASON: usize = 4 * NOTE;

/// The whole of `snapshot` in plain text: at most 80 columns of printable ASCII, whatever names it holds.
pub fn summary(snapshot: &Snapshot) -> String {
    let mut page = Page::default();
    header(&mut page, snapshot);
    memory::oom_kills(&mut page, snapshot);
    memory::peaks(&mut page, snapshot);
    memory::at_the_peak(&mut page, snapshot);
    steps::steps(&mut page, snapshot);
    processors::processors(&mut page, snapshot);
    measurement(&mut page, snapshot);
    page.finish()
}

/// One step of the job of `snapshot`, in the same form.
pub fn step(snapshot: &Snapshot, step: &Step) -> String {
    let mut alone = snapshot.clone();
    alone.step_id = Some(step.step_id.clone());
    alone.oom_kills.retain(|kill| kill.step_id == alone.step_id);
    alone.steps_left_out = None;
    alone.steps = Some(vec![step.clone()]);
    let mut page = Page::default();
    page.line(&format!(
        "sw-bpf: {}",
        escape::head(job_title(&alone), WIDTH - "sw-bpf: ".len())
    ));
    let how = if step.usage.ended_at.is_some() {
        "ended after"
    } else {
        "measured for"
    };
    page.line(&format!("{how} {}", duration(step.usage.seconds)));
    memory::oom_kills(&mut page, &alone);
    steps::steps(&mut page, &alone);
    page.finish()
}

/// What of a record is not as one would expect.
pub fn of_record(what: &str) -> String {
    format!("{}{}\n", error::NOTE, escape::head(what, REASON))
}

/// That sw-bpf runs inside of the target, and why it could not leave.
pub fn cannot_leave(reason: &str) -> String {
    format!(
        "{}runs inside of what it measures and cannot leave: {}\n",
        error::NOTE,
        escape::head(reason, REASON)
    )
}

/// That sw-bpf has left its step of a job, and why Slurm cannot end it with that.
pub fn no_stand_in(reason: &str) -> String {
    format!(
        "{}has left its step, and Slurm cannot end it with that: {}\n",
        error::NOTE,
        escape::head(reason, REASON)
    )
}

/// That nothing came after the line of `last` for so long.
pub fn stale(last: &Snapshot, silence: Duration) -> String {
    format!(
        "{}the agent has said nothing for {}: the line above is as of {}\n",
        error::NOTE,
        duration(silence.as_secs_f64()),
        moment(&last.timestamp)
    )
}

/// A measurement under way: one line, and one for each step of a job.
pub fn progress(snapshot: &Snapshot) -> String {
    line(snapshot) + &steps::progress(snapshot.steps.as_deref().unwrap_or_default())
}

fn line(snapshot: &Snapshot) -> String {
    let memory = &snapshot.memory;
    let highest = steps::highest_word(memory.source);
    let kills = match snapshot.oom_kills.len() {
        0 => String::new(),
        kills => format!("  OOM kills {kills}"),
    };
    format!(
        "{:>10}  needed {:>10}  {highest} {:>10}  busy cores {:>7}{kills}\n",
        duration(snapshot.coverage.seconds),
        known(memory.needed_bytes, bytes),
        known(memory.needed_peak_bytes, bytes),
        known(snapshot.cpu.busy_cores, |cores| format!("{cores:.2}")),
    )
}

fn header(page: &mut Page, snapshot: &Snapshot) {
    let target = &snapshot.target;
    let columns = WIDTH - "sw-bpf: ".len();
    let what = match (target.kind, &target.command, target.pid) {
        (TargetKind::Command, Some(command), _) => escape::quoted_head(&quoted(command), columns),
        (TargetKind::Pid, _, Some(pid)) => {
            let begin = format!("process {pid} in ");
            let path = escape::tail(&target.cgroup, columns - begin.len());
            begin + &path
        }
        (TargetKind::Job, ..) => escape::head(job_title(snapshot), columns),
        _ => escape::tail(&target.cgroup, columns),
    };
    page.line(&format!("sw-bpf: {what}"));
    if target.kind == TargetKind::Job {
        page.line(&escape::tail(&target.cgroup, WIDTH));
    }
    let span = duration(snapshot.elapsed_seconds.unwrap_or(snapshot.coverage.seconds));
    page.line(&match snapshot.exit {
        Some(Exit {
            signal: Some(signal), ..
        }) => format!("ended by signal {signal} after {span}"),
        Some(Exit { code: Some(code), .. }) => format!("exit {code} after {span}"),
        Some(_) => format!("ended after {span}"),
        None => format!("measured for {}", duration(snapshot.coverage.seconds)),
    });
}

/// `job 77.0 of alice: train`.
fn job_title(snapshot: &Snapshot) -> String {
    let id = snapshot.job_id.as_deref().unwrap_or_default();
    let step = snapshot
        .step_id
        .as_ref()
        .map_or(String::new(), |step| format!(".{step}"));
    let job = snapshot.job.as_ref();
    let user = job.and_then(|job| job.user.as_ref());
    let name = job.and_then(|job| job.name.as_ref());
    format!(
        "job {id}{step}{}{}",
        user.map_or(String::new(), |user| format!(" of {user}")),
        name.map_or(String::new(), |name| format!(": {name}")),
    )
}

/// The command as a shell would take it.
fn quoted(command: &[String]) -> String {
    // Only a NUL byte cannot be quoted.
    shlex::try_join(command.iter().map(String::as_str)).unwrap_or_else(|_| command.join(" "))
}

fn measurement(page: &mut Page, snapshot: &Snapshot) {
    let probes = &snapshot.probes;
    page.section("Measurement");
    let source = match snapshot.source {
        Source::Kernel => "kernel",
        Source::Sampled => "sampled",
        Source::Unavailable => "unavailable",
    };
    let rung = (snapshot.source == Source::Kernel).then(|| escape::head(&probes.rung, NOTE));
    let kernel = format!("Linux {}", escape::head(&probes.kernel, NOTE));
    page.row("source", source, &joined([rung, Some(kernel)]));
    if let Some(why) = &probes.reason {
        page.row("  because", "", &escape::head(why, REASON));
    }
    for program in probes.programs.iter().filter(|program| !program.attached) {
        let why = program.reason.as_ref().map(|why| escape::head(why, REASON));
        page.row(
            "  without",
            "",
            &joined([Some(escape::head(&program.hook, NOTE)), why]),
        );
    }
    let coverage = &snapshot.coverage;
    let from = if coverage.from_start {
        "from the first instruction".to_owned()
    } else {
        format!("joined at {}", moment(&coverage.from))
    };
    page.row("coverage", &duration(coverage.seconds), &from);
    let (bound, note) = match snapshot.memory.error_bound_bytes {
        Some(0) if coverage.from_start => ("none".to_owned(), "every change of memory is counted".to_owned()),
        Some(0) => ("none".to_owned(), "agrees with the kernel's files".to_owned()),
        Some(bound) => (bytes(bound), bound_of(snapshot.memory.source).to_owned()),
        None => (known(None, bytes), reason(snapshot, "memory.error_bound_bytes")),
    };
    page.row("error bound", &bound, &note);
    own_processes(page, snapshot.target.own_processes);
    lost(page, snapshot.loss);
    overhead(page, snapshot);
}

/// What the error bound bounds: what was seen of memory now and then is the least that was needed.
fn bound_of(source: Source) -> &'static str {
    match source {
        Source::Kernel => "of memory, either way",
        _ => "up to that much more than was seen",
    }
}

/// Where sw-bpf itself ran, if it began inside of the target.
fn own_processes(page: &mut Page, own: OwnProcesses) {
    let (value, note) = match own {
        OwnProcesses::Elsewhere => return,
        OwnProcesses::Left => ("left out", "it moved out of the target"),
        OwnProcesses::TakenOff => ("taken off", "it ran inside of the target"),
        OwnProcesses::Counted => ("counted", "it runs inside of the target"),
    };
    page.row("sw-bpf itself", value, note);
}

fn lost(page: &mut Page, loss: Option<Loss>) {
    let Some(loss) = loss else {
        return page.row("lost", &known(None, bytes), "nothing is seen between two looks");
    };
    let events = [
        ("changes unseen", loss.kernel_memory_misses.unwrap_or(0)),
        ("runs skipped", loss.other_misses),
        ("dropped notices", loss.notices_dropped),
        ("maxima given up", loss.collisions),
        ("steps without a row", loss.without_row),
        ("cgroups too deep", loss.too_deep),
        ("switches found late", loss.unseen_switches),
        ("new bases", loss.rebased),
    ];
    let some: Vec<_> = events.iter().filter(|(_, count)| *count > 0).collect();
    if loss.kernel_memory_misses.is_none() {
        page.row("lost", &known(None, bytes), "what kprobes miss is not counted");
    } else if some.is_empty() {
        page.row("lost", "nothing", "");
    }
    if some.is_empty() {
        return;
    }
    let note = some
        .iter()
        .map(|(what, count)| format!("{what} {count}"))
        .collect::<Vec<_>>()
        .join(", ");
    // The error bound has what changes unseen could hide; a switch found late is charged from when it was.
    let is_made_good = [
        loss.other_misses,
        loss.notices_dropped,
        loss.collisions,
        loss.without_row,
        loss.too_deep,
    ] == [0; 5];
    page.row(
        "lost",
        if is_made_good { "made good" } else { "something" },
        &note,
    );
}

fn overhead(page: &mut Page, snapshot: &Snapshot) {
    let overhead = snapshot.overhead;
    let note = match overhead.agent_cpu_percent {
        Some(_) => "of one CPU".to_owned(),
        None => reason(snapshot, "overhead.agent_cpu_percent"),
    };
    page.row("overhead", &known(overhead.agent_cpu_percent, percent), &note);
    if let Some(share) = overhead.programs_cpu_percent {
        let event = overhead.ns_per_event.map(|ns| format!("{ns:.0} ns an event"));
        page.row(
            "  all programs",
            &percent(share),
            &joined([Some("of one CPU, whole host".to_owned()), event]),
        );
    }
}

/// The parts that are known, with commas between.
fn joined<const N: usize>(parts: [Option<String>; N]) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// `1 look`, `2 looks`.
fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// `tail (4242)`.
fn named(task: &Task) -> String {
    name(&task.comm, task.pid)
}

fn name(comm: &str, pid: u32) -> String {
    format!("{} ({pid})", escape::head(comm, NOTE - " (4294967295)".len()))
}

/// Why the number under the dotted `key` is not known.
fn reason(snapshot: &Snapshot, key: &str) -> String {
    snapshot
        .unknown
        .get(key)
        .map_or(String::new(), |why| escape::head(why, REASON))
}
