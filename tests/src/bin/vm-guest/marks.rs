//! Marks of programs that are linked in every possible way.

use std::{collections::BTreeMap, fs, path::PathBuf};

use anyhow::{Context as _, Result, ensure};
use nntrace_tests::{
    profiler::{Profiler, Run},
    results::Results as _,
};
use nntrace_user::report::snapshot::Snapshot;

use crate::Outcome;

/// Folder of programs that write the marks expected here.
const TARGETS: &str = "/targets";

/// Prefixes of the names of programs in C and in C++.
const C: &str = "c-";
const CPP: &str = "cpp-";

/// Profiles C programs, and compares the result with the marks that they wrote.
pub fn of_functions() -> Result<Outcome> {
    check_all(|name| name.starts_with(C))
}

/// Profiles a C++ method, which takes a length.
pub fn of_a_method() -> Result<Outcome> {
    check_all(|name| name.starts_with(CPP))
}

/// Returns the programs whose names are wanted, in order.
pub fn programs(is_wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>> {
    let mut programs =
        fs::read_dir(TARGETS)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    programs.retain(|path| path.file_name().is_some_and(|name| is_wanted(&name.to_string_lossy())));
    programs.sort();
    ensure!(!programs.is_empty(), "{TARGETS} has none of them");
    Ok(programs)
}

fn check_all(is_wanted: impl Fn(&str) -> bool) -> Result<Outcome> {
    for program in programs(is_wanted)? {
        profile(&program)?;
    }
    Ok(Outcome::Passed)
}

/// Profiles a program, and compares the result with the marks that it wrote.
pub fn profile(program: &PathBuf) -> Result<Snapshot> {
    check(program).with_context(|| program.display().to_string())
}

fn check(program: &PathBuf) -> Result<Snapshot> {
    let Run { snapshot, ended } = Profiler::new()?.launch([program])?;
    ended.expect_code(0)?;
    ensure!(snapshot.odd_marks().is_empty(), "odd marks: {:?}", snapshot.odd_marks());
    ensure!(snapshot.loss.records_dropped == 0, "{:?}", snapshot.loss);
    let functions: BTreeMap<&str, u64> =
        snapshot.functions.iter().map(|row| (row.name.as_str(), row.count)).collect();
    let expected = [("first", 1), ("run", 2), ("second", 1), ("third", 2)];
    ensure!(
        functions == expected.into(),
        "what was read of the arguments: {functions:?}; {:?} {:?}",
        snapshot.notes,
        snapshot.overhead
    );
    let [pid] = snapshot.pids()[..] else { anyhow::bail!("processes: {:?}", snapshot.pids()) };
    let counts = snapshot.counts(pid);
    // Computing is also executing, by the contract.
    let expected = [("LC_PCO", 4), ("LC_PE", 4), ("LR_PE", 2)].map(|(tag, count)| (tag.to_owned(), count));
    ensure!(counts == expected.into(), "layers and phases: {counts:?}");
    println!("marks of {}: read as written", program.display());
    Ok(snapshot)
}
