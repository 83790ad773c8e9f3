//! The profiler's figures for a real network against the counts and times of that network itself.

use anyhow::{Context as _, Result, bail, ensure};
use nntrace_common::layer::Tag;
use nntrace_tests::{
    binaries, live,
    profiler::{Profiler, Run},
    results::Results as _,
    truth::{PhaseTotal, Truth},
};
use nntrace_user::report::snapshot::PhaseRow;

/// Number of classified images.
const INFERENCES: u64 = 100;

/// Runs the workload under the profiler.
fn measure() -> Result<(Run, Truth)> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("truth.json");
    let command = [
        binaries::workload()?.into_os_string(),
        "--quiet".into(),
        "--inferences".into(),
        INFERENCES.to_string().into(),
        "--truth".into(),
        file.clone().into(),
    ];
    let run = Profiler::new()?.launch(command)?;
    ensure!(run.ended.code() == Some(0), "{:?}", run.ended);
    ensure!(run.snapshot.loss.records_dropped == 0, "nothing was to be lost: {:?}", run.snapshot.loss);
    let truth = Truth::read(&file)?;
    ensure!(truth.inferences == INFERENCES && truth.processes.len() == 2, "{truth:?}");
    Ok((run, truth))
}

#[test]
fn counts_and_totals_are_what_the_workload_measured_itself() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let (Run { snapshot, .. }, truth) = measure()?;
    assert_eq!(snapshot.odd_marks(), [].into());
    let mut pids: Vec<u32> = truth.processes.iter().map(|process| process.pid).collect();
    pids.sort_unstable();
    assert_eq!(snapshot.pids(), pids, "processes with results");
    for process in &truth.processes {
        let rows: Vec<&PhaseRow> = snapshot.phases.iter().filter(|row| row.pid == process.pid).collect();
        assert_eq!(rows.len(), process.phases.len(), "layers and phases of the {}", process.role);
        for expected in &process.phases {
            let tag = format!("{}_{}", expected.layer, expected.phase);
            let row = snapshot.phase(process.pid, &tag).with_context(|| format!("{tag} is missing"))?;
            assert_eq!(row.count, expected.count, "{tag}");
            check_total(row, expected)?;
            check_distribution(row)?;
        }
    }
    Ok(())
}

/// Checks a total: the kernel's clock was read between the workload's own two readings around each mark.
fn check_total(row: &PhaseRow, expected: &PhaseTotal) -> Result<()> {
    let inside = expected.bounds.range().contains(&row.total_ns);
    ensure!(inside, "{}: {} ns, {expected:?}", Tag::new(row.layer, row.phase), row.total_ns);
    Ok(())
}

/// Checks that every frame is in the histogram, whose sum is the total within its three digits, and that percentiles stay within
/// the exact extremes.
fn check_distribution(row: &PhaseRow) -> Result<()> {
    let histogram = row.histogram.as_ref().with_context(|| format!("no histogram: {row:?}"))?;
    ensure!(histogram.len() == row.count, "{} entries: {row:?}", histogram.len());
    let sum = histogram.mean() * histogram.len() as f64;
    let off = (sum - row.total_ns as f64).abs();
    ensure!(off <= row.total_ns as f64 * 0.002 + row.count as f64, "the histogram sums up to {sum}: {row:?}");
    let (Some(min), Some(max)) = (row.min_ns, row.max_ns) else { bail!("no extremes: {row:?}") };
    let median = histogram.value_at_quantile(0.5).clamp(min, max);
    ensure!(row.p50_ns == Some(median), "the histogram's median is {median}: {row:?}");
    Ok(())
}

#[test]
fn functions_and_stacks_are_those_of_the_program() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let (Run { snapshot, .. }, truth) = measure()?;
    let pid =
        |role: &str| truth.processes.iter().find(|process| process.role == role).map(|process| process.pid);
    let (application, driver) = (pid("application").unwrap(), pid("driver").unwrap());

    // The application's marks of this function carry `#iter=N`.
    for (pid, layer, phase, name, count) in [
        (application, "LA", "PO", "workload", 1),
        (application, "LA", "PE", "classify", INFERENCES),
        (application, "LR", "PP", "create model", 1),
        (application, "LR", "PE", "execute", INFERENCES),
        (application, "LI", "PE", "execute", INFERENCES),
        (application, "LC", "PTR", "channels first", INFERENCES),
        (application, "LC", "PCO", "classifier", INFERENCES),
        (driver, "LD", "PIO", "read input", INFERENCES),
        (driver, "LD", "PIO", "write output", INFERENCES),
        (driver, "LD", "PCO", "extractor", INFERENCES),
    ] {
        let mut rows = snapshot.functions.iter();
        let of = |row: &&_| {
            let row: &nntrace_user::report::snapshot::FunctionRow = row;
            (row.pid, row.layer.code(), row.phase.code(), &*row.name) == (pid, layer, phase, name)
        };
        let row = rows.find(of).with_context(|| format!("{layer}_{phase} {name} is missing"))?;
        assert_eq!(row.count, count, "{row:?}");
    }
    assert!(snapshot.functions.iter().all(|row| !row.name.contains('#') && !row.name.starts_with('?')));

    let stacks = snapshot.stack_counts(application);
    for (stack, count) in [
        ("LA_PO", 1),
        ("LA_PO LA_PBM", 1),
        ("LA_PO LR_PC LI_PC", 1),
        ("LA_PO LA_PT LR_PT LI_PT", 1),
        ("LA_PE LR_PE LI_PE", INFERENCES),
        ("LA_PE LR_PE LR_PIO", INFERENCES),
        // One replaces the other by a switch: neither is in the other.
        ("LA_PE LR_PE LC_PE LC_PTR", INFERENCES),
        ("LA_PE LR_PE LC_PE LC_PCO", INFERENCES),
    ] {
        assert_eq!(stacks.get(stack), Some(&count), "{stack} of {stacks:#?}");
    }
    let driver = snapshot.stack_counts(driver);
    assert_eq!(driver.get("LD_PE LD_PIO"), Some(&(2 * INFERENCES)), "{driver:#?}");
    Ok(())
}
