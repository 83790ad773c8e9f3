//! Cost of the profiler's own process at the pace of the example network.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use nix::sys::signal::Signal;

use crate::{
    bench::{
        child::Running,
        process::{cpu_seconds, megabytes},
        profiler::Snapshot,
        release,
        spread::paired,
        table::Table,
    },
    run::command,
};

/// Number of runs.
const ROUNDS: u32 = 3;
/// Time after the start from which on CPU time is counted, s: programs are loaded, and the network runs.
const FROM: u32 = 2;
/// Time after the start until which it is, s.
const UNTIL: u32 = 12;
/// Largest CPU time after the start, % of one CPU.
const GOAL_PERCENT: f64 = 1.0;
/// Largest memory, MB.
const GOAL_MEGABYTES: f64 = 40.0;

/// Figures of a run.
struct Run {
    seconds: f64,
    cpu_seconds: f64,
    marks: f64,
    power_events: f64,
    /// CPU time between [`FROM`] and [`UNTIL`], by the kernel's count, s.
    steady_seconds: f64,
    /// Memory at the end and at most, MB.
    memory: f64,
    peak_memory: f64,
}

/// Measures some runs.
pub fn measure() -> Result<Table> {
    let runs = (0..ROUNDS).map(|_| Run::start()).collect::<Result<Vec<_>>>()?;
    let all = |figure: fn(&Run) -> f64| -> Vec<f64> { runs.iter().map(figure).collect() };
    let mut table = Table::new("collector, with the example network");
    table.row("marks per second", &all(|run| run.marks / run.seconds));
    table.row("power events per second", &all(|run| run.power_events / run.seconds));
    let whole = paired(&all(|run| run.cpu_seconds), &all(|run| run.seconds), |cpu, s| 100.0 * cpu / s);
    table.row("CPU of the whole run, % of one CPU", &whole);
    let steady = all(|run| 100.0 * run.steady_seconds / f64::from(UNTIL - FROM));
    table.row(&format!("CPU between second {FROM} and {UNTIL}, % of one CPU"), &steady).at_most(GOAL_PERCENT);
    table.row("memory, MB", &all(|run| run.memory)).at_most(GOAL_MEGABYTES);
    table.row("memory at most, MB", &all(|run| run.peak_memory)).at_most(GOAL_MEGABYTES);
    table.note("the whole run includes loading the kernel programs and their verification");
    table.note(
        "CPU after the start: utime and stime of the process; memory: VmRSS and VmHWM, in MB of 10^6 bytes",
    );
    Ok(table)
}

impl Run {
    fn start() -> Result<Self> {
        let mut profiler = command(release("nntrace-bpf")?);
        profiler.args(["--json", "--"]).arg(release("nntrace-workload")?);
        profiler.args(["--quiet", "--seconds", &(UNTIL + 2).to_string()]);
        let begin = Instant::now();
        let profiler = Running::start(&mut profiler)?;
        let wait_until = |second: u32| {
            thread::sleep(Duration::from_secs(second.into()).saturating_sub(begin.elapsed()));
        };
        wait_until(FROM);
        let before = cpu_seconds(profiler.pid())?;
        wait_until(UNTIL);
        let steady_seconds = cpu_seconds(profiler.pid())? - before;
        let [memory, peak_memory] = ["VmRSS", "VmHWM"].map(|line| megabytes(profiler.pid(), line));
        let snapshot = Snapshot::parse(&profiler.end(Signal::SIGTERM)?)?;
        Ok(Self {
            seconds: snapshot.seconds()?,
            cpu_seconds: snapshot.number("/overhead/collector_cpu_ns")? / 1e9,
            marks: snapshot.number("/overhead/marks")?,
            power_events: snapshot.number("/overhead/power_events")?,
            steady_seconds,
            memory: memory?,
            peak_memory: peak_memory?,
        })
    }
}
