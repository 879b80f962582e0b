//! The jobs as they are told to those who collect metrics.

use rustix::time::{ClockId, clock_gettime};

use super::{Job, Jobs, ROOM};
use crate::{
    cli,
    error::Error,
    job::kernfile,
    out::openmetrics::{AgentSample, JobSample, SlotUse},
    snapshot::{Loss, Snapshot},
    verb::agent::metrics::{Reader, sample},
};

impl Jobs {
    /// All of them now, then those that ended in the reader's window, and the agent itself.
    pub fn samples(&mut self, reader: Reader) -> Result<(Vec<JobSample>, AgentSample), Error> {
        self.probe().look()?;
        self.probe().begin_round()?;
        let oldest = self.windows.oldest(reader);
        let begin_ns = self.windows.begin_ns(reader);
        let mut samples = Vec::with_capacity(self.by_slot.len());
        let mut unread = 0;
        // Of two runs of one job the one that goes on comes first: it counts.
        let (gone, there): (Vec<_>, Vec<_>) =
            { self.by_slot.values_mut() }.partition(|job| job.meter.is_told_removed());
        for job in there.into_iter().chain(gone) {
            match told(job, reader, oldest, begin_ns) {
                Ok(sample) => samples.push(sample),
                // It may end at this moment; what is wrong for longer, the next look tells.
                Err(_) => unread += 1,
            }
        }
        self.probe().end_round();
        samples.extend(self.windows.ended(reader));
        let agent = self.agent(reader, unread)?;
        Ok((samples, agent))
    }

    /// Begins a part of a reader's window; its number.
    pub fn begin_part(&mut self, reader: Reader) -> u64 {
        let part = self.windows.begin_part(reader);
        let oldest = self.windows.oldest(reader);
        let highs = self.by_slot.values_mut().filter_map(|job| job.highs.as_mut());
        highs.for_each(|highs| highs.begin_part(reader, part, oldest));
        part
    }

    /// Keeps what is told once more of a job that has ended.
    pub(super) fn keep_ended(&mut self, job: &mut Job, summary: &Snapshot) {
        take(job);
        let oldest = [Reader::File, Reader::Http].map(|reader| (reader, self.windows.oldest(reader)));
        let highs = oldest.map(|(reader, oldest)| high(job, reader, oldest));
        self.windows.end(&job.lines.job, summary, highs);
        self.have_changed = true;
    }

    fn agent(&self, reader: Reader, unread: u64) -> Result<AgentSample, Error> {
        let probe = self.probe();
        let losses = probe.losses()?;
        let (targets, below) = probe.slots_in_use();
        let told = |misses: u64| (!losses.is_untold).then_some(misses);
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let timed = self.windows.timed;
        let seconds = |ns: u64| ns as f64 / 1e9;
        let is_lost = self.records.dir().is_none();
        let failing = { self.by_slot.values() }.filter(|job| is_lost || job.lines.is_failing());
        Ok(AgentSample {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            kernel: self.probes.kernel.clone(),
            rung: self.probes.rung.clone(),
            started_seconds: self.windows.began.as_secs_f64(),
            jobs: self.by_slot.len() as u64,
            jobs_left_out: unread + self.windows.dropped(reader),
            records_failing: failing.count() as u64 + self.unwritten.count(),
            window_seconds: seconds(self.windows.length_ns(reader)),
            slots: vec![
                SlotUse {
                    of: "job",
                    used: targets,
                    room: u64::from(ROOM.targets),
                },
                SlotUse {
                    of: "below",
                    used: below,
                    room: u64::from(ROOM.below),
                },
            ],
            loss: Loss {
                kernel_memory_misses: told(losses.state_misses),
                lru_misses: told(losses.lruvec_misses),
                other_misses: losses.other_misses,
                notices_dropped: losses.notices_dropped,
                collisions: losses.collisions,
                unseen_switches: losses.unseen_switches,
                without_row: losses.without_slot,
                too_deep: losses.too_deep,
                rebased: 0,
            },
            without_target: losses.without_target,
            timed_run_seconds: seconds(timed.run_time_ns),
            timed_runs: timed.run_count,
            timed_seconds: seconds(timed.window_ns),
            cpu_seconds: cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9,
            resident_bytes: resident_bytes(),
        })
    }
}

/// Those who were asked for.
pub(super) fn readers(asked: &cli::Agent) -> Vec<Reader> {
    let file = asked.openmetrics.as_ref().map(|_| Reader::File);
    let http = asked.listen.map(|_| Reader::Http);
    file.into_iter().chain(http).collect()
}

/// Takes the maxima of the last reading: after each, since the next one has the buckets since then alone.
pub(super) fn take(job: &mut Job) {
    if let Some((highs, held)) = job.highs.as_mut().zip(job.meter.fold().last().kernel.as_ref()) {
        highs.take(held);
    }
}

fn high(job: &mut Job, reader: Reader, oldest: u64) -> Option<u64> {
    let level = job.highs.as_mut()?.of(reader, oldest)?;
    job.meter.fold().needed_bytes(level)
}

fn told(job: &mut Job, reader: Reader, oldest: u64, begin_ns: u64) -> Result<JobSample, Error> {
    let (snapshot, held) = job.meter.fresh(begin_ns)?;
    if let Some((highs, held)) = job.highs.as_mut().zip(held.as_ref()) {
        highs.take(held);
    }
    let high = high(job, reader, oldest);
    Ok(sample(&job.lines.job, snapshot, high))
}

/// Field 2 of `/proc/self/statm` (proc(5)).
fn resident_bytes() -> Option<u64> {
    let text = kernfile::read_text("/proc/self/statm".as_ref()).ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    pages.checked_mul(rustix::param::page_size() as u64)
}
