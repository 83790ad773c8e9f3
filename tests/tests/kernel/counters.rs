//! `--counters`: performance events by section, against what a program is known to do.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use nntrace_tests::{child::Child, live, profiler::Profiler};
use nntrace_user::report::snapshot::{CountRow, FunctionCountsRow, Snapshot};

const TRUTH: &str = env!("CARGO_BIN_EXE_counter-truth");

/// Returns the counts of a function.
fn function<'a>(snapshot: &'a Snapshot, name: &str) -> Result<&'a FunctionCountsRow> {
    let counts = snapshot.perf_counters.as_ref().context("nothing was counted")?;
    let found = counts.functions.iter().find(|row| row.site.name == name);
    found.with_context(|| format!("no counts of {name} in {:?}", counts.functions))
}

/// Returns the count of an event, which was not scaled.
fn count(row: &FunctionCountsRow, event: &str) -> Result<u64> {
    let row: &CountRow = row.counts.counts.iter().find(|row| row.event == event).context("no such event")?;
    assert_eq!((row.is_scaled, row.enabled_ns), (false, row.running_ns), "{row:?}");
    assert_eq!(row.count, Some(row.read), "{row:?}");
    row.count.context("it never counted")
}

#[test]
fn page_faults_are_those_of_the_section_itself() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let recording = folder.path().join("run");
    let record = ["record", "--level", "sched", "--counters", "page-faults,context-switches,cpu-clock", "-o"];
    let run = Profiler::new()?.args(record).args([&recording]).launch([TRUTH, "faults", "500"])?;
    run.ended.expect_code(0)?;
    let counts = run.snapshot.perf_counters.as_ref().context("nothing was counted")?;
    println!("{counts:#?}");
    // A page of code or of the stack may be touched first there as well.
    for (name, pages) in [("outer", 1_000), ("inner", 1_500)] {
        let row = function(&run.snapshot, name)?;
        let faults = count(row, "page-faults")?;
        assert!((pages..pages + 16).contains(&faults), "{name}: {faults} page faults, {pages} pages");
        assert_eq!(row.counts.sections, 1);
        let usage = run.snapshot.usage.as_ref().context("no context switches")?;
        let on_cpu = usage.functions.iter().find(|row| row.site.name == name).context(name)?.usage.on_cpu_ns;
        let clock = count(row, "cpu-clock")?;
        assert!(clock.abs_diff(on_cpu) < on_cpu / 10 + 100_000, "{name}: {clock} ns, on CPU {on_cpu} ns");
    }
    let names: Vec<&str> = counts.events.iter().map(|row| row.event.as_str()).collect();
    assert_eq!(names, ["page-faults", "context-switches", "cpu-clock"]);
    assert_eq!((counts.uncounted_marks, counts.uncounted_sections), (0, 0));
    assert!(counts.ns_per_read.is_some_and(|ns| (1..1_000_000).contains(&ns)), "{:?}", counts.ns_per_read);
    // A layer and phase is the sum of its functions.
    let of_phase: u64 = counts.phases.iter().map(|row| row.counts.counts[0].read).sum();
    assert_eq!(of_phase, counts.functions.iter().map(|row| row.counts.counts[0].read).sum::<u64>());
    // The recording has the same.
    let replay = Profiler::new()?.args([Path::new("replay"), &recording]).run()?;
    assert_eq!(replay.snapshot.perf_counters, run.snapshot.perf_counters);
    Ok(())
}

#[test]
fn threads_on_one_cpu_count_their_own() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let run = Profiler::new()?.args(["--counters", "task-clock"]).launch([TRUTH, "spins", "200"])?;
    let text = run.ended.expect_code(0)?.text();
    let truth: u64 = text.lines().map(|line| line.parse::<u64>().context("not a time")).sum::<Result<_>>()?;
    let row = function(&run.snapshot, "spin")?;
    let counted = count(row, "task-clock")?;
    println!("{counted} ns of {truth} ns\n{row:?}");
    assert_eq!(row.counts.sections, 2);
    // The thread's own clock leaves out interrupts.
    assert!(counted.abs_diff(truth) < truth / 20, "{counted} ns, by the threads' own clocks {truth} ns");
    Ok(())
}

#[test]
fn instructions_are_those_of_a_known_loop() -> Result<()> {
    const ROUNDS: u64 = 5_000_000;
    let Some(_live) = live::enter()? else { return Ok(()) };
    let refused = Child::start(
        Profiler::new()?
            .args(["--counters", "instructions:u", "--marks", "syscall", "--json", "-d", "1ms"])
            .command(),
    )?;
    let refused = refused.wait()?;
    if refused.code() != Some(0) {
        let text = refused.stderr;
        assert!(text.contains("cannot count instructions:u") && text.contains("leave it out"), "{text}");
        eprintln!("skipped: {text}");
        return Ok(());
    }
    let rounds = ROUNDS.to_string();
    let mut former: Option<[u64; 2]> = None;
    for _ in 0..2 {
        let run = Profiler::new()?
            .args(["--counters", "cycles:u,instructions:u"])
            .launch([TRUTH, "loops", &rounds])?;
        let of = |name: &str| count(function(&run.snapshot, name)?, "instructions:u");
        let found = [of("outer")?, of("inner")?];
        println!("{found:?}");
        for (count, rounds) in found.into_iter().zip([2 * ROUNDS, 3 * ROUNDS]) {
            assert!(count.abs_diff(2 * rounds) < 2 * rounds / 100, "{count} instructions in {rounds} rounds");
        }
        assert!(function(&run.snapshot, "inner")?.counts.instructions_per_cycle.is_some());
        for (count, former) in found.into_iter().zip(former.unwrap_or(found)) {
            // An interrupt may be counted in part.
            assert!(count.abs_diff(former) <= former / 1_000, "{found:?}, before {former}");
        }
        former = Some(found);
    }
    Ok(())
}

#[test]
fn what_cannot_be_counted_is_refused_before_anything_runs() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("ran");
    for (arguments, code, reason) in [
        (["--counters", "cycels"], 2, "expected one of cycles"),
        (["--counters", "cs,cs,cs,cs,cs,cs,cs"], 2, "takes 6 events at once, found 7"),
        (["--counters=cs", "--marks=none"], 2, "--marks none"),
        (["--counters=cs", "--marks=express"], 2, "express lane"),
        // Number 0xffff of a raw event is on no machine, and needs a PMU.
        (["--counters", "rffffffffffffffff"], 1, "cannot count rffffffffffffffff"),
    ] {
        let mut profiler = Profiler::new()?.args(arguments).args(["--", "touch"]).args([&file]);
        let ended = Child::start(profiler.command())?.wait()?;
        println!("{arguments:?}: {}", ended.stderr);
        assert_eq!(ended.code(), Some(code), "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(reason), "{arguments:?}: {}", ended.stderr);
        assert!(fs::exists(&file).is_ok_and(|exists| !exists), "{arguments:?}: the command ran");
    }
    Ok(())
}
