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

/// Profiles a program of two threads and a child, by lanes and by probes: every section is counted either way.
pub fn of_threads() -> Result<Outcome> {
    for program in marks::programs(|name| name.starts_with(LANES))? {
        for marks in ["express", "uprobe"] {
            let profiler = Profiler::new()?.args(["--marks", marks]);
            let Run { snapshot, ended } =
                profiler.launch([program.as_os_str(), ROUNDS.to_string().as_ref()])?;
            ended.expect_code(0)?;
            let what = format!("{} by {marks}", program.display());
            ensure!(snapshot.odd_marks().is_empty(), "{what}: odd marks: {:?}", snapshot.odd_marks());
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
            ensure!(express.marks > 0, "{what}: {express:?}");
            println!("{what}: {express:?}");
        }
    }
    Ok(Outcome::Passed)
}
