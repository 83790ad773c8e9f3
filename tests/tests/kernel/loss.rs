//! Under loss every figure is exact, or marked in the snapshot as inexact.

use std::{path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use nntrace_common::layer::Tag;
use nntrace_tests::{
    c,
    child::Child,
    figures, live,
    profiler::{Profiler, Run},
    results::Results as _,
};
use nntrace_user::report::snapshot::{Snapshot, TableRow};

/// Number of executions of one benchmark phase: more records than rings of the default size hold.
const RUNS: &str = "9000";

/// Traces the program with a ring of this size, or with a collector that is stopped while it runs.
fn run(program: &Path, ring: &str, is_starved: bool) -> Result<Snapshot> {
    run_with(program, &[RUNS], ring, is_starved)
}

fn run_with(program: &Path, arguments: &[&str], ring: &str, is_starved: bool) -> Result<Snapshot> {
    let mut command = Command::new(program);
    command.args(arguments);
    let mut child = Child::start(&mut command)?;
    child.lines(1)?;
    let pid = child.pid().to_string();
    let attached = Profiler::new()?.args(["--ring-size", ring, "--pid", &pid, "--detail"]).attach()?;
    if is_starved {
        attached.signal(Signal::SIGSTOP)?;
    }
    child.send_line("go on")?;
    child.lines(2)?;
    if is_starved {
        attached.signal(Signal::SIGCONT)?;
    }
    attached.signal(Signal::SIGTERM)?;
    let Run { snapshot, ended } = attached.finish()?;
    ended.expect_code(0)?;
    child.send_line("end")?;
    child.wait()?.expect_code(0)?;
    Ok(snapshot)
}

/// Compares a lossy run with one without losses: differences have to be named as incomplete.
fn check(lossy: &Snapshot, lossless: &Snapshot) -> Result<()> {
    ensure!(lossless.loss.records_dropped == 0, "{:?}", lossless.loss);
    ensure!(lossless.loss.incomplete.is_empty(), "{:?}", lossless.loss);
    ensure!(lossy.loss.records_dropped > 0, "{:?}", lossy.loss);
    let (found, expected) = (figures::of(lossy)?, figures::of(lossless)?);
    let mut differing = 0;
    let places: std::collections::BTreeSet<&String> = found.keys().chain(expected.keys()).collect();
    for place in places {
        let (left, right) = (found.get(place), expected.get(place));
        if left.map(|(_, value)| value) == right.map(|(_, value)| value) {
            continue;
        }
        differing += 1;
        let (key, _) = left.or(right).context("it is in one of them")?;
        ensure!(lossy.loss.makes_incomplete(key), "{place} is exact, but {left:?} is not {right:?}");
    }
    ensure!(differing > 0, "what was lost is missing nowhere");
    Ok(())
}

/// Checks the number of reports in the contract's table, and that they add up to the phases.
fn reports_are_the_phases(snapshot: &Snapshot, reports: usize) -> Result<()> {
    ensure!(!snapshot.loss.makes_incomplete("reports"), "{:?}", snapshot.loss.incomplete);
    ensure!(snapshot.reports.len() == reports, "{} reports", snapshot.reports.len());
    let pid = *snapshot.pids().first().context("no process has results")?;
    // Not `LA_PO`: the table's column of all phases has other rules.
    for tag in ["LA_PC", "LA_PE", "LR_PC", "LR_PE", "LR_PTR", "LC_PE", "LC_PCO"] {
        let cell: Tag = tag.parse()?;
        let times = snapshot.reports.iter().map(|report| &report.total_ns);
        let in_reports: i64 = times.map(|times| times.get(TableRow::Layer(cell.layer()), cell.phase())).sum();
        let in_phases = snapshot.phase(pid, tag).map_or(0, |row| row.total_ns);
        ensure!(in_reports == i64::try_from(in_phases)?, "{tag}: {in_reports} and {in_phases}");
    }
    Ok(())
}

#[test]
fn under_loss_every_figure_is_exact_or_named_as_incomplete() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let program = c::program(folder.path(), "benchmark.c")?;
    let lossless = run(&program, "65536", false)?;
    reports_are_the_phases(&lossless, 2)?;
    for (ring, is_starved) in [("4", true), ("512", true)] {
        let lossy = run(&program, ring, is_starved)?;
        let about = || format!("ring of {ring} KiB, starved: {is_starved}");
        reports_are_the_phases(&lossy, 2).with_context(about)?;
        check(&lossy, &lossless).with_context(about)?;
    }
    Ok(())
}

#[test]
fn reports_beyond_those_that_the_kernel_numbers_are_made_of_records() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let program = c::program(folder.path(), "benchmark.c")?;
    reports_are_the_phases(&run_with(&program, &["1", "3000"], "65536", false)?, 3000)?;
    let lossy = run_with(&program, &["1", "3000"], "4", true)?;
    ensure!(lossy.loss.records_dropped > 0, "{:?}", lossy.loss);
    ensure!(lossy.loss.makes_incomplete("reports"), "{:?}", lossy.loss);
    Ok(())
}

#[test]
fn tables_mark_what_is_incomplete() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let flood = env!("CARGO_BIN_EXE_mark-flood");
    let shown = |ring: &str, table: &str| -> Result<String> {
        let mut profiler = Profiler::new()?.args(["--ring-size", ring, "--interval", "1h", "--table", table]);
        let command = profiler.command().args(["--", flood, "--marks", "400000"]);
        Ok(Child::start(command)?.wait()?.expect_code(0)?.text())
    };
    assert!(shown("4", "summary")?.contains('~'));
    assert!(!shown("65536", "summary")?.contains('~'));
    // One report, of synchronous executions only: the kernel keeps it.
    assert!(!shown("4", "nnapi")?.contains('~'));
    Ok(())
}
