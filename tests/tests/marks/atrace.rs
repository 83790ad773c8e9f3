//! Marks through pairs of functions that take a section's name only: libcutils' and the NDK's.

use std::path::Path;

use anyhow::Result;
use nntrace_common::layer::Phase;
use nntrace_tests::{
    c, live,
    profiler::{Profiler, Run},
    results::Results as _,
};

/// Runs a program to its end; returns the run and the program's process id.
fn launch(words: &[&Path]) -> Result<(Run, u32)> {
    let run = Profiler::new()?.launch(words)?;
    anyhow::ensure!(run.ended.code() == Some(0), "{}: {}", run.ended.status, run.ended.stderr);
    let pid = *run.snapshot.pids().first().unwrap_or(&0);
    Ok((run, pid))
}

#[test]
fn tflite_marks_through_a_library_that_it_loads_and_each_mark_counts_once() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let (program, library) =
        (c::program(folder.path(), "tflite.c")?, c::library(folder.path(), "android.c")?);
    let (Run { snapshot, .. }, pid) = launch(&[&program, &library, Path::new("40")])?;
    assert_eq!(snapshot.odd_marks(), [].into());
    let stacks = [("LR_PE", 40), ("LR_PE LC_PE", 40), ("LR_PE LC_PE LC_PTR", 40), ("LR_PE LC_PCO", 40)];
    let stacks = stacks.map(|(path, count)| (path.to_owned(), count));
    assert_eq!(snapshot.stack_counts(pid), stacks.into());
    let name =
        snapshot.functions.iter().find(|row| row.phase == Phase::Computation).map(|row| row.name.as_str());
    assert_eq!(name, Some("multiply"), "attributes are no part of a name");
    assert!(!snapshot.notes.iter().any(|note| note.contains("may be missing")), "{:?}", snapshot.notes);
    Ok(())
}

#[test]
fn a_begin_without_its_end_is_not_probed() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let (Run { snapshot, .. }, _) = launch(&[&c::program(folder.path(), "lonely.c")?])?;
    assert_eq!((snapshot.pids(), snapshot.overhead.marks), (vec![], 0));
    let told = |note: &String| note.contains("ATrace_beginSection") && note.contains("is not probed");
    assert!(snapshot.notes.iter().any(told), "{:?}", snapshot.notes);
    Ok(())
}

#[test]
fn methods_of_these_names_take_their_object_first() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let (Run { snapshot, .. }, pid) = launch(&[&c::program(folder.path(), "methods.cc")?])?;
    assert_eq!(snapshot.stack_counts(pid), [("LR_PE".to_owned(), 7)].into());
    assert_eq!(snapshot.odd_marks(), [].into());
    Ok(())
}

#[test]
fn functions_that_begin_with_a_nop_count_beside_others() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    // It is not used, but adds a second kind of functions.
    let library = c::library(folder.path(), "android.c")?;
    let profiler = Profiler::new()?.args([Path::new("--lib"), &library]);
    let Run { snapshot, ended } =
        profiler.launch([env!("CARGO_BIN_EXE_mark-flood"), "--threads", "4", "--marks", "40000"])?;
    ended.expect_code(0)?;
    let pid = *snapshot.pids().first().unwrap_or(&0);
    assert_eq!(snapshot.count(pid, "LR_PE") + snapshot.count(pid, "LC_PCO"), 20_000, "{:?}", snapshot.stacks);
    assert_eq!(snapshot.odd_marks(), [].into());
    Ok(())
}
