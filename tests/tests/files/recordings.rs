//! Recordings of runs: their replay is the run, whatever was measured and lost.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use nntrace_tests::{
    binaries,
    child::Child,
    engines::{Engine, Size},
    live,
    native::Program,
    profiler::Profiler,
    recording::{self, Recording},
};

/// Cases of a test that repeats a run.
const CASES: usize = 8;
const VARIABLE: &str = "NNTRACE_CASES";

/// Checks that the replay of a recording is the run.
fn check(recorded: &Recording) -> Result<()> {
    let replayed = recording::replay(&recorded.path(), &[])?;
    recording::expect_same(&recorded.run.snapshot, &replayed)
}

fn record_and_check(options: &[&str], command: &[&str]) -> Result<Recording> {
    let recorded = Recording::of(options, command)?;
    check(&recorded).with_context(|| format!("{options:?} {command:?}"))?;
    Ok(recorded)
}

#[test]
fn a_replay_is_the_run() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let workload = binaries::workload()?;
    let network = [workload.to_str().context("UTF-8")?, "--quiet", "--inferences", "40"];
    let marks = record_and_check(&[], &network)?;
    assert!(marks.run.snapshot.phases.len() > 5, "{:?}", marks.run.snapshot.phases);
    let threads = record_and_check(&["--level", "sched", "--detail"], &network)?;
    assert!(!threads.run.snapshot.threads.is_empty());
    let causes = ["--causes", "--level", "sched", "--iteration-root", "classify", "--missing"];
    let causes = record_and_check(&causes, &network)?;
    assert!(!causes.run.snapshot.iterations.is_empty());
    check(&Recording::of_cpus(&["--duration", "500ms"])?)
}

#[test]
fn a_replay_of_lanes_is_the_run() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let command = [env!("CARGO_BIN_EXE_mark-lanes"), "--threads", "3", "--rounds", "300"];
    let lanes = record_and_check(&["--level", "sched"], &command)?;
    let express = lanes.run.snapshot.source.express.as_ref().context("no thread used a lane")?;
    assert!(express.marks > 0, "{express:?}");
    let flood = [env!("CARGO_BIN_EXE_mark-flood"), "--threads", "3", "--marks", "800000"];
    record_and_check(&["--ring-size", "4096"], &flood).map(drop)
}

#[test]
fn a_replay_of_an_engine_is_the_run() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    // They are loaded after the start, at which a command is stopped until they are probed.
    let engines = [
        Engine::new("onnxruntime", "onnxruntime_c.py", "onnx"),
        Engine::new("litert", "tflite_python.py", "tflite"),
        Engine::new("ncnn", "ncnn_python.py", "ncnn"),
    ];
    for engine in engines {
        if !engine.is_there()? {
            continue;
        }
        let words = engine.words(Size::Tiny, 50)?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let recorded = record_and_check(&["--engine-level", "op", "--level", "sched"], &words)?;
        let snapshot = &recorded.run.snapshot;
        let engines = &snapshot.source.engines;
        assert!(engines.iter().any(|found| found.engine == engine.name), "{engines:?}");
        let most = snapshot.functions.iter().map(|row| row.count).max();
        assert!(most.is_some_and(|count| count >= 50), "{}: {most:?}", engine.name);
    }
    Ok(())
}

#[test]
fn a_replay_of_a_run_with_losses_has_its_totals_and_its_losses() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    for what in ["sections", "names", "accounts", "counters", "sends", "slices", "begins"] {
        let command =
            [env!("CARGO_BIN_EXE_mark-flood"), "--what", what, "--threads", "3", "--marks", "120000"];
        let lossy = record_and_check(&["--ring-size", "4", "--level", "sched"], &command)?;
        assert!(lossy.run.snapshot.loss.records_dropped > 0, "{what}: a ring of one page has held it all");
    }
    Ok(())
}

/// Returns the number of cases of a repeated test.
fn cases() -> Result<usize> {
    match std::env::var(VARIABLE) {
        Ok(text) => text.parse().with_context(|| format!("{VARIABLE}={text}")),
        Err(_) => Ok(CASES),
    }
}

#[test]
fn threads_are_named_by_their_ancestry() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let program = Program::build("ancestry.c")?;
    let expected = ["main", "main_0", "main_0_0", "main_0_1", "main_0_2", "main_1"];
    for case in 0..cases()? {
        let recorded = Recording::of(&["--marks", "uprobe"], [program.path()])?;
        let files = recording::files(&recorded.path())?;
        let threads: Vec<&str> = files
            .iter()
            .filter_map(|name| name.strip_suffix(".nnt"))
            .filter(|name| name.starts_with("main"))
            .collect();
        assert_eq!(threads, expected, "case {case}: {files:?}");
    }
    Ok(())
}

#[test]
fn a_recording_is_not_written_over_unless_that_is_asked_for() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("run");
    let record = |options: &[&str], duration: &str| -> Result<_> {
        let mut profiler = Profiler::new()?
            .args(["record", "--marks", "none", "--duration", duration, "-o"])
            .args([&path])
            .args(options);
        Child::run(profiler.command())
    };
    record(&[], "300ms")?.expect_code(0)?;
    let before = contents(&path)?;
    let refused = record(&[], "300ms")?.expect_code(1)?;
    assert!(refused.stderr.contains("--force"), "{}", refused.stderr);
    assert_eq!(contents(&path)?, before);
    record(&["--force"], "300ms")?.expect_code(0)?;
    assert_ne!(contents(&path)?, before);
    // A folder with anything else in it is nobody's to empty.
    fs::write(path.join("notes.txt"), "mine")?;
    record(&["--force"], "300ms")?.expect_code(1)?;
    assert_eq!(fs::read_to_string(path.join("notes.txt"))?, "mine");
    Ok(())
}

fn contents(folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    recording::files(folder)?
        .into_iter()
        .map(|name| {
            let bytes = fs::read(folder.join(&name))?;
            Ok((name, bytes))
        })
        .collect()
}

#[test]
fn the_status_of_the_command_is_that_of_the_recorder() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let recorded = Recording::of(&["--marks", "none"], ["sh", "-c", "exit 7"])?;
    recorded.run.ended.expect_code(7)?;
    Ok(())
}

#[test]
fn a_recording_is_shown_at_the_speed_that_is_asked_for() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let recorded = Recording::of_cpus(&["--interval", "300ms", "--duration", "2s"])?;
    let begun = Instant::now();
    let mut profiler = Profiler::new()?.args(["replay", "--speed", "2x"]).args([recorded.path()]);
    let shown = Child::run(profiler.command())?.expect_code(0)?.text();
    // The last state is of the end of the run.
    assert!(begun.elapsed() >= Duration::from_millis(990), "{:?}", begun.elapsed());
    assert!(shown.matches("--- ").count() >= 3, "{shown}");
    Ok(())
}
