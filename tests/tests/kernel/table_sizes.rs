//! Tables of the kernel programs that are large enough, and tables that are not: their entries, and the entries
//! without room, are reported.

use std::{collections::BTreeMap, fs};

use anyhow::{Context as _, Result};
use nntrace_tests::{
    bpf::{Objects, is_not_gone},
    live,
    profiler::{Profiler, Run},
    results::Results as _,
};
use nntrace_user::report::{snapshot::TableUse, tables};

/// More threads than the table held when its size was fixed.
const THREADS: u64 = 3_000;

/// Starts threads that each write one section and live until all have; returns the run and its table of threads.
fn run(options: &[&str], threads: u64) -> Result<(Run, TableUse)> {
    let command = [env!("CARGO_BIN_EXE_mark-threads"), "--threads", &threads.to_string()];
    let run = Profiler::new()?.args(options).launch(command)?;
    anyhow::ensure!(run.ended.code() == Some(0), "{}: {}", run.ended.status, run.ended.stderr);
    let table = run.snapshot.overhead.tables.iter().find(|table| table.table == "threads");
    let table = table.context("nothing is told of the table of threads")?.clone();
    Ok((run, table))
}

#[test]
fn thousands_of_threads_at_once_are_all_counted() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let (Run { snapshot, .. }, table) = run(&["--map-memory", "32M"], THREADS)?;
    let pid = *snapshot.pids().first().context("no process has results")?;
    assert_eq!(snapshot.counts(pid), [("LR_PE".to_owned(), THREADS)].into());
    assert_eq!((snapshot.odd_marks(), table.turned_away), ([].into(), 0));
    assert_eq!(snapshot.overhead.marks, 2 * THREADS);
    Ok(())
}

#[test]
fn by_itself_the_table_is_as_large_as_the_machine_allows() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let (Run { snapshot, .. }, table) = run(&[], 8)?;
    let text = fs::read_to_string("/proc/meminfo")?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:")).context("no MemTotal")?;
    let total: u64 = total.trim().trim_end_matches(" kB").parse()?;
    // A host with two GiB or more has room for the case in which the fixed size was too small.
    let enough = total >= 2 << 20;
    assert!(!enough || table.capacity >= THREADS, "{} threads in {total} kB", table.capacity);
    let expected = (total * 1024 / 64).clamp(4 << 20, 64 << 20);
    let bytes = snapshot.overhead.map_memory_bytes.context("nothing is told of the tables' memory")?;
    assert!(bytes <= expected && bytes > expected / 10 * 9, "{bytes} of {expected}");
    Ok(())
}

#[test]
fn more_threads_than_the_table_holds_are_counted_and_shown_and_the_others_are_right() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let (Run { snapshot, .. }, table) = run(&["--map-memory", "1M"], 300)?;
    assert!((50..250).contains(&table.capacity), "{table:?}");
    let pid = *snapshot.pids().first().context("no process has results")?;
    assert_eq!(snapshot.counts(pid), [("LR_PE".to_owned(), table.capacity)].into());
    // For each thread without an entry, both marks.
    let lost = 2 * (300 - table.capacity);
    assert_eq!((snapshot.odd_marks(), table.turned_away), ([("table_full", lost)].into(), lost));
    let text = tables::render(&snapshot);
    let shown = format!("of {} threads ({lost} turned away", table.capacity);
    assert!(text.contains(&shown), "{shown:?} is not in\n{text}");
    Ok(())
}

/// The tables' memory, as reported by the kernel, is the memory that they were given.
#[test]
fn the_tables_take_the_memory_that_they_are_given() -> Result<()> {
    const GIVEN: u64 = 8 << 20;
    let Some(_live) = live::enter()? else { return Ok(()) };
    let profiler = Profiler::new()?.args(["--map-memory", "8M"]).attach()?;
    let held = Objects::held_by(profiler.pid())?;
    let mut names = BTreeMap::new();
    for map in aya::maps::loaded_maps().filter(is_not_gone) {
        let map = map?;
        names.insert(map.id(), map.name_as_str().unwrap_or_default().to_owned());
    }
    let mut taken = BTreeMap::new();
    for entry in fs::read_dir(format!("/proc/{}/fdinfo", profiler.pid()))? {
        let Ok(info) = fs::read_to_string(entry?.path()) else { continue };
        let number =
            |key: &str| info.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok());
        if let (Some(map), Some(bytes)) = (number("map_id:"), number("memlock:"))
            && let Some(name) =
                u32::try_from(map).ok().filter(|id| held.maps.contains(id)).and_then(|id| names.get(&id))
            && ["THREADS", "TOTALS", "NAMES", "PATHS"].contains(&name.as_str())
        {
            taken.insert(name.clone(), bytes);
        }
    }
    profiler.signal(nix::sys::signal::Signal::SIGINT)?;
    profiler.finish()?.ended.expect_code(0)?;
    assert_eq!(taken.len(), 4, "{taken:?}");
    let sum: u64 = taken.values().sum();
    // Before Linux 6.3 the kernel reports an estimate.
    assert!(sum > GIVEN / 2 && sum < GIVEN + GIVEN / 20, "{sum} of {GIVEN}: {taken:?}");
    Ok(())
}
