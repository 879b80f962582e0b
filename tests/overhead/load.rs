//! The programs that are measured.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::cgroups::Place;
use crate::interrupt::Interrupt;
use crate::storm::{AMONG_MANY, STORMS, Storm};

/// Lines of the file to sort, for each second that a storm runs: sorting them takes two or three.
const LINES_PER_SECOND: f64 = 5_000_000.0;

/// A program that meets many of the events that ours pay for.
pub struct Load {
    /// Under which of the aims it falls.
    pub letter: char,
    /// What it does.
    pub title: String,
    /// Of what the time is told.
    pub unit: &'static str,
    program: Program,
    rounds: u64,
    clock: Clock,
}

enum Program {
    /// The workload, with these arguments.
    Storm(&'static [&'static str]),
    /// The file to sort.
    Sort(PathBuf),
}

/// What is taken for the time of a run.
#[derive(Clone, Copy)]
pub enum Clock {
    /// CPU time, user and system, of all its processes: waiting for a CPU behind others does not count.
    Cpu,
    /// From begin to end: for what waits for its own parts.
    Wall,
}

/// What one run gave.
pub struct Run {
    /// How many units of the load were done.
    pub units: u64,
    /// What each took.
    pub ns: f64,
}

impl Load {
    /// Those that run in one cgroup; a run of each takes about `span`. `dir` is for their files.
    pub fn all(dir: &Path, span: Duration, place: &Place, interrupt: &Interrupt) -> Result<Vec<Self>> {
        let storms = STORMS
            .iter()
            .map(|storm| Self::storm(storm, span, place, interrupt));
        let sort = Self::sort(dir, (span.as_secs_f64() * LINES_PER_SECOND) as u64);
        storms.chain([sort]).collect()
    }

    /// The one that runs among many cgroups.
    pub fn among_many(span: Duration, place: &Place, interrupt: &Interrupt) -> Result<Self> {
        Self::storm(&AMONG_MANY, span, place, interrupt)
    }

    /// Finds out how many rounds take `span` in `place`.
    fn storm(storm: &Storm, span: Duration, place: &Place, interrupt: &Interrupt) -> Result<Self> {
        let mut load = Self {
            letter: storm.letter,
            title: storm.title.to_owned(),
            unit: storm.unit,
            program: Program::Storm(storm.args),
            rounds: storm.few_rounds,
            clock: storm.clock,
        };
        // Once for the caches, once for the clock.
        load.run(place, interrupt)?;
        let begin = Instant::now();
        load.run(place, interrupt)?;
        let times = span.as_secs_f64() / begin.elapsed().as_secs_f64();
        load.rounds = (load.rounds as f64 * times.max(1.0)).ceil() as u64;
        Ok(load)
    }

    fn sort(dir: &Path, lines: u64) -> Result<Self> {
        let path = dir.join("lines");
        write_lines(&path, lines).with_context(|| format!("write {}", path.display()))?;
        let size = std::fs::metadata(&path)
            .context("look at the file to sort")?
            .len();
        Ok(Self {
            letter: 'd',
            title: format!("sort of a file of {} MiB, two threads", size >> 20),
            unit: "run",
            program: Program::Sort(path),
            rounds: 1,
            clock: Clock::Cpu,
        })
    }

    /// Runs it once in `place`.
    pub fn run(&self, place: &Place, interrupt: &Interrupt) -> Result<Run> {
        let mut command = self.command()?;
        place.enter(&mut command)?;
        let begin = (Instant::now(), cpu_time_of_children());
        let output = command
            .output()
            .with_context(|| format!("start {}", command.get_program().display()))?;
        let time = match self.clock {
            Clock::Wall => begin.0.elapsed(),
            Clock::Cpu => cpu_time_of_children().saturating_sub(begin.1),
        };
        // A signal of the terminal ends the load too: that is no fault of its own.
        interrupt.check()?;
        ensure!(
            output.status.success(),
            "{}: {}: {}",
            command.get_program().display(),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
        let units = match self.program {
            Program::Storm(_) => units_of(&String::from_utf8_lossy(&output.stdout))?,
            Program::Sort(_) => 1,
        };
        Ok(Run {
            units,
            ns: time.as_nanos() as f64 / units as f64,
        })
    }

    fn command(&self) -> Result<Command> {
        Ok(match &self.program {
            Program::Storm(args) => {
                let beside = std::env::current_exe().context("find this program")?;
                let mut command = Command::new(beside.with_file_name("workload"));
                command.args(*args).arg(format!("--rounds={}", self.rounds));
                command
            }
            Program::Sort(file) => {
                let mut command = Command::new("sort");
                // The memory that it may use is more than it needs: no temporary files.
                command.args(["--parallel=2", "--buffer-size=1G", "--output=/dev/null"]);
                command.arg(file).env("LC_ALL", "C");
                command
            }
        })
    }
}

/// Reads how much a storm did: it prints `pages <n> …`.
fn units_of(line: &str) -> Result<u64> {
    let units = line.split_whitespace().nth(1);
    units
        .and_then(|word| word.parse().ok())
        .filter(|units| *units > 0)
        .with_context(|| format!("the workload printed {line:?}"))
}

/// CPU time of the children that have ended.
fn cpu_time_of_children() -> Duration {
    // SAFETY: plain integers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is valid for the call, which cannot fail with these arguments.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let duration = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec.unsigned_abs()) + Duration::from_micros(time.tv_usec.unsigned_abs())
    };
    duration(usage.ru_utime) + duration(usage.ru_stime)
}

/// Lines in no order, the same each time.
fn write_lines(path: &Path, lines: u64) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for number in 0..lines {
        // Multiples of the golden ratio scatter evenly.
        let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        writeln!(file, "{key:016x} {number:010}")?;
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storm_is_read() {
        assert_eq!(
            units_of("switches 200 ns 400000 ns_per_switch 2000.5\n").expect("units"),
            200
        );
        assert!(units_of("").is_err());
        assert!(units_of("pages many ns 1").is_err());
    }

    #[test]
    fn children_take_cpu_time() {
        let before = cpu_time_of_children();
        let status = Command::new("sh").args(["-c", ":"]).status();
        assert!(status.expect("a shell").success());
        assert!(cpu_time_of_children() > before);
    }
}
