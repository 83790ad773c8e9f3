//! Collector on the express lane: what it takes for a mark, and how many it can take.

use std::path::Path;

use anyhow::Result;

use crate::{
    bench::{
        child::Running,
        pairs::compile,
        process::cpu_seconds,
        profiler::{Profiler, Snapshot},
        spread::paired,
        table::Table,
    },
    run::command,
};

/// Source of the program, from the workspace's root.
const SOURCE: &str = "xtask/src/bench/paced.c";
/// Largest CPU time of the collector for a mark, ns.
const GOAL_NS: f64 = 25.0;

/// How marks are written.
struct Load {
    name: &'static str,
    threads: u32,
    /// Sections of each thread in a millisecond; 0: as many as it can.
    pace: u32,
    milliseconds: u32,
    /// Whether nothing may be lost or take the probe.
    is_within_bounds: bool,
}

const LOADS: [Load; 3] = [
    Load { name: "one thread, no pause", threads: 1, pace: 0, milliseconds: 2_000, is_within_bounds: false },
    Load { name: "two threads, no pause", threads: 2, pace: 0, milliseconds: 2_000, is_within_bounds: false },
    // A section is two marks: 5 million marks a second.
    Load {
        name: "two threads, 5 M marks/s",
        threads: 2,
        pace: 1_250,
        milliseconds: 10_000,
        is_within_bounds: true,
    },
];

/// Figures of a round.
struct Round {
    /// Marks by the program's own count, and by ours, which has the lost ones in it.
    written: f64,
    seen: f64,
    /// Marks that took the probe, as the ring was full, and that are lost.
    probed: f64,
    lost: f64,
    seconds: f64,
    /// CPU time of the collector by its own clock and by the kernel's count, ns.
    cpu_ns: f64,
    kernel_cpu_ns: f64,
}

/// Measures threads that do nothing but write marks; the long loads in a third of the rounds.
pub fn measure(rounds: u32) -> Result<Table> {
    let program = compile(SOURCE, "paced", &["-I", "nntrace-common/include", "-pthread"])?;
    let mut table = Table::new("collector on the express lane");
    for load in &LOADS {
        let rounds = if load.is_within_bounds { rounds.div_ceil(3) } else { rounds };
        let found = (0..rounds).map(|_| load.round(&program)).collect::<Result<Vec<_>>>()?;
        load.add_rows(&mut table, &found);
    }
    table.note(
        "the collector has what CPU the threads leave it; its CPU time is counted from the first mark on",
    );
    table.note("5 M marks/s: 1,250 sections of each thread in a burst every millisecond, for 10 s");
    Ok(table)
}

impl Load {
    /// Profiles the program while its threads write. Each round has a process of its own: in one that another profiler has
    /// read lanes of, the next one waits for the end of the leases.
    fn round(&self, program: &Path) -> Result<Round> {
        let mut program = Running::start(&mut command(program))?;
        let (profiler, first) = Profiler::attach(&["--marks=express", "--pid", &program.pid().to_string()])?;
        let cpu_before = cpu_seconds(profiler.pid())?;
        let request = format!("{} {} {}", self.threads, self.pace, self.milliseconds);
        let [sections, took_ns]: [f64; 2] = program.ask(&request)?;
        let kernel_cpu_ns = (cpu_seconds(profiler.pid())? - cpu_before) * 1e9;
        let snapshot = profiler.end()?;
        let number = |pointer: &str| snapshot.number(pointer).unwrap_or(0.0);
        let cpu_ns = |snapshot: &Snapshot| snapshot.number("/overhead/collector_cpu_ns");
        Ok(Round {
            written: 2.0 * sections,
            seen: snapshot.number("/overhead/marks")?,
            probed: number("/source/express/probed"),
            lost: number("/source/express/lost"),
            seconds: took_ns / 1e9,
            cpu_ns: cpu_ns(&snapshot)? - cpu_ns(&first)?,
            kernel_cpu_ns,
        })
    }

    fn add_rows(&self, table: &mut Table, found: &[Round]) {
        let all = |figure: fn(&Round) -> f64| -> Vec<f64> { found.iter().map(figure).collect() };
        let subject = |what: &str| format!("{what}, {}", self.name);
        let percent = |part: fn(&Round) -> f64| -> Vec<f64> {
            paired(&all(part), &all(|round| round.written), |part, all| 100.0 * part / all)
        };
        let per_mark = |ns: fn(&Round) -> f64| -> Vec<f64> {
            paired(&all(ns), &all(|round| round.seen - round.lost), |ns, marks| ns / marks)
        };
        let speed =
            table.row(&subject("million marks a second"), &all(|round| round.written / round.seconds / 1e6));
        if self.is_within_bounds {
            // The last burst may be late.
            speed.at_least(4.95);
        }
        table
            .row(&subject("ns of the collector's CPU a mark"), &per_mark(|round| round.cpu_ns))
            .at_most(GOAL_NS);
        table
            .row(&subject("the same by utime and stime"), &per_mark(|round| round.kernel_cpu_ns))
            .at_most(GOAL_NS);
        table.row(&subject("marks that took the probe, %"), &percent(|round| round.probed));
        let lost = table.row(&subject("marks lost, %"), &percent(|round| round.lost));
        if self.is_within_bounds {
            lost.at_most(0.0);
        }
        table
            .row(
                &subject("marks neither counted nor known to be lost"),
                &all(|round| (round.written - round.seen).abs()),
            )
            .at_most(0.0);
    }
}
