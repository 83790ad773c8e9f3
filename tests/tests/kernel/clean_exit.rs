//! However the profiler ends, nothing of it remains in the kernel, and the target runs on.

use std::process::Command;

use anyhow::{Context as _, Result};
use nix::sys::signal::Signal;
use nntrace_tests::{
    bpf::{self, Objects},
    child::{Child, Ended, signal_of},
    live,
    profiler::{Attached, Profiler},
    results::Results as _,
    wait,
};

/// Starts a program that writes marks now and then until it is asked to end.
fn slow_flood() -> Result<Child> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mark-flood"));
    command.args(["--threads", "2", "--pause-us", "500", "--until-stdin"]);
    let child = Child::start(&mut command)?;
    child.lines(1)?;
    Ok(child)
}

/// Ends the program, and returns the number of rounds it wrote.
fn end_flood(mut flood: Child) -> Result<u64> {
    flood.send_line("enough")?;
    let text = flood.wait()?.expect_code(0)?.text();
    let done = text.lines().find_map(|line| line.strip_prefix("done "));
    done.with_context(|| format!("no number in {text}"))?.parse().context("no number")
}

/// Attaches to a running program, ends the profiler with `end`, and checks the remains.
fn attach_and(end: impl FnOnce(Attached) -> Result<()>) -> Result<()> {
    let pinned = bpf::pinned();
    let flood = slow_flood()?;
    let profiler = Profiler::new()?.args(["--pid", &flood.pid().to_string()]).attach()?;
    let held = Objects::held_by(profiler.pid())?;
    assert!(
        !held.programs.is_empty() && !held.maps.is_empty() && !held.links.is_empty(),
        "with its probes in place it holds something of each: {held:?}"
    );
    end(profiler)?;
    // The kernel frees them a little later.
    wait::until("everything to go", || {
        let left = held.still_there()?;
        Ok(left.is_empty().then_some(()))
    })?;
    assert_eq!(bpf::pinned(), pinned);
    // It continues to write marks, at the place of the probe: by then for longer than a few rounds.
    assert!(end_flood(flood)? > 0);
    Ok(())
}

fn snapshot_after(signal: Signal) -> Result<()> {
    attach_and(|profiler| {
        profiler.signal(signal)?;
        let run = profiler.finish()?;
        assert_eq!(run.ended.code(), Some(0), "{:?}", run.ended);
        assert_eq!(run.snapshot.pids().len(), 1, "a process was traced");
        let pid = run.snapshot.pids()[0];
        assert!(run.snapshot.count(pid, "LR_PE") > 0);
        // The signal may come while sections are open.
        assert!(run.snapshot.odd_marks().keys().all(|kind| ["open_at_end", "unmatched_end"].contains(kind)));
        Ok(())
    })
}

#[test]
fn an_interrupt_ends_it_with_a_snapshot() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    snapshot_after(Signal::SIGINT)
}

#[test]
fn a_termination_ends_it_with_a_snapshot() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    snapshot_after(Signal::SIGTERM)
}

#[test]
fn killed_it_leaves_nothing_in_the_kernel() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    attach_and(|profiler| {
        profiler.signal(Signal::SIGKILL)?;
        let Ended { status, .. } = profiler.ended()?;
        assert_eq!(signal_of(status), Some(Signal::SIGKILL as i32));
        Ok(())
    })
}

#[test]
fn the_last_process_of_several_ends_it() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let (first, second) = (slow_flood()?, slow_flood()?);
    let pids = [first.pid(), second.pid()];
    let both = pids.map(|pid| ["--pid".to_owned(), pid.to_string()]).concat();
    let profiler = Profiler::new()?.args(both).attach()?;
    let held = Objects::held_by(profiler.pid())?;
    end_flood(first)?;
    // With one target left, it continues to measure.
    assert_eq!(held.still_there()?.programs, held.programs);
    end_flood(second)?;
    let run = profiler.finish()?;
    run.ended.expect_code(0)?;
    let mut pids = pids.to_vec();
    pids.sort_unstable();
    assert_eq!(run.snapshot.pids(), pids);
    Ok(())
}
