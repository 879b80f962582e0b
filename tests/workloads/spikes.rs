//! Many spikes of random size and length, each of which must be seen.

use std::thread;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use clap::{Args, Subcommand};

use crate::hold::{next_line, tell};
use crate::mapping::Mapping;
use crate::random::Random;
use crate::size::{PAGE, Size};

#[derive(Subcommand)]
pub enum Workload {
    /// Spike after spike of private anonymous memory, with a pause of 1 ms between two
    ///
    /// Before each it prints `spike <number> <bytes> <microseconds held>`, after the last `done`. A spike is <bytes> above
    /// the level between spikes, which stays the same: all of it anonymous memory, whose page tables are there before.
    Spikes(Spikes),
}

#[derive(Args)]
pub struct Spikes {
    /// Number of spikes
    #[arg(long, default_value_t = 1000)]
    count: usize,
    /// The same seed gives the same spikes
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The smallest spike
    #[arg(long, default_value = "64K")]
    min: Size,
    /// The largest spike: sizes between are spread evenly over the orders of magnitude
    #[arg(long, default_value = "512M")]
    max: Size,
    /// The longest hold in milliseconds; the shortest is 0
    #[arg(long, default_value_t = 50)]
    max_hold_ms: u64,
    /// Wait for a line of standard input after printing a spike's line
    #[arg(long)]
    step: bool,
}

impl Workload {
    pub fn run(&self) -> Result<()> {
        let Self::Spikes(args) = self;
        args.run()
    }
}

impl Spikes {
    fn run(&self) -> Result<()> {
        let (min, max) = ((self.min.0 / PAGE) as u64, (self.max.0 / PAGE) as u64);
        ensure!(1 <= min && min <= max, "--min must be from 4K to --max");
        let mut memory = Mapping::private(self.max)?;
        memory.make_page_tables();
        let mut random = Random::new(self.seed);
        for number in 0..self.count {
            let size = Size(random.log_uniform(min, max) as usize * PAGE);
            let hold = Duration::from_micros(random.uniform(0, self.max_hold_ms * 1000));
            tell(&format!("spike {number} {} {}", size.0, hold.as_micros()))?;
            if self.step && !next_line()? {
                bail!("standard input ended before spike {number}");
            }
            memory.touch_first(size);
            thread::sleep(hold);
            memory.release_first(size)?;
            thread::sleep(Duration::from_millis(1));
        }
        tell("done")
    }
}
