//! Profilers that are killed, several at once, and other tools beside them: all count what the lane or the probes bring.

use std::{process::Command, time::Instant};

use anyhow::{Context as _, Result};
use nix::sys::signal::Signal;
use nntrace_tests::{
    binaries,
    child::{Child, signal_of},
    express::{AMPLE, Steps, sections},
    live,
    profiler::{Attached, Run},
    results::Results as _,
    snapshot, wait,
};
use nntrace_user::report::snapshot::Snapshot;

fn finish(profiler: Attached) -> Result<Snapshot> {
    profiler.signal(Signal::SIGTERM)?;
    let Run { snapshot, ended } = profiler.finish()?;
    ended.expect_code(0)?;
    assert_eq!(snapshot.odd_marks(), [].into(), "{:?}", snapshot.diagnostics);
    Ok(snapshot)
}

fn kill(profiler: Attached) -> Result<()> {
    profiler.signal(Signal::SIGKILL)?;
    assert_eq!(signal_of(profiler.ended()?.status), Some(9));
    Ok(())
}

/// Returns the marks by the lane.
fn by_lane(snapshot: &Snapshot) -> u64 {
    snapshot.source.express.map_or(0, |used| used.marks)
}

#[test]
fn behind_a_killed_profiler_marks_cost_nothing_and_the_next_one_counts_them() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let mut steps = Steps::start()?;
    let unprofiled = steps.ask("cost")?;
    let profiler = steps.profile(&[])?;
    steps.get_lane()?;
    let by_lane_cost = steps.ask("cost")?;
    // In the midst of a flood.
    steps.request("sections 2 1000")?;
    kill(profiler)?;
    steps.answer()?;
    let killed = Instant::now();
    let cost = wait::until("marks to cost nothing", || {
        let cost = steps.ask("cost")?;
        Ok((cost <= 20 + 3 * unprofiled).then_some(cost))
    })?;
    println!(
        "a section takes {unprofiled} ns, {by_lane_cost} ns by the lane, {cost} ns after {:?}",
        killed.elapsed()
    );
    let next = steps.profile(&AMPLE)?;
    // Before it may be the only one, and after that.
    let written = steps.ask("run 5000")? + steps.get_lane()? + steps.ask("run 20000")?;
    let snapshot = finish(next)?;
    assert_eq!(sections(&snapshot, "work"), written);
    assert!(by_lane(&snapshot) > 0, "{:?}", snapshot.source.express);
    Ok(())
}

#[test]
fn two_profilers_at_once_both_count_everything() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let mut steps = Steps::start()?;
    let first = steps.profile(&AMPLE)?;
    let alone = steps.get_lane()? + steps.ask("run 5000")?;
    let second = steps.profile(&AMPLE)?;
    let both = steps.ask("run 20000")?;
    let first = finish(first)?;
    // The second one is the only one when the leases of the first have run out.
    let behind = steps.ask("run 5000")? + steps.get_lane()? + steps.ask("run 5000")?;
    let second = finish(second)?;
    assert_eq!(sections(&first, "work"), alone + both);
    assert_eq!(sections(&second, "work"), both + behind);
    // While both were there none had a lane.
    let (first, second) = (by_lane(&first), by_lane(&second));
    assert!((1..=2 * alone).contains(&first) && (1..=2 * behind).contains(&second), "{first} and {second}");
    Ok(())
}

#[test]
fn a_profiler_that_reads_no_lanes_counts_everything_beside_one_that_does() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let mut steps = Steps::start()?;
    let first = steps.profile(&AMPLE)?;
    let alone = steps.get_lane()? + steps.ask("run 5000")?;
    let second = steps.profile(&["--marks", "uprobe"])?;
    let both = steps.ask("run 2000")?;
    let second = finish(second)?;
    let behind = steps.ask("run 5000")?;
    let first = finish(first)?;
    assert_eq!((sections(&second, "work"), by_lane(&second)), (both, 0));
    assert_eq!(sections(&first, "work"), alone + both + behind);
    Ok(())
}

#[test]
fn a_profiler_comes_and_goes_in_a_flood_that_another_one_counts() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let mut steps = Steps::start()?;
    let first = steps.profile(&AMPLE)?;
    steps.request("sections 2 3000")?;
    let second = steps.profile(&[])?;
    second.signal(Signal::SIGTERM)?;
    second.finish()?.ended.expect_code(0)?;
    kill(steps.profile(&[])?)?;
    let written = steps.answer()?;
    let first = finish(first)?;
    assert_eq!(["outer", "inner"].map(|name| sections(&first, name)), [written, written]);
    assert!(by_lane(&first) > 0, "{:?}", first.source.express);
    Ok(())
}

#[test]
fn of_two_profilers_one_is_killed_and_the_other_counts_everything() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let mut steps = Steps::start()?;
    let first = steps.profile(&[])?;
    steps.get_lane()?;
    let second = steps.profile(&AMPLE)?;
    let both = steps.ask("run 20000")?;
    kill(first)?;
    let behind = steps.ask("run 5000")? + steps.get_lane()? + steps.ask("run 5000")?;
    let second = finish(second)?;
    assert_eq!(sections(&second, "work"), both + behind);
    assert!(by_lane(&second) > 0, "{:?}", second.source.express);
    Ok(())
}

#[test]
fn bpftrace_sees_the_marks_that_take_probes_and_disturbs_nobody() -> Result<()> {
    const SECTIONS: u64 = 20_000;
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    for (marks, is_lane) in [("uprobe", false), ("auto", true)] {
        let mut steps = Steps::start()?;
        steps.ask("run 1")?;
        let probe = format!("usdt:{}:nntrace:mark {{ @ = count(); }}", steps.program().display());
        let tool = Child::start(Command::new("bpftrace").args(["-p", &steps.pid(), "-e", &probe]))
            .context("bpftrace: run `cargo xtask test`, which installs it")?;
        wait::until("bpftrace to attach", || Ok((steps.ask("listens")? == 1).then_some(())))?;
        let profiler = steps.profile(&[&AMPLE[..], &["--marks", marks]].concat())?;
        let early = if is_lane { steps.get_lane()? } else { 0 };
        let written = early + steps.ask(&format!("run {SECTIONS}"))?;
        let snapshot = finish(profiler)?;
        tool.signal(Signal::SIGINT)?;
        let seen = tool.wait()?.expect_code(0)?.text();
        let counted = seen.lines().find_map(|line| line.strip_prefix("@: "));
        let counted: u64 = counted.with_context(|| format!("no count: {seen}"))?.parse()?;
        println!("{marks}: bpftrace saw {counted} marks, {:?}", snapshot.source.express);
        assert_eq!(sections(&snapshot, "work"), written, "{marks}");
        assert_eq!(counted, 2 * written - by_lane(&snapshot), "{marks}: {:?}", snapshot.source.express);
        assert_eq!(by_lane(&snapshot) > 0, is_lane, "{marks}: {:?}", snapshot.source.express);
    }
    Ok(())
}

#[test]
fn a_profiler_in_other_namespaces_counts_all_marks_too() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    // With a `/proc` of its own, one does not see the other's lock.
    for namespaces in [&["--net"][..], &["--net", "--mount-proc"]] {
        let mut steps = Steps::start()?;
        let first = steps.profile(&AMPLE)?;
        let early = steps.get_lane()?;
        let mut second = Command::new("unshare");
        second.args(namespaces).arg(binaries::profiler()?).args(AMPLE);
        second.args(["--json-lines", "--interval", "1h", "--pid", &steps.pid()]);
        let second = Child::start(&mut second)?;
        second.lines(1)?;
        let both = steps.ask("run 30000")?;
        second.signal(Signal::SIGTERM)?;
        let second = second.wait()?.expect_code(0)?.text();
        let second = snapshot::read(second.lines().last().context("no snapshot")?.as_bytes())?;
        let first = finish(first)?;
        assert_eq!(sections(&second, "work"), both, "{namespaces:?}: {:?}", second.source.express);
        assert_eq!(sections(&first, "work"), early + both, "{namespaces:?}: {:?}", first.source.express);
    }
    Ok(())
}
