//! Sections with known counts of performance events: instructions, page faults, time on CPU.

use std::{
    error::Error,
    num::NonZero,
    sync::{Arc, Barrier},
    thread,
    time::Duration,
};

use clap::{Parser, Subcommand};
use nix::{
    sched::{CpuSet, sched_getaffinity, sched_setaffinity},
    sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap_anonymous},
    time::{ClockId, clock_gettime},
    unistd::Pid,
};
use nntrace_common::{
    emit::Section,
    layer::{Layer, Phase},
};

/// Sections with known counts of performance events.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// A loop of this many rounds of two instructions in `outer`, twice, and three of them in `inner` between
    Loops {
        /// Rounds.
        rounds: u64,
    },
    /// Two threads on one CPU: a loop of this many rounds in `light`, and three of them in `heavy`
    Rivals {
        /// Rounds.
        rounds: u64,
    },
    /// This many pages are touched first in `outer`, twice, and three times as many in `inner` between
    Faults {
        /// Pages.
        pages: usize,
    },
    /// Two threads on one CPU take some time on it in `spin`; each prints how long, ns
    Spins {
        /// Time on CPU, ms.
        milliseconds: u64,
    },
}

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Result<()> {
    stay_on_one_cpu()?;
    match Cli::parse().what {
        What::Loops { rounds } => nested(|parts| {
            run_rounds(rounds * parts);
            Ok(())
        }),
        What::Faults { pages } => nested(|parts| touch_new(pages * usize::try_from(parts)?)),
        What::Rivals { rounds } => on_two_threads(
            move || in_section("light", || run_rounds(rounds)),
            move || in_section("heavy", || run_rounds(3 * rounds)),
        ),
        What::Spins { milliseconds } => {
            let spin = move || {
                let (begin, mut time) = (cpu_time(), Duration::ZERO);
                in_section("spin", || {
                    while time < Duration::from_millis(milliseconds) {
                        time = cpu_time().saturating_sub(begin);
                    }
                });
                println!("{}", time.as_nanos());
            };
            on_two_threads(spin, spin)
        }
    }
}

/// Does one part of the work in a section, three parts in a section in it, and one part more.
fn nested(work: impl Fn(u64) -> Result<()>) -> Result<()> {
    // What the first marks do once is in no section that is looked at.
    for name in ["warm-up", "outer"] {
        let _outer = Section::begin(Layer::Runtime, Phase::Execution, name);
        if name == "outer" {
            work(1)?;
            {
                let _inner = Section::begin(Layer::CpuFallback, Phase::Computation, "inner");
                work(3)?;
            }
            work(1)?;
        }
    }
    Ok(())
}

fn in_section(name: &str, work: impl FnOnce()) {
    drop(Section::begin(Layer::Runtime, Phase::Execution, "warm-up"));
    let _section = Section::begin(Layer::Runtime, Phase::Execution, name);
    work();
}

/// Runs both at the same time.
fn on_two_threads(
    first: impl FnOnce() + Send + 'static,
    second: impl FnOnce() + Send + 'static,
) -> Result<()> {
    let ready = Arc::new(Barrier::new(2));
    let there = Arc::clone(&ready);
    let other = thread::spawn(move || {
        there.wait();
        second();
    });
    let one = thread::spawn(move || {
        ready.wait();
        first();
    });
    one.join().map_err(|_| "a thread panicked")?;
    other.join().map_err(|_| "a thread panicked".into())
}

/// Runs a loop of two instructions.
#[inline(never)]
fn run_rounds(rounds: u64) {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: changes the register that it is given, and flags.
    unsafe {
        std::arch::asm!("2: subs {0}, {0}, #1", "b.ne 2b", inout(reg) rounds => _, options(nomem, nostack));
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("2: dec {0}", "jnz 2b", inout(reg) rounds => _, options(nomem, nostack));
    }
}

/// Writes to this many pages that nobody has written to.
fn touch_new(pages: usize) -> Result<()> {
    const PAGE: usize = 4096;
    let length = NonZero::new(pages * PAGE).ok_or("no page")?;
    let (access, flags) = (ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_PRIVATE);
    // SAFETY: a new mapping, anywhere.
    let memory = unsafe { mmap_anonymous(None, length, access, flags)? };
    // SAFETY: the mapping above, on which this has no other effect; a kernel without large pages refuses it.
    let _ = unsafe { madvise(memory, length.get(), MmapAdvise::MADV_NOHUGEPAGE) };
    for page in 0..pages {
        // SAFETY: inside of the mapping, which stays.
        unsafe { memory.as_ptr().cast::<u8>().add(page * PAGE).write_volatile(1) };
    }
    Ok(())
}

/// Time of this thread on a CPU.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::MAX, Duration::from)
}

/// Restricts this thread, and those that it starts, to the first available CPU.
fn stay_on_one_cpu() -> Result<()> {
    let allowed = sched_getaffinity(Pid::from_raw(0))?;
    let first = (0..CpuSet::count()).find(|&cpu| allowed.is_set(cpu).unwrap_or(false)).ok_or("no CPU")?;
    let mut one = CpuSet::new();
    one.set(first)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &one)?)
}
