//! Marks as fast as several threads can write them: the totals stay exact, even when the rings overflow.

use std::time::Duration;

use anyhow::{Context as _, Result};
use nntrace_tests::{
    live,
    profiler::{Profiler, Run},
    results::Results as _,
};
use nntrace_user::report::snapshot::Snapshot;

/// Number of marks by default; [`VARIABLE`] sets another one, as a VM takes a thousand times as long for each. Four
/// make a round: two begins, two ends.
const MARKS: u64 = 1_000_000;
const VARIABLE: &str = "NNTRACE_FLOOD_MARKS";
/// Time limit on a loaded host.
const LIMIT: Duration = Duration::from_mins(3);

/// Returns the number of rounds.
fn rounds() -> Result<u64> {
    let marks = match std::env::var(VARIABLE) {
        Ok(text) => text.parse().with_context(|| format!("{VARIABLE}={text}"))?,
        Err(_) => MARKS,
    };
    Ok(marks / 4)
}

fn flood(ring: &str, rounds: u64) -> Result<Snapshot> {
    let marks = (rounds * 4).to_string();
    let command = [env!("CARGO_BIN_EXE_mark-flood"), "--threads", "4", "--marks", &marks];
    let run = Profiler::new()?.limit(LIMIT).args(["--ring-size", ring]).launch(command)?;
    let Run { snapshot, ended } = run;
    let ended = ended.expect_code(0)?;
    assert_eq!(ended.text(), format!("ready\ndone {rounds}\n"));
    Ok(snapshot)
}

/// Checks that every total of the one process is exact.
fn check_totals(snapshot: &Snapshot, rounds: u64) -> Result<()> {
    let pid = *snapshot.pids().first().context("no process has results")?;
    assert_eq!(snapshot.pids(), [pid]);
    // The computation is not inside an execution of its own layer, and so also counts as that layer's execution.
    let phases = [("LR_PE", rounds), ("LC_PE", rounds), ("LC_PCO", rounds)];
    assert_eq!(snapshot.counts(pid), phases.map(|(tag, count)| (tag.to_owned(), count)).into());
    let stacks = [("LR_PE", rounds), ("LR_PE LC_PCO", rounds)];
    assert_eq!(snapshot.stack_counts(pid), stacks.map(|(path, count)| (path.to_owned(), count)).into());
    assert_eq!(snapshot.odd_marks(), [].into());
    let total = |tag: &str| snapshot.phase(pid, tag).map_or(0, |row| row.total_ns);
    assert_eq!(total("LC_PE"), total("LC_PCO"));
    // Four threads cannot have been in it for longer than four times the window.
    assert!(total("LC_PCO") <= total("LR_PE") && total("LR_PE") <= 4 * snapshot.window.length_ns());
    Ok(())
}

#[test]
fn a_million_marks_are_counted_exactly() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let rounds = rounds()?;
    let snapshot = flood("4096", rounds)?;
    check_totals(&snapshot, rounds)?;
    // Spans, and a few records of processes and of power.
    assert!(snapshot.loss.records_produced >= 2 * rounds, "{:?}", snapshot.loss);
    assert!(snapshot.overhead.marks >= 4 * rounds, "{:?}", snapshot.overhead);
    Ok(())
}

#[test]
fn totals_are_exact_though_the_rings_overflow_and_what_was_dropped_is_counted() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let rounds = rounds()?;
    let snapshot = flood("4", rounds)?;
    check_totals(&snapshot, rounds)?;
    assert!(snapshot.loss.records_produced >= 2 * rounds, "{:?}", snapshot.loss);
    assert!(snapshot.loss.records_dropped > 0, "a ring of one page has held it all: {:?}", snapshot.loss);
    // Only records that were drained can be in the functions.
    let recorded: u64 = snapshot.functions.iter().map(|row| row.count).sum();
    assert!(recorded > 0 && recorded <= snapshot.loss.records_drained, "{recorded} {:?}", snapshot.loss);
    Ok(())
}
