//! Performance events by section: where the machine's clock counts instructions, its counters count them exactly.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result, ensure};
use nntrace_tests::{binaries, profiler::Profiler};
use nntrace_user::report::snapshot::Snapshot;

use crate::Outcome;

/// Program whose sections have known counts.
const PROGRAM: &str = "counter-truth";
/// Rounds of its loop, of two instructions each.
const ROUNDS: u64 = 5_000_000;
/// Events that are counted.
const EVENTS: &str = "instructions:u,cycles:u,instructions";

/// CPUs of an emulated machine at most.
const MOST_CPUS: u32 = 64;

/// Counts the instructions of a known loop: in nested sections, and of threads that take turns on a CPU.
pub fn of_a_known_loop() -> Result<Outcome> {
    // Without that clock the machine has no such counter, nor has the one for x86-64.
    let probed =
        Profiler::new()?.args(["--counters", EVENTS, "--marks", "syscall", "--duration", "10ms"]).run();
    if let Err(error) = probed {
        let reason = format!("{error:#}");
        ensure!(reason.contains("cannot count instructions:u"), "{reason}");
        return Ok(Outcome::Skipped("this machine does not count instructions".into()));
    }
    // The counter of a CPU is the clock of the machine, which counts what all of its CPUs run: so there is only one.
    let others: Vec<_> = (1..MOST_CPUS).map(online).take_while(|file| file.exists()).collect();
    let compared = switch(&others, "0").and_then(|()| compare());
    switch(&others, "1")?;
    compared.map(|()| Outcome::Passed)
}

/// Switch of a CPU.
fn online(cpu: u32) -> PathBuf {
    format!("/sys/devices/system/cpu/cpu{cpu}/online").into()
}

/// Takes CPUs offline, or back.
fn switch(cpus: &[PathBuf], state: &str) -> Result<()> {
    cpus.iter().try_for_each(|file| fs::write(file, state).with_context(|| file.display().to_string()))
}

fn compare() -> Result<()> {
    let first = loops()?;
    for (name, count, rounds) in [("outer", first[0], 2 * ROUNDS), ("inner", first[1], 3 * ROUNDS)] {
        within_one_percent(name, count, 2 * rounds)?;
    }
    let second = loops()?;
    ensure!(first == second, "two runs have {first:?} and {second:?} instructions in their sections");
    let rivals = run("rivals")?;
    for (name, rounds) in [("light", ROUNDS), ("heavy", 3 * ROUNDS)] {
        within_one_percent(name, count(&rivals, name, "instructions:u")?, 2 * rounds)?;
    }
    println!("counters: {first:?} instructions in sections with loops of {} and {}", 4 * ROUNDS, 6 * ROUNDS);
    Ok(())
}

/// Returns the instructions of the outer and of the inner section.
fn loops() -> Result<[u64; 2]> {
    let snapshot = run("loops")?;
    for name in ["outer", "inner"] {
        let all = count(&snapshot, name, "instructions")?;
        let by_itself = count(&snapshot, name, "instructions:u")?;
        ensure!(all >= by_itself, "{name}: {by_itself} instructions without the kernel's, {all} with them");
    }
    Ok([count(&snapshot, "outer", "instructions:u")?, count(&snapshot, "inner", "instructions:u")?])
}

fn run(work: &str) -> Result<Snapshot> {
    let program = binaries::helper(PROGRAM)?;
    let rounds = ROUNDS.to_string();
    let run = Profiler::new()?.args(["--counters", EVENTS]).launch([
        program.as_os_str(),
        work.as_ref(),
        rounds.as_ref(),
    ])?;
    run.ended.expect_code(0)?;
    Ok(run.snapshot)
}

fn count(snapshot: &Snapshot, function: &str, event: &str) -> Result<u64> {
    let counts = snapshot.perf_counters.as_ref().context("nothing was counted")?;
    ensure!(counts.uncounted_marks == 0, "{} marks were not counted", counts.uncounted_marks);
    let row = counts.functions.iter().find(|row| row.site.name == function);
    let row = row.with_context(|| format!("no counts of {function} in {:?}", counts.functions))?;
    let found = row.counts.counts.iter().find(|row| row.event == event);
    let found = found.with_context(|| format!("no {event} in {row:?}"))?;
    ensure!(!found.is_scaled, "{event} took turns: {found:?}");
    found.count.with_context(|| format!("{event} never counted"))
}

fn within_one_percent(name: &str, count: u64, expected: u64) -> Result<()> {
    ensure!(count.abs_diff(expected) <= expected / 100, "{name}: {count} instructions, {expected} expected");
    Ok(())
}
