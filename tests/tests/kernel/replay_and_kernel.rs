//! The same random marks through the kernel programs and through replay: equal frames, stacks and diagnostics.

use std::{ffi::OsString, fmt::Write as _};

use anyhow::{Context as _, Result};
use nntrace_tests::{
    live,
    profiler::{Profiler, Run},
    results::Results as _,
    trace::{self, Random, payload},
};
use nntrace_user::report::snapshot::{FunctionRow, Snapshot};

const THREADS: u32 = 4;
const MARKS: u64 = 4_000;

#[test]
fn the_kernel_counts_what_replay_counts() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    for seed in 1..=3 {
        let mut random = Random::new(seed);
        let (mut stream, mut text) = (String::new(), String::new());
        for number in 0..MARKS {
            let (thread, payload) = (random.below(u64::from(THREADS)) as u32, payload(&mut random));
            let _ = writeln!(stream, "{thread} {payload}");
            let _ = writeln!(text, "{}", trace::line(number * 1_000, 100 + thread, 100, &payload));
        }
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), stream)?;
        let replayed = trace::replay(text)?;
        let command = [OsString::from(env!("CARGO_BIN_EXE_mark-streams")), file.path().into()];
        let Run { snapshot: live, ended } = Profiler::new()?.launch(command)?;
        ended.expect_code(0)?;
        let pid = *live.pids().first().context("no process has results")?;
        assert_eq!(live.stack_counts(pid), replayed.stack_counts(100), "seed {seed}");
        assert_eq!(live.counts(pid), replayed.counts(100), "seed {seed}");
        let odd = |snapshot: &Snapshot| {
            let mut odd: Vec<(String, u64)> =
                snapshot.odd_marks().iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect();
            // The order of finished executions depends on how the threads ran.
            odd.retain(|(kind, _)| kind != "wait_missing");
            odd
        };
        assert_eq!(odd(&live), odd(&replayed), "seed {seed}");
        let functions = |snapshot: &Snapshot| {
            let rows = snapshot.functions.iter();
            let row = |row: &FunctionRow| (row.layer, row.phase, row.name.clone(), row.count);
            rows.map(row).collect::<Vec<_>>()
        };
        assert_eq!(functions(&live), functions(&replayed), "seed {seed}");
    }
    Ok(())
}
