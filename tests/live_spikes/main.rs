//! Spikes of random size and length: every one must be seen, at its true height, however short it is.

mod poller;
mod spike;

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use std::{env, mem, thread};

use support::measure::{Process, Run, load_probe, own_cgroup};
use support::{need_bpf, pace};
use swbpf::probe::{Probe, Start, monotonic_ns};
use swbpf::sampled::cgroupfs::MemoryFiles;

use poller::{Poller, StopAtEnd};
use spike::Spike;

/// Says how many spikes there are.
const COUNT: &str = "SWBPF_TEST_SPIKES";
/// On a machine that is no slower than others, and on one that is.
const SPIKES: [usize; 2] = [1000, 200];
/// Spikes for each that has a run of its own.
const SPIKES_PER_RUN: usize = 20;

/// Names the file to which the numbers of spikes are added, those that were captured first.
const FIGURES: &str = "SWBPF_TESTS_FIGURES";

/// Longer than the kernel takes to bring its statistics up to date.
const SETTLED: Duration = Duration::from_millis(2500);

/// One after the other, on one attachment of the kernel programs; each gets a fresh slot, so that the peak is its own.
/// Beside it run pollers of `memory.stat`, and the same spikes are looked for in what they saw.
#[test]
fn every_spike_is_captured() {
    if !need_bpf() {
        return;
    }
    let begin = Instant::now();
    let own = own_cgroup();
    let mut probe = load_probe();
    let count = count();
    let argument = count.to_string();
    let mut workload = Process::workload_in(&own, &["spikes", "--step", "--count", &argument]);
    let mut line = workload.line();
    thread::sleep(SETTLED);
    let rest = MemoryFiles::read(own.cgroup()).anon_bytes.expect("memory.stat");

    let mut pollers = [1000, 100, 10].map(|ms| Poller::every(Duration::from_millis(ms)));
    let stop = AtomicBool::new(false);
    let mut spikes = Vec::with_capacity(count);
    thread::scope(|scope| {
        let _stop = StopAtEnd(&stop);
        for poller in &mut pollers {
            scope.spawn(|| poller.watch(own.cgroup(), &stop));
        }
        for _ in 0..count {
            spikes.push(measure_one(
                &mut probe,
                own.cgroup().id(),
                &mut workload,
                &mut line,
            ));
        }
    });
    assert_eq!(line, "done");
    assert!(workload.finish().0.success());

    tell(&spikes, &pollers, rest, begin.elapsed());
    let missed: Vec<_> = spikes.iter().filter(|spike| !spike.is_captured()).collect();
    note(count - missed.len(), count);
    assert!(missed.is_empty(), "{missed:?}, losses {:?}", probe.losses());
}

/// How many spikes there are to be.
fn count() -> usize {
    let [many, few] = SPIKES;
    let usual = if pace::factor() == 1 { many } else { few };
    env::var(COUNT).map_or(usual, |count| count.parse().expect("a number of spikes"))
}

/// Adds a line to the file of figures, where there is to be one.
fn note(captured: usize, count: usize) {
    if let Some(path) = env::var_os(FIGURES) {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let mut file = file.expect("a file of figures");
        writeln!(file, "{captured} {count}").expect("a file of figures");
    }
}

/// Lets the workload do the spike that `line` announces. The next line comes when it is over.
fn measure_one(probe: &mut Probe, cgroup: u64, workload: &mut Process, line: &mut String) -> Spike {
    let slot = probe.track(cgroup, Start::default(), 0).expect("a free slot");
    let begin_ns = monotonic_ns();
    workload.step();
    let told = mem::replace(line, workload.line());
    let reading = probe.read(slot).expect("a reading");
    probe.untrack(cgroup, slot).expect("a tracked cgroup");
    Spike::new(&told, reading.peak.level, begin_ns..=reading.read_ns)
}

/// Prints the table. Not by `println!`, which libtest keeps to itself.
fn tell(spikes: &[Spike], pollers: &[Poller], rest: u64, elapsed: Duration) {
    let row = |who: &str, captured: usize, note: &str| format!("{who:<28}{captured:>10}   {note}");
    let captured = spikes.iter().filter(|spike| spike.is_captured()).count();
    let error = spikes.iter().map(Spike::error_bytes).max().unwrap_or(0);
    let mut table = vec![
        format!(
            "\n{} spikes of 64 KiB to 512 MiB, held for 0 to 50 ms, in {:.0} s",
            spikes.len(),
            elapsed.as_secs_f64()
        ),
        row(
            "sw-bpf",
            captured,
            &format!("captured, none off by more than {error} bytes"),
        ),
    ];
    for poller in pollers {
        let seen = spikes.iter().filter(|spike| poller.saw(spike, rest)).count();
        let who = format!("memory.stat every {} ms", poller.every_ms());
        let polls = poller.polls();
        table.push(row(
            &who,
            seen,
            &format!("seen at 90 % or more by one of {polls} polls"),
        ));
    }
    drop(writeln!(io::stderr(), "{}", table.join("\n")));
}

/// The same from end to end: each spike in a run of its own. What lies under the spike, the workload itself and the page
/// tables made beforehand, is the same in each run. The drawn timeline has the spike at its height.
#[test]
fn every_run_tells_its_spike() {
    if !need_bpf() {
        return;
    }
    let mut under = Vec::new();
    for seed in 0..count() / SPIKES_PER_RUN {
        let seed = format!("--seed={seed}");
        let run = Run::start(&[], &["spikes", "--count=1", "--max-hold-ms=10", &seed]).finish();
        assert_eq!(run.code, Some(0));
        let line = run.output.lines().next().expect("a spike");
        let memory = &run.summary.memory;
        let peak = memory.needed_peak_bytes.expect("a peak");
        let spike = Spike::new(line, 0, 0..=0);
        let bound = memory.error_bound_bytes.expect("a bound");
        assert!(peak + bound >= spike.bytes, "{peak} {spike:?}");
        let drawn = memory.timeline.as_ref().expect("a timeline");
        assert_eq!(drawn.max_bytes.iter().max(), Some(&peak), "{spike:?}");
        under.push((peak.abs_diff(spike.bytes), bound, spike));
    }
    let mut sorted: Vec<u64> = under.iter().map(|(under, ..)| *under).collect();
    sorted.sort_unstable();
    let usual = sorted[sorted.len() / 2];
    for (under, bound, spike) in &under {
        assert!(
            under.abs_diff(usual) <= spike.tolerance_bytes() + bound,
            "{under} under {spike:?}, {usual} under most"
        );
    }
}
