//! Marks by the express lane mean what they mean by probes, and their times are those that the program took itself.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context as _, Result, ensure};
use nntrace_tests::{
    express::{AMPLE, instants, sections},
    figures, live,
    native::{Program, compile, source},
    profiler::{Profiler, Run},
    results::Results as _,
    truth::Bounds,
};
use nntrace_user::report::snapshot::Snapshot;
use serde::Deserialize;

/// Runs the program with every kind of mark.
fn kinds(program: &Program, marks: &str, waits_for: &str) -> Result<Snapshot> {
    let command = [program.path(), Path::new("10"), Path::new(waits_for)];
    let Run { snapshot, ended } = Profiler::new()?.args(["--marks", marks]).args(AMPLE).launch(command)?;
    ended.expect_code(0)?;
    Ok(snapshot)
}

/// Returns the figures that do not depend on how long sections were. The number of a process is in no two runs the same, and
/// what a diagnostic shows of its mark depends on the way that the mark came.
fn comparable(snapshot: &Snapshot) -> Result<BTreeMap<String, figures::Figure>> {
    let mut all = figures::of(snapshot)?;
    all.retain(|_, (key, _)| !key.contains("self_ns"));
    for (key, value) in all.values_mut().filter(|(key, _)| key == "diagnostics.example") {
        let text = value.as_str().with_context(|| format!("{key} is no text"))?;
        let name = text.rsplit(']').next().unwrap_or_default();
        // An end has no text but its letter and the number.
        let is_end = name == "E" || name.parse::<u32>().is_ok();
        *value = if is_end { "an end".into() } else { name.into() };
    }
    Ok(all)
}

#[test]
fn every_kind_of_mark_means_the_same_by_lane_and_by_probe() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let program = Program::build("express-kinds.c")?;
    let (by_lane, by_probe) = (kinds(&program, "auto", "lanes")?, kinds(&program, "uprobe", "time")?);
    assert_eq!(by_probe.source.express, None);
    let used = by_lane.source.express.context("no thread used a lane")?;
    assert_eq!((used.threads, used.lost, used.damaged), (4, 0, 0), "{used:?}");
    assert_eq!(by_lane.overhead.marks, by_probe.overhead.marks);
    assert!(used.marks > 0, "{used:?}");
    let (found, expected) = (comparable(&by_lane)?, comparable(&by_probe)?);
    let places: std::collections::BTreeSet<&String> = found.keys().chain(expected.keys()).collect();
    let differing: Vec<String> = places
        .into_iter()
        .filter(|place| found.get(*place) != expected.get(*place))
        .map(|place| format!("{place}: {:?} and {:?}", found.get(place), expected.get(place)))
        .collect();
    ensure!(differing.is_empty(), "by lane and by probe differ:\n{}", differing.join("\n"));
    assert!(by_lane.reports.len() == 2 && !by_lane.iterations.is_empty() && by_lane.accounts.len() == 3);
    Ok(())
}

#[test]
fn sections_of_two_libraries_payloads_and_other_functions_are_on_one_stack() -> Result<()> {
    const ROUNDS: u64 = 2_000;
    /// Two threads.
    const EACH: u64 = 2 * ROUNDS;
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let (program, library) = (folder.path().join("mixed"), folder.path().join("libpart.so"));
    let standard = ["cc", "-std=c99", "-O2"];
    let flags = [&standard[..], &["-shared", "-fPIC", "-fvisibility=hidden"]].concat();
    compile(&flags, &[&source("express-mixed-part.c")], &library)?;
    let (search, run_path) =
        (format!("-L{}", folder.path().display()), format!("-Wl,-rpath,{}", folder.path().display()));
    let flags = [&standard[..], &["-D_POSIX_C_SOURCE=200809L", &search, "-lpart", &run_path]].concat();
    compile(&flags, &[&source("express-mixed.c")], &program)?;
    let command = [program.as_path(), Path::new(&ROUNDS.to_string())].map(Path::to_owned);
    let Run { snapshot, ended } = Profiler::new()?.args(AMPLE).launch(command)?;
    ended.expect_code(0)?;
    let used = snapshot.source.express.context("no thread used a lane")?;
    assert_eq!((used.threads, used.lost, used.damaged), (2, 0, 0), "{used:?}");
    // The program waits until both threads have a lane in both files.
    assert!(used.marks > 0, "{used:?}");
    assert_eq!(snapshot.odd_marks(), [].into());
    let pid = *snapshot.pids().first().context("no process has results")?;
    let stacks = [
        "LA_PE",
        "LA_PE LR_PE",
        "LA_PE LR_PE LC_PCO",
        "LA_PE LR_PE LC_PTR",
        "LA_PE LR_PE LR_PE",
        "LA_PE LR_PE LR_PE LC_PCO",
        "LA_PE LR_PE LR_PE LR_PE",
        "LA_PE LR_PE LR_PE LR_PE LC_PCO",
        "LA_PE LR_PE LR_PE LR_PE LR_PE",
        "LA_PE LR_PE LR_PE LR_PE LR_PE LC_PCO",
        "LA_PE LR_PE LR_PE LR_PE LR_PE LC_PTR",
    ];
    assert_eq!(snapshot.stack_counts(pid), stacks.map(|path| (path.to_owned(), EACH)).into());
    let named =
        ["outer", "part", "part leaf", "payload", "atrace", "leaf"].map(|name| sections(&snapshot, name));
    // The second "part" of a round is inside the first one.
    assert_eq!(named, [1, 1, 2, 1, 1, 4].map(|times| times * EACH));
    assert_eq!(instants(&snapshot, "tick"), EACH);
    Ok(())
}

/// Sections of one name, as the program saw them.
#[derive(Debug, Deserialize)]
struct Function {
    count: u64,
    own: Bounds,
    nested: Bounds,
}

#[test]
fn times_by_the_lane_are_within_what_the_program_took_itself() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let program = Program::build("express-truth.c")?;
    let Run { snapshot, ended } = Profiler::new()?.args(AMPLE).launch([program.path(), Path::new("3000")])?;
    let ended = ended.expect_code(0)?;
    let truth: BTreeMap<String, Function> = serde_json::from_str(&ended.text())?;
    let used = snapshot.source.express.context("no thread used a lane")?;
    assert!(used.marks > 0, "{used:?}");
    assert_eq!((snapshot.odd_marks(), truth.len()), ([].into(), snapshot.functions.len()));
    for row in &snapshot.functions {
        let function = truth.get(&row.name).with_context(|| row.name.clone())?;
        let Function { count, own, nested } = function;
        let exclusive = own.least_ns - nested.most_ns.min(own.least_ns)..=own.most_ns - nested.least_ns;
        assert_eq!(row.count, *count, "{}", row.name);
        assert!(own.range().contains(&row.total_ns), "{row:?}: {function:?}");
        assert!(exclusive.contains(&row.exclusive_ns), "{row:?}: {function:?}");
    }
    Ok(())
}
