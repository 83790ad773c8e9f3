//! Cost of an idle transition.

use anyhow::Result;

use crate::bench::{child::Running, profiler::Profiler, spread::paired, table::Table, tracefs::Instance};

/// Length of a round, ms.
const ROUND: &str = "500";

/// Event that both record.
const EVENT: &str = "power/cpu_idle";

/// Measurements with something attached, a figure for each round.
#[derive(Default)]
struct Observed {
    /// Round trips, ns.
    trips: Vec<f64>,
    /// Events per round trip.
    events: Vec<f64>,
}

/// Measures all states in turn.
pub fn measure(rounds: u32) -> Result<Table> {
    let buffer = Instance::create("nntrace-bench-idle")?;
    let mut table = Table::new("ns per cpu_idle event");
    if !buffer.record(EVENT, false)? {
        table.missing("all", "the kernel has no event power:cpu_idle");
        return Ok(table);
    }
    let mut load = Running::load(&["ping-pong", "--milliseconds", ROUND])?;
    let mut nothing = Vec::new();
    let mut profiler = Observed::default();
    let mut program = Vec::new();
    let mut ftrace = Observed::default();
    for _ in 0..rounds {
        let [trip, _] = load.ask("round")?;
        nothing.push(trip);
        program.extend(profiler.with_profiler(&mut load)?);
        ftrace.with_ftrace(&mut load, &buffer)?;
    }
    table.row("round trip, nothing attached, ns", &nothing);
    for (name, observed) in [("nntrace-bpf", &profiler), ("ftrace", &ftrace)] {
        table.row(&format!("round trip, {name}, ns"), &observed.trips);
        table.row("  events per round trip", &observed.events);
        let added = paired(&observed.trips, &nothing, |with, without| with - without);
        table.row("  added ns per event", &paired(&added, &observed.events, |added, events| added / events));
    }
    table.row("kernel program, nntrace-bpf, ns per event", &program);
    table.note(
        "two threads on two CPUs that wake each other through pipes; a round counts with its median trip",
    );
    table.note(
        "a trip has four events; where fewer are seen, CPUs had other work, or some event was not recorded",
    );
    table.note("a CPU falls idle while the other one works, so a trip shows only part of what events cost");
    Ok(table)
}

impl Observed {
    /// Runs a round with the profiler attached; returns the time per event from the kernel's statistics, ns, if there
    /// were any events.
    fn with_profiler(&mut self, load: &mut Running) -> Result<Option<f64>> {
        const EVENTS: &str = "/overhead/power_events";
        let (profiler, first) = Profiler::attach(&["--marks", "none"])?;
        let [trip, count] = load.ask("round")?;
        let last = profiler.end()?;
        self.push(trip, (last.number(EVENTS)? - first.number(EVENTS)?) / count);
        Ok(last.number("/overhead/ns_per_power_event").ok())
    }

    fn with_ftrace(&mut self, load: &mut Running, buffer: &Instance) -> Result<()> {
        buffer.record(EVENT, true)?;
        let before = buffer.recorded()?;
        let [trip, count] = load.ask("round")?;
        let after = buffer.recorded()?;
        buffer.record(EVENT, false)?;
        self.push(trip, (after - before) as f64 / count);
        Ok(())
    }

    fn push(&mut self, trip: f64, events: f64) {
        self.trips.push(trip);
        self.events.push(events);
    }
}
