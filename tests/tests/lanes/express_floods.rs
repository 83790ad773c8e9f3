//! Floods of marks by the express lane: what is counted and what is lost add up to what was written.

use std::{fs, thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use nntrace_tests::{
    child::Child,
    express::{AMPLE, Steps, instants, sections},
    live,
    native::Program,
    profiler::{Attached, Profiler, Run},
    results::Results as _,
};
use nntrace_user::report::snapshot::Snapshot;

/// Ends a profiler of a program that goes on.
fn finish(profiler: Attached) -> Result<Snapshot> {
    profiler.signal(Signal::SIGTERM)?;
    let Run { snapshot, ended } = profiler.finish()?;
    ended.expect_code(0)?;
    Ok(snapshot)
}

/// Returns the marks that are lost, of threads with lanes.
fn lost(snapshot: &Snapshot) -> Result<u64> {
    Ok(snapshot.source.express.context("no thread used a lane")?.lost)
}

#[test]
fn instants_that_are_counted_and_lost_add_up_to_what_was_written() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    // The smallest rings of probed marks lose most of these.
    for options in [&[][..], &["--ring-size", "64"], &AMPLE] {
        let mut steps = Steps::start()?;
        let profiler = steps.profile(options)?;
        let written = steps.ask("instants 2 1500")?;
        let snapshot = finish(profiler)?;
        let (counted, lost) = (instants(&snapshot, "tick"), lost(&snapshot)?);
        // Those from before the offer of a lane are among the other records.
        let early = snapshot.loss.records_dropped - lost;
        let missing = written - counted;
        assert!(
            (lost..=lost + early).contains(&missing),
            "{options:?}: {missing} missing, {lost} lost, {early} early"
        );
        assert!(options != AMPLE || missing == 0, "{options:?}: {missing} missing");
        assert_eq!(snapshot.overhead.marks, written, "{options:?}");
        assert_eq!(snapshot.odd_marks(), [].into(), "{options:?}: {:?}", snapshot.diagnostics);
    }
    Ok(())
}

/// Checks the counts of pairs of sections, of which some marks may be lost.
fn check_pairs(snapshot: &Snapshot, written: u64) -> Result<()> {
    let lost = lost(snapshot)?;
    let counted = ["outer", "inner"].map(|name| sections(snapshot, name));
    let missing = counted.map(|count| written.checked_sub(count));
    let [Some(outer), Some(inner)] = missing else { anyhow::bail!("{counted:?} of {written}, {lost} lost") };
    // With a mark the sections that were open are lost, at most two.
    ensure!(outer <= lost && inner <= lost, "{counted:?} of {written}, {lost} lost");
    assert_eq!(snapshot.odd_marks(), [].into(), "{lost} lost: {:?}", snapshot.diagnostics);
    let pid = *snapshot.pids().first().context("no process has results")?;
    let expected = [("LR_PE", counted[0]), ("LR_PE LC_PCO", counted[1])];
    // What was in a section that is lost is not in it.
    let mut stacks = snapshot.stack_counts(pid);
    let orphans = stacks.remove("LC_PCO").unwrap_or(0);
    ensure!(orphans <= lost, "{orphans} orphans, {lost} lost");
    *stacks.entry("LR_PE LC_PCO".to_owned()).or_default() += orphans;
    assert_eq!(stacks, expected.map(|(path, count)| (path.to_owned(), count)).into());
    Ok(())
}

/// Profiles a flood of sections, and checks their counts.
fn check_sections(options: &[&str]) -> Result<Snapshot> {
    let mut steps = Steps::start()?;
    let profiler = steps.profile(options)?;
    let written = steps.ask("sections 2 3000")?;
    let snapshot = finish(profiler)?;
    assert_eq!(snapshot.overhead.marks, 4 * written);
    check_pairs(&snapshot, written)?;
    Ok(snapshot)
}

#[test]
fn sections_of_a_flood_are_counted() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let snapshot = check_sections(&AMPLE)?;
    ensure!(lost(&snapshot)? == 0, "{:?}", snapshot.source.express);
    Ok(())
}

#[test]
fn sections_of_a_flood_are_counted_or_lost_and_nothing_else() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    check_sections(&[]).map(drop)
}

#[test]
fn handlers_that_interrupt_a_flood_are_counted_exactly() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let mut steps = Steps::start()?;
    let profiler = steps.profile(&AMPLE)?;
    steps.ask("alarm 1000")?;
    let written = steps.ask("sections 2 3000")?;
    steps.ask("alarm 0")?;
    // What was pending is done by now.
    let handled = steps.ask("alarm 0")?;
    let snapshot = finish(profiler)?;
    assert_eq!(lost(&snapshot)?, 0);
    let counted = ["outer", "inner", "handler"].map(|name| sections(&snapshot, name));
    assert_eq!(counted, [written, written, handled]);
    assert_eq!(instants(&snapshot, "alarm"), handled);
    assert!(handled > 100, "only {handled} interruptions");
    assert_eq!(snapshot.odd_marks(), [].into(), "{:?}", snapshot.diagnostics);
    let pid = *snapshot.pids().first().context("no process has results")?;
    let mut stacks = snapshot.stack_counts(pid);
    assert_eq!(stacks.remove("LR_PE"), Some(written));
    // Anywhere in a round, or between two.
    let inner =
        ["LR_PE LC_PCO", "LR_PE LC_PCO LC_PCO", "LC_PCO"].map(|path| stacks.remove(path).unwrap_or(0));
    assert_eq!((inner.iter().sum::<u64>(), stacks), (written + handled, [].into()));
    Ok(())
}

/// Stops the profiler for longer than a lease while two threads write instants for this many ms.
fn check_stopped(ms: u64) -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let mut steps = Steps::start()?;
    let profiler = steps.profile(&[])?;
    steps.request(&format!("instants 2 {ms}"))?;
    thread::sleep(Duration::from_millis(300));
    profiler.signal(Signal::SIGSTOP)?;
    thread::sleep(Duration::from_secs(3));
    profiler.signal(Signal::SIGCONT)?;
    let written = steps.answer()?;
    let snapshot = finish(profiler)?;
    let (counted, lost) = (instants(&snapshot, "tick"), lost(&snapshot)?);
    println!("{written} written: {counted} counted, {lost} lost");
    assert_eq!(counted + lost, written, "{counted} counted, {lost} lost");
    assert!(lost > 0 && counted > 0, "{counted} counted, {lost} lost");
    assert_eq!(snapshot.overhead.marks, written);
    assert_eq!(snapshot.odd_marks(), [].into(), "{:?}", snapshot.diagnostics);
    Ok(())
}

#[test]
fn what_threads_write_until_they_end_while_the_profiler_is_stopped_is_counted_or_lost() -> Result<()> {
    check_stopped(2_000)
}

#[test]
fn what_threads_write_while_the_profiler_is_stopped_and_goes_on_is_counted_or_lost() -> Result<()> {
    check_stopped(3_800)
}

/// Peak memory of a process, MiB.
fn peak(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    Ok(kib.context("no VmHWM")?.parse::<u64>()? / 1024)
}

#[test]
fn two_thousand_threads_have_a_lane_each_in_bounded_memory() -> Result<()> {
    const THREADS: u64 = 2_000;
    /// Memory of the profiler: what it needs for any run with rings of this size, and the lanes. MiB.
    const MOST: u64 = 64 + 32 + 96;
    /// Lanes of one library in one process, MiB.
    const MOST_LANES: u64 = 64;
    let Some(_live) = live::enter()? else { return Ok(()) };
    let program = Program::build("express-crowd.c")?;
    let mut crowd = Child::start(std::process::Command::new(program.path()).arg(THREADS.to_string()))?;
    crowd.lines(1)?;
    let pid = crowd.pid().to_string();
    let profiler = Profiler::new()?.args(["--ring-size", "8192", "--pid", &pid]).attach()?;
    crowd.send_line("go on")?;
    let line = crowd.lines(2)?.pop().context("there are two lines")?;
    let mut numbers = line.split(' ').map(str::parse::<u64>);
    let [Some(Ok(written)), Some(Ok(mapped))] = [numbers.next(), numbers.next()] else {
        anyhow::bail!("no two numbers: {line}")
    };
    let peak = peak(profiler.pid())?;
    let snapshot = finish(profiler)?;
    crowd.send_line("end")?;
    crowd.wait()?.expect_code(0)?;
    let used = snapshot.source.express.context("no thread used a lane")?;
    println!("{written} sections, {} MiB of lanes, {peak} MiB of memory: {used:?}", mapped >> 20);
    assert_eq!((sections(&snapshot, "work"), used.lost, used.threads), (written, 0, THREADS), "{used:?}");
    assert_eq!(snapshot.odd_marks(), [].into(), "{:?}", snapshot.diagnostics);
    assert!(mapped <= MOST_LANES << 20, "{mapped} bytes of lanes");
    assert!(peak <= MOST, "{peak} MiB");
    Ok(())
}
