//! Ten executions of `infer`, of which one is slow by a cause that is planted. Prints how much longer it took by that as JSON, and the
//! thread that did it, if it was one without marks.

mod outsider;
mod processor;
mod program;

use std::{path::PathBuf, time::Duration};

use anyhow::{Context as _, Result};
use clap::{Parser, ValueEnum};
use nix::{
    libc,
    time::{ClockId, clock_gettime},
};
use nntrace_common::{emit, mark};
use serde_json::json;

/// Executions.
const COUNT: u64 = 10;
/// Execution that is slow; but for a cold one, which is the first.
const SLOW: u64 = 6;
/// Work of each execution.
const WORK: Duration = Duration::from_millis(10);

/// Ten executions, of which one is slow.
#[derive(Debug, Parser)]
struct Cli {
    /// Planted cause
    cause: Cause,
    /// Socket of the program that takes the CPU
    socket: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Cause {
    /// Another thread takes the CPU
    Rival,
    /// Another thread holds a lock
    Lock,
    /// A driver, which is another process, takes longer
    Driver,
    /// The first execution fills a table
    Cold,
    /// A function is called twice as often
    Calls,
    /// The frequency of its CPU is limited
    FrequencyCap,
    /// It runs on a slower cluster
    LittleCluster,
    /// Its CPU leaves the deepest idle state late, out of which it was kept before
    DeepIdle,
    /// Another program takes the CPU from it
    Outsider,
    /// Another program has the CPU when it wakes up
    OutsiderFirst,
    /// The driver itself
    ServesAsDriver,
    /// The other program itself
    WaitsAsOutsider,
}

fn main() -> Result<()> {
    let Cli { cause, socket } = Cli::parse();
    let socket = || socket.as_deref().context("no socket is named");
    if cause == Cause::WaitsAsOutsider {
        return outsider::wait(socket()?);
    }
    emit::init(std::process::id());
    if cause == Cause::ServesAsDriver {
        return program::serve();
    }
    go_first(1);
    let mut thread = None;
    let planted = match cause {
        Cause::Rival => {
            let (planted, rival) = program::rival()?;
            thread = Some(rival.as_raw());
            planted
        }
        Cause::Outsider | Cause::OutsiderFirst => {
            let (planted, rival) = outsider::rival(socket()?, cause == Cause::OutsiderFirst)?;
            thread = Some(rival.as_raw());
            planted
        }
        Cause::Lock => program::lock()?,
        Cause::Driver => program::driver()?,
        Cause::Calls => program::calls()?,
        Cause::Cold | Cause::ServesAsDriver | Cause::WaitsAsOutsider => program::cold()?,
        Cause::FrequencyCap => processor::frequency_cap()?,
        Cause::LittleCluster => processor::little_cluster()?,
        Cause::DeepIdle => processor::deep_idle()?,
    };
    println!("{}", json!({ "planted_ns": planted.as_nanos() as u64, "thread": thread }));
    Ok(())
}

/// Runs an execution.
fn infer(execute: impl FnOnce() -> Result<()>) -> Result<()> {
    let _section = mark!(LR, PE, "infer");
    execute()
}

/// Returns how much longer it was in the slow execution than in the middle.
fn longer(mut times: Vec<Duration>) -> Duration {
    let slow = times[SLOW as usize];
    times.sort_unstable();
    slow.saturating_sub(times[times.len() / 2])
}

/// Uses a CPU for so much of its time; returns how much it was.
fn work(time: Duration) -> Result<Duration> {
    let now = || clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from);
    let begin = now()?;
    loop {
        let used = now()?.saturating_sub(begin);
        if used >= time {
            return Ok(used);
        }
    }
}

/// Gives this thread, and those that it starts, a higher priority than all ordinary ones, if permitted: other work of the host is
/// then not in their times.
fn go_first(priority: i32) {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the parameters live through the call. A refusal only makes the times less even.
    let _ = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
}
