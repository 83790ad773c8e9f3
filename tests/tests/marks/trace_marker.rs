//! Programs that write their marks to `trace_marker`: the results equal those of the same stream through a function.

use std::{collections::BTreeMap, path::Path, process::Command};

use anyhow::{Context as _, Result};
use nntrace_common::layer::{Layer, Phase};
use nntrace_tests::{
    c,
    child::Child,
    live,
    profiler::{Profiler, Run},
    results::Results as _,
};
use nntrace_user::report::snapshot::{MarksSeen, Snapshot};

const MARKER: &str = "/sys/kernel/tracing/trace_marker";

/// Results of one process.
#[derive(Debug, PartialEq)]
struct Did {
    /// Frames by stack.
    stacks: BTreeMap<String, u64>,
    /// Sections by layer, phase and name.
    functions: BTreeMap<(Layer, Phase, String), u64>,
}

/// Returns the results by process in order of number: the first, its child, and the program executed by that.
fn did(snapshot: &Snapshot) -> Vec<Did> {
    let of = |pid| Did {
        stacks: snapshot.stack_counts(pid),
        functions: snapshot
            .functions
            .iter()
            .filter(|row| row.pid == pid)
            .map(|row| ((row.layer, row.phase, row.name.clone()), row.count))
            .collect(),
    };
    snapshot.pids().into_iter().map(of).collect()
}

fn written(program: &Path, how: &str, marks: &str) -> Result<Snapshot> {
    let profiler = Profiler::new()?.args(["--marks", marks]);
    let words = [program.as_os_str(), how.as_ref(), MARKER.as_ref()];
    let Run { snapshot, ended } = profiler.launch(words)?;
    ended.expect_code(0)?;
    Ok(snapshot)
}

#[test]
fn the_same_stream_gives_the_same_results_either_way_and_is_counted_once() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let program = c::program(folder.path(), "writer.c")?;
    let by_function = written(&program, "function", "uprobe")?;
    assert_eq!(by_function.source.marks, MarksSeen::Uprobe);
    let expected = did(&by_function);
    let names = |did: &Did| did.functions.get(&(Layer::Runtime, Phase::Execution, "run".into())).copied();
    assert_eq!(expected.iter().map(names).collect::<Vec<_>>(), [Some(20), None], "{expected:?}");
    assert_eq!(expected[1].stacks.get("LR_PE LC_PCO"), Some(&15), "forked and executed: {expected:?}");
    for (how, marks) in [("marker", "syscall"), ("both", "syscall"), ("both", "auto")] {
        let snapshot = written(&program, how, marks)?;
        assert_eq!(did(&snapshot), expected, "{how} by {marks}");
        assert_eq!(snapshot.odd_marks(), by_function.odd_marks(), "{how} by {marks}");
        let source = if marks == "syscall" { MarksSeen::Syscall } else { MarksSeen::Uprobe };
        assert_eq!(snapshot.source.marks, source);
    }
    Ok(())
}

#[test]
fn what_was_open_before_counts_and_other_processes_do_not() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let program = c::program(folder.path(), "writer.c")?;
    let start = || {
        let child = Child::start(Command::new(&program).args(["marker", MARKER, "wait"]))?;
        child.lines(1).map(|_| child)
    };
    let (mut asked, mut other) = (start()?, start()?);
    let pid = asked.pid();
    let profiler = Profiler::new()?.args(["--marks", "syscall", "--pid", &pid.to_string()]).attach()?;
    for child in [&mut other, &mut asked] {
        child.send_line("go on")?;
    }
    other.wait()?.expect_code(0)?;
    asked.wait()?.expect_code(0)?;
    let Run { snapshot, ended } = profiler.finish()?;
    ended.expect_code(0)?;
    let pids = snapshot.pids();
    assert!(pids.contains(&pid) && pids.len() == 2, "{pid} and its child: {pids:?}");
    assert_eq!(snapshot.count(pid, "LR_PE"), 20);
    Ok(())
}

#[test]
fn who_has_trace_marker_open_is_told_while_functions_are_probed() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let program = c::program(folder.path(), "writer.c")?;
    let mut child = Child::start(Command::new(&program).args(["marker", MARKER, "wait"]))?;
    child.lines(1)?;
    let pid = child.pid().to_string();
    let profiler = Profiler::new()?.args(["--pid", &pid]).attach()?;
    child.send_line("go on")?;
    child.wait()?.expect_code(0)?;
    let Run { snapshot, .. } = profiler.finish()?;
    assert_eq!(snapshot.pids(), [0; 0]);
    let note = snapshot.notes.iter().find(|note| note.contains("--marks syscall"));
    assert!(note.context("no note")?.contains(&pid), "{note:?}");
    Ok(())
}
