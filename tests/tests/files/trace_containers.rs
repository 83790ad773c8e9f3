//! One trace as text, as `trace.dat` and as a trace of Perfetto: results, lists of sections and causes are the same. Two
//! processes in one trace, with the same thread ids: each has the results that it has alone.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use nntrace_tests::{
    child::Child,
    kernel_trace::{Event, Kind, Trace, perfetto, random, text, trace_dat},
    profiler::Profiler,
    trace::replay_file_with,
};
use nntrace_user::{model::causality::Questions, replay::Options};
use serde_json::Value;
use tempfile::TempDir;

/// Random traces.
const TRACES: u64 = 2_000;
/// One in this many has all its views compared, by the program itself.
const ALL_VIEWS: u64 = 50;

/// Views that are compared, with the options that they take.
const VIEWS: [&[&str]; 3] =
    [&["replay", "--handoff", "--json"], &["print", "--json-lines"], &["why", "--json"]];

/// Returns what a view shows of a file, without its name.
fn shown(view: &[&str], file: &Path) -> Result<Vec<Value>> {
    let mut profiler = Profiler::new()?.args(view).args([file]);
    let ended = Child::run(profiler.command())?;
    if ended.status.success() {
        let lines = serde_json::Deserializer::from_slice(&ended.stdout).into_iter();
        let mut values: Vec<Value> = lines.collect::<Result<_, _>>()?;
        for value in &mut values {
            if let Some(source) = value.get_mut("source").and_then(Value::as_object_mut) {
                source.remove("files");
            }
        }
        return Ok(values);
    }
    let name = file.display().to_string();
    Ok(vec![Value::String(ended.stderr.replace(&name, "FILE"))])
}

/// Checks that two values are equal, and names the first place where they are not.
fn expect_equal(at: &str, one: &Value, other: &Value) -> Result<()> {
    match (one, other) {
        (Value::Object(all), Value::Object(others)) => {
            for key in all.keys().chain(others.keys()) {
                let of = |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or_default();
                expect_equal(&format!("{at}/{key}"), &of(all), &of(others))?;
            }
        }
        (Value::Array(all), Value::Array(others)) if all.len() == others.len() => {
            for (place, (one, other)) in all.iter().zip(others).enumerate() {
                expect_equal(&format!("{at}[{place}]"), one, other)?;
            }
        }
        _ => ensure!(one == other, "{at}: {one} and {other}"),
    }
    Ok(())
}

/// Returns a random trace: those with all views are long.
fn trace(seed: u64) -> Trace {
    let events = if seed.is_multiple_of(ALL_VIEWS) { 2_000 } else { 20 + seed * 7 % 300 };
    random::trace(seed, events as usize)
}

#[test]
fn all_three_show_the_same() -> Result<()> {
    let folder = TempDir::new()?;
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).map(|()| path)
    };
    let options = Options {
        questions: Questions { hand_overs: true, graph: true, missing: true, ..Questions::default() },
        ..Options::default()
    };
    for seed in 1..=TRACES {
        let trace = trace(seed);
        // A file of trace-cmd does not have the processes of threads.
        let pairs = [
            (
                write("processes.txt", text::write(&trace, true).as_bytes())?,
                write("trace.pftrace", &perfetto::write(&trace))?,
            ),
            (
                write("threads.txt", text::write(&trace, false).as_bytes())?,
                write("trace.dat", &trace_dat::write(&trace))?,
            ),
        ];
        for (text, binary) in &pairs {
            let what = || format!("trace {seed}, {}", binary.display());
            let [expected, found] = [text, binary].map(|file| replay_file_with(file, &options));
            ensure!(expected.with_context(what)? == found.with_context(what)?, "{}: another result", what());
            for view in VIEWS.iter().filter(|_| seed.is_multiple_of(ALL_VIEWS)) {
                let (expected, found) = (shown(view, text)?, shown(view, binary)?);
                expect_equal("", &Value::Array(expected), &Value::Array(found))
                    .with_context(|| format!("{}, {view:?}", what()))?;
            }
        }
    }
    Ok(())
}

/// Returns what a snapshot has of a process: rows of its tables, by table.
fn rows_of(snapshot: &Value, pid: u32) -> Value {
    let tables = ["phases", "stacks", "functions", "threads", "iterations", "accounts", "counters", "tracks"];
    let rows = tables.map(|table| {
        let rows = snapshot[table].as_array().into_iter().flatten();
        (table.to_owned(), rows.filter(|row| row["pid"] == pid).cloned().collect::<Value>())
    });
    rows.into_iter().collect()
}

/// Returns the marks of the first process of a trace as those of `pid`, with their times. Handles are left out: they are those
/// of the whole machine.
fn marks_of_first(trace: &Trace, pid: u32) -> Vec<(u64, String)> {
    let is_of_first = |event: &&Event| event.tid / 100 == 1;
    let marks = trace.events.iter().filter(is_of_first).filter_map(|event| {
        let Kind::Mark(text) = &event.kind else { return None };
        let text = text.replacen("|100", &format!("|{pid}"), 1);
        let (seconds, ns) = (event.time / 1_000_000_000, event.time % 1_000_000_000);
        let line = format!(
            "t-{} ({pid:5}) [{:03}] d..1. {seconds}.{ns:09}: tracing_mark_write: {text}",
            event.tid, event.cpu
        );
        (!text.contains("|nn.")).then_some((event.time, line))
    });
    marks.collect()
}

#[test]
fn processes_with_the_same_thread_ids_have_the_results_of_each() -> Result<()> {
    const PIDS: [u32; 2] = [1_000, 2_000];
    let folder = TempDir::new()?;
    let show = |mut lines: Vec<(u64, String)>| -> Result<Value> {
        lines.sort_by_key(|(time, _)| *time);
        let path = folder.path().join("marks.txt");
        fs::write(&path, lines.into_iter().map(|(_, line)| line + "\n").collect::<String>())?;
        Ok(serde_json::to_value(replay_file_with(&path, &Options::default())?)?)
    };
    let mut compared = 0;
    for seed in 1..=TRACES / 2 {
        let alone = [0, 1].map(|of| marks_of_first(&trace(2 * seed + of as u64), PIDS[of]));
        if alone.iter().any(Vec::is_empty) {
            continue;
        }
        let together = show(alone.concat())?;
        for (lines, pid) in alone.into_iter().zip(PIDS) {
            let expected = rows_of(&show(lines)?, pid);
            expect_equal("", &expected, &rows_of(&together, pid))
                .with_context(|| format!("traces of {seed}, {pid}"))?;
            compared += 1;
        }
    }
    ensure!(compared > TRACES / 2, "{compared} of {TRACES} processes had marks");
    Ok(())
}
