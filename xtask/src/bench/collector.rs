//! Cost of the profiler's own process at the pace of the example network.

use anyhow::Result;

use crate::{
    bench::{profiler::Snapshot, release, spread::paired, table::Table},
    run::{as_root, command, quietly},
};

/// Number of repetitions of both runs.
const ROUNDS: u32 = 3;

/// Length of the long run, s: the difference of both does not include the cost of starting.
const LONG: u32 = 10;
const SHORT: u32 = 2;

/// A run.
struct Run {
    seconds: f64,
    cpu_seconds: f64,
    marks: f64,
    power_events: f64,
}

/// Measures long and short runs in turn.
pub fn measure() -> Result<Table> {
    let (mut long, mut short) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        long.push(Run::of(LONG)?);
        short.push(Run::of(SHORT)?);
    }
    let of_long = |figure: fn(&Run) -> f64| -> Vec<f64> { long.iter().map(figure).collect() };
    let difference = |figure: fn(&Run) -> f64| -> Vec<f64> {
        long.iter().zip(&short).map(|(long, short)| figure(long) - figure(short)).collect()
    };
    let percent = |cpu: Vec<f64>, seconds: Vec<f64>| paired(&cpu, &seconds, |cpu, s| 100.0 * cpu / s);

    let mut table = Table::new("collector, with the example network");
    table.row("marks per second", &of_long(|run| run.marks / run.seconds));
    table.row("power events per second", &of_long(|run| run.power_events / run.seconds));
    let all = percent(of_long(|run| run.cpu_seconds), of_long(|run| run.seconds));
    table.row(&format!("CPU of a run of {LONG} s, % of one CPU"), &all);
    let steady = percent(difference(|run| run.cpu_seconds), difference(|run| run.seconds));
    table.row("CPU after the start, % of one CPU", &steady);
    table.note("the whole run includes loading the kernel programs and their verification");
    table.note(format!("after the start: what a run of {LONG} s takes more than one of {SHORT} s"));
    Ok(table)
}

impl Run {
    fn of(seconds: u32) -> Result<Self> {
        let mut profiler = command(release("nntrace-bpf")?);
        profiler.args(["--json", "--"]).arg(release("nntrace-workload")?);
        profiler.args(["--quiet", "--seconds", &seconds.to_string()]);
        let snapshot = Snapshot::parse(&quietly(&mut as_root(profiler)?)?)?;
        Ok(Self {
            seconds: snapshot.seconds()?,
            cpu_seconds: snapshot.number("/overhead/collector_cpu_ns")? / 1e9,
            marks: snapshot.number("/overhead/marks")?,
            power_events: snapshot.number("/overhead/power_events")?,
        })
    }
}
