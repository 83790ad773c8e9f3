//! Processes that a command starts, and that alone load an engine: they wait until it is probed, and all that they do is counted.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context as _, Result, ensure};
use nntrace_common::layer::Tag;
use nntrace_tests::{
    engines::{Engine, Size},
    live,
    profiler::{Profiler, Run},
};

/// Ways to start workers, and runs of each.
const WAYS: [(&str, u64); 6] =
    [("fork", 1), ("spawn", 1), ("forkserver", 1), ("pool", 1), ("programs", 1), ("fork", 2_000)];
const WORKERS: u64 = 3;
/// Times that each way is tried with one run.
const ROUNDS: usize = 3;

/// Sections by tag and name.
type Counts = BTreeMap<(String, String), u64>;

/// Runs the script, with this many runs in each worker; returns the sections in all of them.
fn counts(engine: Engine, way: &str, runs: u64, workers: u64) -> Result<(Counts, Vec<String>)> {
    let script = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/engines/run")).join(engine.script);
    let words = [
        engine.python()?.display().to_string(),
        script.display().to_string(),
        "--mode".to_owned(),
        way.to_owned(),
        engine.model(Size::Tiny)?.display().to_string(),
        runs.to_string(),
        workers.to_string(),
    ];
    let Run { snapshot, ended } = Profiler::new()?.env("PYTHONDONTWRITEBYTECODE", "1").launch(words)?;
    ended.expect_code(0)?;
    let mut counts = Counts::new();
    for row in snapshot.functions.iter().filter(|row| row.name != "waiting for nntrace-bpf") {
        *counts.entry((Tag::new(row.layer, row.phase).to_string(), row.name.clone())).or_default() +=
            row.count;
    }
    Ok((counts, snapshot.notes))
}

#[test]
fn loads_runs_and_operators_of_workers_are_counted_from_the_first_one_on() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let engine = Engine::new("onnxruntime", "onnxruntime_workers.py", "onnx");
    if !engine.is_there()? {
        return Ok(());
    }
    for (way, runs) in WAYS {
        // As the command itself it is stopped while it loads.
        let (alone, notes) = counts(engine, "itself", runs, 1)?;
        let runs_alone: u64 =
            alone.iter().filter(|((tag, _), _)| tag == "LR_PE").map(|(_, count)| count).sum();
        ensure!(runs_alone == runs, "{alone:?}: {notes:?}");
        ensure!(alone.keys().any(|(tag, _)| tag == "LC_PE"), "no operators: {alone:?}: {notes:?}");
        let wanted: Counts = alone.into_iter().map(|(name, count)| (name, count * WORKERS)).collect();
        for round in 0..if runs == 1 { ROUNDS } else { 1 } {
            let (found, notes) = counts(engine, way, runs, WORKERS).context(way)?;
            ensure!(found == wanted, "{way}, round {round}: {found:?}, expected {wanted:?}: {notes:?}");
        }
    }
    Ok(())
}
