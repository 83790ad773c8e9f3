//! Cost of a single mark on the express lane to the program that writes it, beside a tracepoint of LTTng-UST.

use anyhow::Result;

use crate::bench::{
    child::Running,
    lttng::{self, Recorded},
    pairs::{self, round, wait_until_heard},
    profiler::Profiler,
    spread::paired,
    table::Table,
};

/// Largest cost of a mark, ns.
const GOAL: f64 = 40.0;
/// Largest cost of a mark, as a part of that of a tracepoint of LTTng-UST.
const GOAL_BESIDE_LTTNG: f64 = 0.333;

/// Program whose marks are measured, with a figure for each round.
struct Load {
    name: &'static str,
    start: fn() -> Result<Running>,
    begins: Vec<f64>,
    ends: Vec<f64>,
    /// Marks that took the probe, percent.
    probed: Vec<f64>,
}

/// Measures programs of both languages in turn, with this many marks a round.
pub fn measure(rounds: u32, marks: u32) -> Result<Table> {
    let mut loads = [
        Load::new("nntrace.h", || pairs::start(&pairs::program()?)),
        Load::new("Rust mark!", || Running::load(&["emit-pairs"])),
    ];
    let mut clock = pairs::start(&pairs::program()?)?;
    let mut recorded = if lttng::is_installed() { Some(Recorded::start()?) } else { None };
    let (mut clocks, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        for load in &mut loads {
            load.round(marks / 2)?;
        }
        clocks.push(round(&mut clock, "clocks", marks)? / 2.0);
        if let Some(recorded) = &mut recorded {
            // The first round fills the caches, as it does with ours.
            recorded.round(marks)?;
            theirs.push(recorded.round(marks)?);
        }
    }

    let mut table = Table::new("ns per mark on the express lane");
    for Load { name, begins, ends, .. } in &loads {
        for (half, figures) in [("begin", begins), ("end", ends)] {
            table.row(&format!("{name}, {half}"), figures).at_most(GOAL);
        }
    }
    table.row("clock_gettime alone", &clocks);
    if recorded.is_some() {
        table.row("LTTng-UST, tracepoint with a text", &theirs);
        for Load { name, begins, ends, .. } in &loads {
            for (half, figures) in [("begin", begins), ("end", ends)] {
                let ratio = paired(figures, &theirs, |ours, theirs| ours / theirs);
                table.ratio(&format!("  {name}, {half} / LTTng-UST"), &ratio).at_most(GOAL_BESIDE_LTTNG);
            }
        }
    } else {
        table.missing("LTTng-UST, tracepoint with a text", "not installed");
    }
    for Load { name, probed, .. } in &loads {
        table.row(&format!("{name}, marks that took the probe, %"), probed);
    }
    table.note("one thread that does nothing else; each round counts with its median part");
    table.note("32 begins, then their 32 ends, with a reading of the clock around each");
    table.note("LTTng-UST records into the buffers of a snapshot session, which nobody reads");
    Ok(table)
}

impl Load {
    fn new(name: &'static str, start: fn() -> Result<Running>) -> Self {
        Self { name, start, begins: Vec::new(), ends: Vec::new(), probed: Vec::new() }
    }

    /// Runs a round of this many sections with the profiler attached. In a process that another profiler has read lanes of,
    /// the next one waits for the end of the leases: each round has a process of its own.
    fn round(&mut self, sections: u32) -> Result<()> {
        let mut program = (self.start)()?;
        let pid = program.pid().to_string();
        let (profiler, _) = Profiler::attach(&["--pid", &pid, "--marks=express"])?;
        wait_until_heard(&mut program, true)?;
        let request = format!("halves {sections}");
        program.ask::<f64, 3>(&request)?;
        let [begin, end, _] = program.ask(&request)?;
        let snapshot = profiler.end()?;
        self.begins.push(begin);
        self.ends.push(end);
        let probed = snapshot.number("/source/express/probed")? / snapshot.number("/overhead/marks")?;
        self.probed.push(100.0 * probed);
        Ok(())
    }
}
