//! Private memory by the other ways into the address space.

use std::hint::black_box;
use std::ptr;
use std::slice;
use std::thread;

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::{Args, Subcommand, ValueEnum};
use rustix::mm::Advice;
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::hold::{Held, Hold};
use crate::mapping::Mapping;
use crate::size::{PAGE, Size};

#[derive(Subcommand)]
pub enum Workload {
    /// Grow the heap with sbrk, MiB by MiB, touch it and shrink it again
    ///
    /// Peak: SIZE, plus footprint and page tables.
    Brk(Held),
    /// Fill a stack by deep recursion
    ///
    /// Peak: SIZE, plus footprint, page tables and 64 KiB.
    Stack(Stack),
    /// Grow a mapping by doublings with mremap, touching what is new
    ///
    /// Peak: SIZE, plus footprint and page tables: moved pages count once.
    Mremap(Held),
    /// Lock a mapping into memory, which makes its pages present untouched
    ///
    /// Peak: SIZE, plus footprint and page tables.
    Mlock(Held),
    /// Touch, release with `MADV_FREE`, touch a part again
    ///
    /// Peak: SIZE, plus footprint and page tables. What is released stays until the kernel wants it.
    MadviseFree(Release),
    /// Touch, release with `MADV_DONTNEED`, touch a part again
    ///
    /// Peak: SIZE, plus footprint and page tables; while it holds: AGAIN, plus footprint and page tables.
    MadviseDontneed(Release),
    /// Touch pages of 2 MiB from the administrator's pool
    ///
    /// Peak: the footprint alone; the pool is counted apart. SIZE must be a multiple of 2M, and `vm.nr_hugepages` large
    /// enough.
    Hugetlb(Held),
}

#[derive(Args)]
pub struct Stack {
    #[command(flatten)]
    held: Held,
    /// Whose stack
    #[arg(long, value_enum, default_value = "thread")]
    of: StackOf,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StackOf {
    /// The main thread's, which grows by itself; at most 100M
    Main,
    /// That of a thread of its own
    Thread,
}

#[derive(Args)]
pub struct Release {
    #[command(flatten)]
    held: Held,
    /// How much to touch again, at most SIZE
    #[arg(long)]
    again: Size,
}

impl Workload {
    pub fn run(&self) -> Result<()> {
        match self {
            Self::Brk(args) => brk(args),
            Self::Stack(args) => args.run(),
            Self::Mremap(args) => mremap(args),
            Self::Mlock(args) => mlock(args),
            Self::MadviseFree(args) => args.run(Advice::LinuxFree),
            Self::MadviseDontneed(args) => args.run(Advice::LinuxDontNeed),
            Self::Hugetlb(args) => hugetlb(args),
        }
    }
}

fn brk(held: &Held) -> Result<()> {
    let mut grown = 0;
    while grown < held.size.0 {
        let step = (held.size.0 - grown).min(1 << 20);
        let start = sbrk(step.try_into()?)?;
        // SAFETY: the kernel has just added these bytes, and the allocator keeps off memory that it did not ask for.
        let added = unsafe { slice::from_raw_parts_mut(start, step) };
        for page in added.chunks_mut(PAGE) {
            page[0] = 1;
        }
        black_box(added);
        grown += step;
    }
    held.hold.hold()?;
    sbrk(-isize::try_from(grown)?).map(|_| ())
}

fn mremap(held: &Held) -> Result<()> {
    let mut size = Size((held.size.0 / 16).max(PAGE));
    let mut memory = Mapping::private(size)?;
    memory.touch();
    while size < held.size {
        let grown = held.size.min(Size(size.0 * 2));
        memory = memory.grow(grown)?;
        memory.touch_after(size);
        size = grown;
    }
    held.hold.hold()?;
    memory.unmap()
}

fn mlock(held: &Held) -> Result<()> {
    let mut memory = Mapping::private(held.size)?;
    memory.lock()?;
    held.hold.hold()?;
    memory.unmap()
}

fn hugetlb(held: &Held) -> Result<()> {
    let mut memory = Mapping::hugetlb(held.size)?;
    memory.touch();
    held.hold.hold()?;
    memory.unmap()
}

/// Moves the end of the heap; its old place.
fn sbrk(by: isize) -> Result<*mut u8> {
    // SAFETY: what is added belongs to nobody; what is taken off, its caller has added.
    let end = unsafe { libc::sbrk(by) };
    if end == ptr::without_provenance_mut(usize::MAX) {
        bail!(anyhow!(std::io::Error::last_os_error()).context("sbrk"));
    }
    Ok(end.cast())
}

impl Release {
    fn run(&self, advice: Advice) -> Result<()> {
        ensure!(self.again <= self.held.size, "--again is at most --size");
        let mut memory = Mapping::private(self.held.size)?;
        memory.touch();
        memory.advise(advice)?;
        memory.touch_first(self.again);
        self.held.hold.hold()?;
        memory.unmap()
    }
}

impl Stack {
    fn run(&self) -> Result<()> {
        let Held { size, hold } = &self.held;
        // Beside what is filled, room for the frames at both ends.
        let room = size.0 + (256 << 10);
        match self.of {
            StackOf::Main => {
                // The kernel leaves 128 MiB below the stack free of mappings, however low the limit at exec was.
                ensure!(size.0 <= 100 << 20, "the main thread's stack takes at most 100M");
                let mut limit = getrlimit(Resource::Stack);
                limit.current = limit.current.map(|soft| soft.max(room as u64));
                setrlimit(Resource::Stack, limit).context("setrlimit of the stack")?;
                fill(size.0, hold)
            }
            StackOf::Thread => thread::scope(|scope| {
                let thread = thread::Builder::new()
                    .stack_size(room)
                    .spawn_scoped(scope, || fill(size.0, hold));
                thread
                    .context("thread")?
                    .join()
                    .map_err(|_| anyhow!("the thread died"))?
            }),
        }
    }
}

/// Recurses until the stack is that much deeper, and holds there.
fn fill(depth: usize, hold: &Hold) -> Result<()> {
    let here = 0_u8;
    fill_down_to((&raw const here).addr().saturating_sub(depth), hold)
}

#[inline(never)]
fn fill_down_to(lowest: usize, hold: &Hold) -> Result<()> {
    let mut frame = [0_u8; 2 * PAGE];
    black_box(&mut frame);
    let result = if frame.as_ptr().addr() > lowest {
        fill_down_to(lowest, hold)
    } else {
        hold.hold()
    };
    // Used after the call, so that the call cannot become a jump that drops the frame.
    black_box(&mut frame);
    result
}
