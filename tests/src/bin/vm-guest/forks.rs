//! Children that are forked without exec, from a program that has written marks.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use nix::sys::utsname::uname;
use nntrace_tests::{
    live,
    profiler::{Profiler, Run},
    results::Results as _,
};
use nntrace_user::report::snapshot::Snapshot;

use crate::Outcome;

/// Family of four processes, each of which has written marks before it forks the next.
const FAMILY: [&str; 4] = ["/nntrace/mark-family", "late-fork", "--generations", "3"];
/// Forty children of one process, half of which execute the program again, with marks whose texts are not read
/// before.
const FORKS: [&str; 2] = ["/nntrace/mark-forks", "40"];
/// Eight processes that Python forks, which write marks through a library.
const PYTHON: [&str; 4] = ["/usr/bin/python3", "/nntrace/forks.py", "/nntrace/libmarks.so", "8"];
/// Kernels, by prefixes of their releases, on which a probe on a leading nop kills forked children.
const HARMFUL: [&str; 1] = ["6.18."];

/// Checks that the profiler finds out the effect of probes here, and places them accordingly.
pub fn children_live() -> Result<Outcome> {
    let release = uname()?.release().to_string_lossy().into_owned();
    let is_harmful = cfg!(target_arch = "x86_64") && HARMFUL.iter().any(|start| release.starts_with(start));

    let Run { snapshot, ended } = Profiler::new()?.launch(FAMILY)?;
    ended.expect_code(0)?;
    let counts: BTreeMap<u32, u64> =
        snapshot.pids().into_iter().map(|pid| (pid, snapshot.count(pid, "LA_PE"))).collect();
    ensure!(counts.values().sum::<u64>() == 5 + 6 + 7 + 8, "{counts:?}, {:?}", snapshot.diagnostics);
    let found = |part: &str| snapshot.notes.iter().any(|note| note.contains(part));
    ensure!(found("kills forked children") == is_harmful, "{release}: {:?}", snapshot.notes);
    ensure!(!found("could not be tried"), "{:?}", snapshot.notes);

    let Run { snapshot, ended } = Profiler::new()?.launch(FORKS)?;
    ended.expect_code(0)?;
    expect_counts(&snapshot, &[("section", 3 * 41)])?;
    if live::waits_for_pages()? {
        expect_counts(&snapshot, &[("literal", 41)])?;
    }

    // Where probes were found to be harmless, they do no harm.
    let Run { snapshot, ended } = Profiler::new()?.args(["--fast-probes"]).launch(FAMILY)?;
    ensure!((ended.code() == Some(0)) != is_harmful, "{release}: {}, {:?}", ended.status, snapshot.notes);
    println!("probes on leading nops: {}", if is_harmful { "harmful" } else { "harmless" });
    Ok(Outcome::Passed)
}

/// Checks the same for processes forked by Python's `multiprocessing`, with `nntrace.h` in a library that Python
/// loads.
pub fn children_of_python_live() -> Result<Outcome> {
    let Run { snapshot, ended } = Profiler::new()?.launch(PYTHON)?;
    let text = ended.expect_code(0)?.text();
    expect_counts(&snapshot, &[("work", 9), ("part", 9)]).context(text)?;
    ensure!(snapshot.odd_marks().is_empty(), "{:?}", snapshot.odd_marks());
    Ok(Outcome::Passed)
}

/// Checks the counts of sections by name, in all processes.
fn expect_counts(snapshot: &Snapshot, expected: &[(&str, u64)]) -> Result<()> {
    for &(name, count) in expected {
        let rows = snapshot.functions.iter().filter(|row| row.name == name);
        let counted: u64 = rows.map(|row| row.count).sum();
        ensure!(counted == count, "{name}: {counted}, {:?}, {:?}", snapshot.diagnostics, snapshot.notes);
    }
    Ok(())
}
