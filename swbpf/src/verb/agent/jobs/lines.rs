//! The lines of a record, which a full disk or a lost directory does not lose.

use std::{collections::VecDeque, io};

use anyhow::Context;
use rustix::io::Errno;
use serde_json::value::{RawValue, to_raw_value};

use super::files::Place;
use crate::{
    error::Error,
    record::{Dir, FileId, Run, Writer},
    snapshot::Snapshot,
    verb::agent::{
        note,
        state::{self, Leaving, States},
    },
};

/// Summaries that wait for room on the disk, some 20 kB each.
const MOST_UNWRITTEN: usize = 1024;

/// Whether the last try failed: it is told once until one succeeds.
#[derive(Debug, Default)]
pub struct Failing(bool);

impl Failing {
    /// Whether it did.
    pub fn is_failing(&self) -> bool {
        self.0
    }

    /// The failure, where the one before did not fail.
    pub fn new_one(&mut self, done: Result<(), Error>) -> Option<Error> {
        let was_failing = std::mem::replace(&mut self.0, done.is_err());
        done.err().filter(|_| !was_failing)
    }
}

/// Where the lines of a job go.
#[derive(Debug)]
pub struct Lines {
    /// Its id.
    pub job: String,
    /// Whose job it is, by the kernel's word, where that is known.
    uid: Option<u32>,
    /// Who may read them besides root.
    reader: Option<u32>,
    writer: Option<Writer>,
    /// Name of the file of the record when it was opened, once there is one.
    begun: Option<String>,
    /// Which file that is.
    file: Option<FileId>,
    run: Run,
    writing: Failing,
}

impl Lines {
    /// Those of a job without a record, of this user where the kernel tells whose it is.
    pub fn of(job: String, uid: Option<u32>) -> Self {
        Self {
            job,
            uid,
            reader: uid.filter(|uid| *uid != 0),
            writer: None,
            begun: None,
            file: None,
            run: Run::Latest,
            writing: Failing::default(),
        }
    }

    /// Goes on with what an agent before this one left.
    pub fn resume(left: state::Lines) -> Self {
        Self {
            begun: left.record,
            file: left.file,
            run: if left.is_earlier {
                Run::Earlier
            } else {
                Run::Latest
            },
            reader: left.reader,
            ..Self::of(left.job, left.uid)
        }
    }

    /// What the next agent needs of it.
    pub fn left(&self) -> state::Lines {
        state::Lines {
            job: self.job.clone(),
            record: self.begun.clone(),
            file: self.file,
            is_earlier: self.run == Run::Earlier,
            uid: self.uid,
            reader: self.reader,
        }
    }

    /// The file that they go to.
    pub fn file(&self) -> Option<FileId> {
        self.file
    }

    /// Who may read them besides root.
    pub fn reader(&self) -> Option<u32> {
        self.reader
    }

    /// Whose job it is, by the kernel's word, where that is known.
    pub fn uid(&self) -> Option<u32> {
        self.uid
    }

    /// The kernel has come to tell whose job it is.
    pub fn are_of(&mut self, uid: u32) {
        self.uid.get_or_insert(uid);
        self.let_read(uid);
    }

    /// Whose job it is has come to be known.
    pub fn let_read(&mut self, reader: u32) {
        if self.reader.is_some() || reader == 0 {
            return;
        }
        self.reader = Some(reader);
        if let Some(writer) = &self.writer {
            let done = writer.let_read(reader);
            self.tell(done);
        }
    }

    /// What was written is elsewhere, or gone: the next one begins a record, and has all that came before.
    pub fn begin_anew(&mut self) {
        self.writer = None;
        self.begun = None;
        self.file = None;
    }

    /// A later run of a job has begun: where this is the same job, the name of the latest is that one's.
    pub fn give_way_to(&mut self, job: &str) {
        if self.job == job {
            self.run = Run::Earlier;
        }
    }

    /// Adds one. Where there is no record yet it is begun.
    pub fn append(&mut self, records: &Dir, snapshot: &Snapshot) -> Result<(), Error> {
        self.append_text(records, &to_raw_value(snapshot).context("write a line")?)
    }

    fn append_text(&mut self, records: &Dir, line: &RawValue) -> Result<(), Error> {
        self.writer.take_if(|writer| writer.is_removed());
        if self.writer.is_none() {
            self.writer = Some(self.open(records)?);
        }
        self.writer.as_mut().map_or(Ok(()), |writer| writer.append(&line))
    }

    /// Whether the last one could not be written.
    pub fn is_failing(&self) -> bool {
        self.writing.is_failing()
    }

    /// The record that was begun before, else a new one.
    fn open(&mut self, records: &Dir) -> Result<Writer, Error> {
        if let Some(name) = &self.begun {
            match Writer::resume(records, name, self.file) {
                Err(Error::Output { source, .. }) if is_lost(&source) => {}
                Ok(writer) => {
                    self.begun = Some(writer.name().to_owned());
                    self.file = writer.id();
                    return Ok(writer);
                }
                failed => return failed,
            }
        }
        let writer = Writer::begin(records, &self.job, self.run)?;
        let let_read = self.reader.map_or(Ok(()), |reader| writer.let_read(reader));
        self.tell(let_read);
        self.begun = Some(writer.name().to_owned());
        self.file = writer.id();
        Ok(writer)
    }

    /// Tells a failure to write, once until it is over.
    pub fn tell(&mut self, written: Result<(), Error>) {
        if let Some(error) = self.writing.new_one(written) {
            note(&format!(
                "job {}: {error}; it is tried again with each line",
                self.job
            ));
        }
    }
}

/// Whether a record is not there any more, or something else is in its place.
fn is_lost(error: &io::Error) -> bool {
    let code = Errno::from_io_error(error);
    code.is_none_or(|code| [Errno::NOENT, Errno::LOOP, Errno::ISDIR].contains(&code))
}

/// Summaries of jobs that have ended, which are to be written, oldest first.
#[derive(Debug, Default)]
pub struct Unwritten(VecDeque<Summary>);

#[derive(Debug)]
struct Summary {
    cgroup_id: u64,
    lines: Lines,
    text: Box<RawValue>,
}

impl Unwritten {
    /// Adds one, and keeps it for the next agent.
    pub fn add(&mut self, cgroup_id: u64, mut lines: Lines, summary: &Snapshot, states: &States) {
        let Ok(text) = to_raw_value(summary) else {
            return;
        };
        let kept = states.keep(cgroup_id, &lines.left(), Leaving::Ended(&text));
        lines.tell(kept);
        self.wait(cgroup_id, lines, text);
        if self.0.len() > MOST_UNWRITTEN
            && let Some(oldest) = self.0.pop_front()
        {
            states.forget(oldest.cgroup_id);
            note(&format!(
                "job {} has no summary: more than {MOST_UNWRITTEN} cannot be written",
                oldest.lines.job
            ));
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// One that is kept already.
    pub fn wait(&mut self, cgroup_id: u64, lines: Lines, text: Box<RawValue>) {
        self.0.push_back(Summary {
            cgroup_id,
            lines,
            text,
        });
    }

    /// The files that they go to.
    pub fn files(&self) -> impl Iterator<Item = FileId> {
        self.0.iter().filter_map(|summary| summary.lines.file())
    }

    /// What was written of them before is elsewhere, or gone.
    pub fn begin_anew(&mut self) {
        self.0.iter_mut().for_each(|summary| summary.lines.begin_anew());
    }

    /// A run of a job has begun in this cgroup.
    pub fn give_way_to(&mut self, job: &str, cgroup_id: u64) {
        let before = { self.0.iter_mut() }.filter(|summary| summary.cgroup_id < cgroup_id);
        before.for_each(|summary| summary.lines.give_way_to(job));
    }

    /// Takes one back; where it was to go.
    pub fn take(&mut self, cgroup_id: u64) -> Option<Lines> {
        let at = self.0.iter().position(|summary| summary.cgroup_id == cgroup_id)?;
        self.0.remove(at).map(|summary| summary.lines)
    }

    /// Writes those that can be written: the ids of their cgroups, and where they went.
    pub fn write(&mut self, records: &Place, states: &States) -> Vec<(u64, Lines)> {
        let Some(records) = records.dir() else {
            return Vec::new();
        };
        let mut all_written = Vec::new();
        for mut summary in std::mem::take(&mut self.0) {
            let written = summary.lines.append_text(records, &summary.text);
            let is_written = written.is_ok();
            summary.lines.tell(written);
            if is_written {
                states.forget(summary.cgroup_id);
                all_written.push((summary.cgroup_id, summary.lines));
            } else {
                self.0.push_back(summary);
            }
        }
        all_written
    }
}
