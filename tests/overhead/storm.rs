//! Storms of the events that our programs pay for, as the workload that lies beside this program has them.

use crate::load::Clock;

/// One storm.
pub struct Storm {
    /// Under which of the aims it falls.
    pub letter: char,
    /// What it does.
    pub title: &'static str,
    /// Of what the time is told.
    pub unit: &'static str,
    /// Arguments of the workload.
    pub args: &'static [&'static str],
    /// A number of rounds that takes some ten milliseconds.
    pub few_rounds: u64,
    /// What is taken for its time.
    pub clock: Clock,
}

/// Those that run in one cgroup.
pub const STORMS: [Storm; 6] = [
    faults('a', "4 KiB page faults, all CPUs", &["fault-storm"]),
    faults('a', "4 KiB page faults, one CPU", &["fault-storm", "--threads=1"]),
    huge_faults("page faults with THP, all CPUs", &["fault-storm", "--thp"]),
    huge_faults(
        "page faults with THP, one CPU",
        &["fault-storm", "--thp", "--threads=1"],
    ),
    switches("context switches on one CPU", &["pipe-switch"], Clock::Cpu),
    switches(
        "context switches, unpinned",
        &["pipe-switch", "--unpinned"],
        Clock::Wall,
    ),
];

/// The one that runs among many cgroups.
pub const AMONG_MANY: Storm = faults(
    'e',
    "4 KiB page faults, one CPU, many cgroups",
    &["fault-storm", "--threads=1"],
);

const fn faults(letter: char, title: &'static str, args: &'static [&'static str]) -> Storm {
    Storm {
        letter,
        title,
        unit: "page",
        args,
        few_rounds: 2,
        clock: Clock::Cpu,
    }
}

const fn huge_faults(title: &'static str, args: &'static [&'static str]) -> Storm {
    Storm {
        unit: "4 KiB",
        few_rounds: 4,
        ..faults('b', title, args)
    }
}

const fn switches(title: &'static str, args: &'static [&'static str], clock: Clock) -> Storm {
    Storm {
        letter: 'c',
        title,
        unit: "switch",
        args,
        few_rounds: 10_000,
        clock,
    }
}
