//! The windows of those who read metrics, and the targets that ended in them.

use std::{
    collections::VecDeque,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::highs::Highs;
use crate::{
    fold::{Calibration, KernelReading},
    out::openmetrics::{JobSample, Whose},
    probe::monotonic_ns,
    snapshot::{Snapshot, TargetKind},
};

/// Begins of parts that are remembered, the first one always.
const MOST_BEGINS: usize = 16;
/// Targets that have ended and are told once more.
const MOST_ENDED: usize = 1024;

/// Who reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// Whoever reads the file, when it likes.
    File,
    /// Whoever scrapes.
    Http,
}

impl Reader {
    /// How many there are.
    pub const COUNT: usize = 2;
}

/// The window of one reader, in parts.
#[derive(Debug)]
struct Window {
    newest: u64,
    oldest: u64,
    /// When the parts began: number, monotonic clock.
    begins: VecDeque<(u64, u64)>,
}

impl Window {
    fn new(now_ns: u64) -> Self {
        Self {
            newest: 0,
            oldest: 0,
            begins: [(0, now_ns)].into(),
        }
    }

    fn begin_part(&mut self, now_ns: u64) -> u64 {
        self.newest += 1;
        self.begins.push_back((self.newest, now_ns));
        if self.begins.len() > MOST_BEGINS
            && let Some((_, begin_ns)) = self.begins.pop_front()
            && let Some((_, next_ns)) = self.begins.front_mut()
        {
            *next_ns = begin_ns;
        }
        self.newest
    }

    fn forget_before(&mut self, part: u64) {
        self.oldest = self.oldest.max(part);
        while self.begins.len() > 1
            && self
                .begins
                .front()
                .is_some_and(|(number, _)| *number < self.oldest)
        {
            self.begins.pop_front();
        }
    }

    fn begin_ns(&self) -> u64 {
        self.begins.front().map_or(0, |(_, ns)| *ns)
    }
}

/// A target that has ended.
struct Ended {
    sample: JobSample,
    highs: [Option<u64>; Reader::COUNT],
    parts: [u64; Reader::COUNT],
}

/// All that is kept for the readers beside the targets.
pub struct Windows {
    /// When they began, since 1970: told as the start of the agent.
    pub began: Duration,
    of: [Window; Reader::COUNT],
    ended: VecDeque<Ended>,
    /// Those who are there.
    readers: Vec<Reader>,
    /// For each reader, those that have ended in its window and are not kept.
    dropped: [u64; Reader::COUNT],
    /// The programs as timed since the begin.
    pub timed: Calibration,
}

impl Windows {
    /// Those of these readers begin now.
    pub fn new(readers: Vec<Reader>) -> Self {
        let now_ns = monotonic_ns();
        Self {
            began: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
            of: [Window::new(now_ns), Window::new(now_ns)],
            ended: VecDeque::new(),
            readers,
            dropped: [0; Reader::COUNT],
            timed: Calibration::default(),
        }
    }

    /// The maxima of a target that begins with a reading.
    pub fn highs(&self, held: Option<&KernelReading>, is_new: bool) -> Option<Highs> {
        let parts = self.of.each_ref().map(|window| window.newest);
        held.map(|held| Highs::begin(held, is_new, parts))
    }

    /// The oldest part of a reader's window.
    pub fn oldest(&self, reader: Reader) -> u64 {
        self.of[reader as usize].oldest
    }

    /// When a reader's window began: monotonic clock.
    pub fn begin_ns(&self, reader: Reader) -> u64 {
        self.of[reader as usize].begin_ns()
    }

    /// How long that is ago.
    pub fn length_ns(&self, reader: Reader) -> u64 {
        monotonic_ns().saturating_sub(self.begin_ns(reader))
    }

    /// Begins a part of a reader's window; its number.
    pub fn begin_part(&mut self, reader: Reader) -> u64 {
        self.of[reader as usize].begin_part(monotonic_ns())
    }

    /// A reader has all that came before a part.
    pub fn forget_before(&mut self, reader: Reader, part: u64) {
        self.of[reader as usize].forget_before(part);
        self.dropped[reader as usize] = 0;
        let (readers, of) = (&self.readers, &self.of);
        let is_wanted = |ended: &Ended, by: &Reader| ended.parts[*by as usize] >= of[*by as usize].oldest;
        self.ended
            .retain(|ended| readers.iter().any(|reader| is_wanted(ended, reader)));
    }

    /// A target has ended, with these maxima. Of very many, the oldest are not told again.
    pub fn end(&mut self, name: &str, summary: &Snapshot, highs: [Option<u64>; Reader::COUNT]) {
        if self.readers.is_empty() {
            return;
        }
        if self.ended.len() == MOST_ENDED {
            self.ended.pop_front();
            self.dropped = self.dropped.map(|dropped| dropped + 1);
        }
        self.ended.push_back(Ended {
            sample: sample(name, summary.clone(), None),
            highs,
            parts: self.of.each_ref().map(|window| window.newest),
        });
    }

    /// Targets that have ended in a reader's window and are not kept: at most so many.
    pub fn dropped(&self, reader: Reader) -> u64 {
        self.dropped[reader as usize]
    }

    /// The targets that have ended in a reader's window, newest first.
    pub fn ended(&self, reader: Reader) -> impl Iterator<Item = JobSample> {
        let index = reader as usize;
        let oldest = self.of[index].oldest;
        let in_window = self
            .ended
            .iter()
            .rev()
            .filter(move |ended| ended.parts[index] >= oldest);
        in_window.map(move |ended| ended.sample.clone().with_window_peak(ended.highs[index]))
    }
}

/// What is told of a target.
pub fn sample(name: &str, snapshot: Snapshot, window_peak_bytes: Option<u64>) -> JobSample {
    let whose = match snapshot.target.kind {
        TargetKind::Job => Whose::Job(name.to_owned()),
        _ => Whose::Cgroup(snapshot.target.cgroup.clone()),
    };
    JobSample::new(&whose, snapshot).with_window_peak(window_peak_bytes)
}
