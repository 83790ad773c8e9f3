//! Collector on the express lane: what it takes for a mark, and how many it can take.

use anyhow::Result;

use crate::bench::{child::Running, pairs, profiler::Profiler, spread::paired, table::Table};

/// Marks of a program in a round.
const MARKS: u32 = 10_000_000;

/// Figures of a round.
struct Round {
    /// Marks by the program's own count, and by ours.
    written: f64,
    counted: f64,
    /// Marks that took the probe, as the ring was full, and that are lost.
    probed: f64,
    lost: f64,
    seconds: f64,
    cpu_ns: f64,
}

/// Measures one program, and two at once, that do nothing but write marks.
pub fn measure(rounds: u32) -> Result<Table> {
    let program = pairs::program()?;
    let mut table = Table::new("collector on the express lane");
    for programs in [1, 2] {
        let mut loads = (0..programs).map(|_| pairs::start(&program)).collect::<Result<Vec<_>>>()?;
        let mut found = Vec::new();
        for _ in 0..rounds {
            let idle = round(&mut loads, 0)?;
            let busy = round(&mut loads, MARKS / 2)?;
            found.push(Round { cpu_ns: busy.cpu_ns - idle.cpu_ns, ..busy });
        }
        let all = |figure: fn(&Round) -> f64| -> Vec<f64> { found.iter().map(figure).collect() };
        let subject = |what: &str| format!("{what}, {programs} threads");
        let counted = all(|round| round.counted);
        table.row(&subject("million marks a second"), &all(|round| round.written / round.seconds / 1e6));
        table.row(
            &subject("ns of the collector's CPU a mark"),
            &paired(&all(|round| round.cpu_ns), &counted, |ns, marks| ns / marks),
        );
        table.row(
            &subject("marks that took the probe, %"),
            &paired(&all(|round| round.probed), &counted, |part, all| 100.0 * part / all),
        );
        table.row(
            &subject("marks lost, %"),
            &paired(&all(|round| round.lost), &all(|round| round.written), |part, all| 100.0 * part / all),
        );
        table.row(
            &subject("marks neither counted nor known to be lost"),
            &found.iter().map(|round| round.written - round.counted - round.lost).collect::<Vec<_>>(),
        );
    }
    table.note("all threads write marks without a pause; the collector has what CPU they leave it");
    Ok(table)
}

/// Profiles the programs while each writes this many sections; none is a round without marks.
fn round(loads: &mut [Running], sections: u32) -> Result<Round> {
    let pids: Vec<String> = loads.iter().map(|load| format!("--pid={}", load.pid())).collect();
    let args: Vec<&str> = pids.iter().map(String::as_str).chain(["--marks=express"]).collect();
    let (profiler, _) = Profiler::attach(&args)?;
    let mut written = 0.0;
    if sections > 0 {
        for load in &mut *loads {
            load.send(&format!("pairs {sections}"))?;
        }
        for load in loads {
            let [_, sections]: [f64; 2] = load.numbers()?;
            written += 2.0 * sections;
        }
    }
    let snapshot = profiler.end()?;
    let number = |pointer: &str| snapshot.number(pointer).unwrap_or(0.0);
    Ok(Round {
        written,
        counted: snapshot.number("/overhead/marks")?,
        probed: number("/source/express/probed"),
        lost: number("/source/express/lost"),
        seconds: snapshot.seconds()?,
        cpu_ns: snapshot.number("/overhead/collector_cpu_ns")?,
    })
}
