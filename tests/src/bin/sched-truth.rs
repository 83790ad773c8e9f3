//! Threads that sleep, run and wait for a CPU, and print the kernel's counts for each: a line
//! `NAME TID RUN WAIT SLEEP`, the last three in ns: on a CPU (its CPU clock), waiting for one (schedstat), and the
//! rest of its time.

use std::{
    error::Error,
    fs,
    io::{self, Read as _, Write as _},
    os::unix::process::CommandExt as _,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use clap::{Parser, Subcommand};
use nix::{
    sched::{CpuSet, sched_getaffinity, sched_setaffinity},
    time::{ClockId, clock_gettime},
    unistd::{Pid, gettid},
};
use nntrace_common::{
    emit::Section,
    layer::{Layer, Phase},
};

/// Threads that sleep, run and wait for a CPU.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// One sleeps and runs in turn
    Naps {
        /// Number of naps.
        times: u32,
        /// Length of each sleep and each run, ms.
        milliseconds: u64,
    },
    /// Some run at once on one CPU
    Rivals {
        /// Number of threads.
        threads: u32,
        /// Running time, ms.
        milliseconds: u64,
    },
    /// One runs for a while on one CPU, then sleeps, in a section `work`
    Work {
        /// Time on CPU, ms.
        run: u64,
        /// Time asleep, ms.
        sleep: u64,
    },
    /// Two on one CPU pass a byte to and fro
    PingPong {
        /// Number of rounds.
        times: u32,
    },
    /// One sleeps 100 us at a time, and the main thread waits for it
    Dozes {
        /// Total time, ms.
        milliseconds: u64,
    },
    /// A thread that is not the leader waits a little, then executes `naps` with one nap
    Exec {
        /// Length of the nap, ms.
        milliseconds: u64,
    },
    /// Starts a process that sleeps, and ends before it
    Daemon {
        /// Length of the sleep, s.
        seconds: u64,
    },
}

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Result<()> {
    match Cli::parse().what {
        What::Naps { times, milliseconds } => {
            let each = Duration::from_millis(milliseconds);
            let naps = thread::spawn(move || told("naps", || (0..times).for_each(|_| nap_and_run(each))));
            join(naps)
        }
        What::Rivals { threads, milliseconds } => {
            let time = Duration::from_millis(milliseconds);
            stay_on_one_cpu()?;
            let rivals: Vec<_> =
                (0..threads).map(|_| thread::spawn(move || told("rival", || compete(time)))).collect();
            rivals.into_iter().try_for_each(join)
        }
        What::Work { run, sleep } => {
            stay_on_one_cpu()?;
            let (run, sleep) = (Duration::from_millis(run), Duration::from_millis(sleep));
            join(thread::spawn(move || {
                let mut worked = Ok(());
                told("work", || worked = work(run, sleep))?;
                worked
            }))
        }
        What::PingPong { times } => {
            stay_on_one_cpu()?;
            let (mut from_here, mut to_there) = io::pipe()?;
            let (mut from_there, mut to_here) = io::pipe()?;
            let echo = thread::spawn(move || {
                told("echo", || {
                    let mut byte = [0];
                    while from_here.read_exact(&mut byte).is_ok() && to_here.write_all(&byte).is_ok() {}
                })
            });
            let mut byte = [0];
            for _ in 0..times {
                to_there.write_all(&byte)?;
                from_there.read_exact(&mut byte)?;
            }
            drop(to_there);
            join(echo)
        }
        What::Dozes { milliseconds } => {
            let end = Instant::now() + Duration::from_millis(milliseconds);
            let doze = move || {
                while Instant::now() < end {
                    thread::sleep(Duration::from_micros(100));
                }
            };
            let dozes = thread::spawn(move || told("dozes", doze));
            let mut joined = Ok(());
            told("main", || joined = join(dozes))?;
            joined
        }
        What::Exec { milliseconds } => {
            let executes = thread::spawn(move || -> Result<()> {
                thread::sleep(Duration::from_millis(20));
                println!("former {} 0 0 0", gettid());
                Err(Command::new("/proc/self/exe")
                    .args(["naps", "1", &milliseconds.to_string()])
                    .exec()
                    .into())
            });
            join(executes)
        }
        What::Daemon { seconds } => {
            let daemon = Command::new("sleep")
                .arg(seconds.to_string())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()?;
            println!("daemon {} 0 0 0", daemon.id());
            Ok(())
        }
    }
}

fn join(thread: thread::JoinHandle<Result<()>>) -> Result<()> {
    thread.join().map_err(|_| "a thread panicked")?
}

/// Runs `work`, and prints the kernel's counts for it.
fn told(name: &str, work: impl FnOnce()) -> Result<()> {
    let (begin, run_before, waited_before) = (Instant::now(), cpu_time()?, waited()?);
    work();
    let (life, run, waited) = (begin.elapsed(), cpu_time()?, waited()?);
    let awake = run.saturating_sub(run_before) + waited.saturating_sub(waited_before);
    let slept = life.saturating_sub(awake);
    println!("{name} {} {} {} {}", gettid(), run.as_nanos(), waited.as_nanos(), slept.as_nanos());
    Ok(())
}

fn nap_and_run(each: Duration) {
    thread::sleep(each);
    run_for(each);
}

fn compete(time: Duration) {
    let _section = Section::begin(Layer::Runtime, Phase::Execution, "rival");
    run_for(time);
}

fn work(run: Duration, sleep: Duration) -> Result<()> {
    let _section = Section::begin(Layer::Runtime, Phase::Execution, "work");
    let end = cpu_time()? + run;
    while cpu_time()? < end {}
    thread::sleep(sleep);
    Ok(())
}

fn run_for(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        std::hint::spin_loop();
    }
}

fn cpu_time() -> Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?.into())
}

/// Returns how long this thread has waited for a CPU so far.
fn waited() -> Result<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    let ns = text.split_whitespace().nth(1).ok_or("the kernel keeps no schedstat")?.parse()?;
    Ok(Duration::from_nanos(ns))
}

/// Restricts all threads that start from now on to the first available CPU.
fn stay_on_one_cpu() -> Result<()> {
    let allowed = sched_getaffinity(Pid::from_raw(0))?;
    let first = (0..CpuSet::count()).find(|&cpu| allowed.is_set(cpu).unwrap_or(false)).ok_or("no CPU")?;
    let mut one = CpuSet::new();
    one.set(first)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &one)?)
}
