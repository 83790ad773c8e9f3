//! Exporting a recording: how fast the result is written, and how much memory it takes.

use std::fs;

use anyhow::{Context, Result};

use crate::{
    bench::{
        recording::{info, number, recorded_load, streams},
        release,
        replay::{Usage, timed},
        table::Table,
    },
    run::command,
};

/// Load, as `paced` takes it: 10 million sections in 4 s.
const LOAD: &str = "2 1250 4000";
/// Least speed of output, MB/s.
const GOAL_SPEED: f64 = 100.0;
/// Most memory, MB: what the tables of a replay have room for.
const GOAL_MEMORY: f64 = 512.0;

/// Measures the export of 10 million sections.
pub fn measure(rounds: u32) -> Result<Table> {
    let recording = recorded_load("exported-recording", LOAD)?;
    let events: f64 = streams(&info(&recording.0)?).map(|stream| number(stream, "events")).sum();
    let mut table = Table::new("exporting a recording");
    for (name, ending) in [("Perfetto", "pftrace")] {
        let output = recording.0.with_extension(ending);
        let (mut speeds, mut times, mut peak) = (Vec::new(), Vec::new(), 0.0);
        for _ in 0..rounds {
            let mut export = command(release("nntrace-bpf")?);
            export.args(["export", "--force", "-o"]).arg(&output).arg(&recording.0);
            let Usage { wall, cpu, peak: memory } = timed(&mut export)?.0;
            let bytes = fs::metadata(&output).with_context(|| format!("no {}", output.display()))?.len();
            speeds.push(bytes as f64 / 1e6 / wall);
            times.push(cpu * 1e9 / events);
            peak = memory;
        }
        fs::remove_file(&output).with_context(|| format!("cannot remove {}", output.display()))?;
        table.row(&format!("{name}: MB of output a second"), &speeds).at_least(GOAL_SPEED);
        table.row(&format!("{name}: ns of CPU an event"), &times);
        table.row(&format!("{name}: memory at most, MB"), &[peak]).at_most(GOAL_MEMORY);
    }
    table.note(format!("{events} events of a recording"));
    Ok(table)
}
