//! The express lane: programs whose threads write to rings that the profiler reads.

use anyhow::{Context as _, Result, ensure};
use nntrace_tests::{
    profiler::{Profiler, Run},
    results::Results as _,
};

use crate::{Outcome, marks};

/// Prefix of the names of programs that use lanes.
const LANES: &str = "lanes-";
/// Sections of each name in a thread.
const ROUNDS: u64 = 2_000;
/// KiB of each CPU's ring: enough for all that the threads mark by probes, so that nothing depends on how soon the profiler,
/// which is emulated as well, reads it.
const RING_KIB: &str = "4096";

/// Profiles a program of two threads and a child, by lanes and by probes: every section is counted either way.
pub fn of_threads() -> Result<Outcome> {
    for program in marks::programs(|name| name.starts_with(LANES))? {
        for marks in ["auto", "uprobe"] {
            let profiler = Profiler::new()?.args(["--marks", marks, "--ring-size", RING_KIB]);
            let Run { snapshot, ended } =
                profiler.launch([program.as_os_str(), ROUNDS.to_string().as_ref()])?;
            ended.expect_code(0)?;
            let what = format!("{} by {marks}", program.display());
            ensure!(snapshot.odd_marks().is_empty(), "{what}: odd marks: {:?}", snapshot.odd_marks());
            ensure!(snapshot.loss.records_dropped == 0, "{what}: {:?}", snapshot.loss);
            let mut found: Vec<_> =
                snapshot.functions.iter().map(|row| (row.name.as_str(), row.count)).collect();
            found.sort_unstable();
            let (child, parent) = (ROUNDS, 2 * ROUNDS);
            let expected = [("inner", child), ("inner", parent), ("outer", child), ("outer", parent)];
            ensure!(found == expected, "{what}: {found:?}; {:?} {:?}", snapshot.source, snapshot.notes);
            if marks == "uprobe" {
                ensure!(snapshot.source.express.is_none(), "{what}: {:?}", snapshot.source);
                continue;
            }
            let express = snapshot.source.express.with_context(|| format!("{what}: {:?}", snapshot.notes))?;
            ensure!(express.threads >= 2 && express.lost == 0 && express.damaged == 0, "{what}: {express:?}");
            // How many depends on the turns that the emulated CPUs get: at times the profiler has none while the rings are full.
            ensure!(express.marks > 0, "{what}: {express:?}");
            println!("{what}: {express:?}");
        }
    }
    Ok(Outcome::Passed)
}
