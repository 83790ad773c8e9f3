//! Planted slow-downs, recorded by the real kernel, and traces: the cause is named, with its time.

use std::fs;

use anyhow::Result;
use nntrace_tests::{
    child::{Child, Ended},
    live,
    profiler::Profiler,
    trace::line,
    why::{Planted, parts},
};
use serde_json::Value;

/// Records executions with a planted cause; the largest part of the answer has to be this one, with its time within 10 %.
fn assert_named(planted: &str, cause: &str, words: &str) -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let planted = Planted::record(planted)?;
    planted.expect(cause, &words.replace("THREAD", &planted.thread()), planted.ns()?)
}

#[test]
fn a_thread_that_had_the_cpu_is_named() -> Result<()> {
    assert_named("rival", "wait-for-cpu", "waited for a CPU that slow-runs (THREAD) of slow-runs (")
}

#[test]
fn a_program_that_took_the_cpu_is_named_though_it_is_not_traced() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let planted = Planted::record_beside("outsider")?;
    let words = format!("waited for a CPU that slow-runs ({}) had", planted.thread());
    planted.expect("wait-for-cpu", &words, planted.ns()?)
}

#[test]
fn a_program_that_had_the_cpu_at_a_wake_up_is_named() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let planted = Planted::record_beside("outsider-first")?;
    let words = format!("waited for a CPU that slow-runs ({}) had", planted.thread());
    planted.expect("wait-for-cpu", &words, planted.ns()?)
}

#[test]
fn a_lock_and_who_held_it_are_named() -> Result<()> {
    assert_named("lock", "lock", "lock table, held by LU_PE:refill of slow-runs (")
}

#[test]
fn a_slow_driver_process_is_named() -> Result<()> {
    assert_named("driver", "hand-over", "waited for LD_PE:execute of slow-runs (")
}

#[test]
fn a_cold_first_run_is_named() -> Result<()> {
    assert_named("cold", "first-run", "first run: LR_PE:infer")
}

#[test]
fn twice_the_calls_are_named() -> Result<()> {
    assert_named("calls", "more-calls", "calls of LC_PCO:conv: 4, typically 2")
}

/// Asks about a trace of executions that take so long, us.
fn ask(lengths: &[u64], arguments: &[&str]) -> Result<Ended> {
    let file = tempfile::NamedTempFile::new()?;
    let mut text = String::new();
    for (at, length) in (1_000_000_000..).step_by(10_000_000).zip(lengths) {
        for (time, payload) in [(at, "B|7|[NN_LR_PE]infer"), (at + length * 1_000, "E|7")] {
            text += &(line(time, 8, 7, payload) + "\n");
        }
    }
    fs::write(file.path(), text)?;
    let mut profiler = Profiler::new()?.args(["why"]).args([file.path()]).args(arguments);
    Child::run(profiler.command())
}

#[test]
fn without_context_switches_nothing_is_claimed() -> Result<()> {
    let lengths = [100, 110, 90, 100, 300, 105];
    let answer: Value = serde_json::from_slice(&ask(&lengths, &["--json"])?.expect_code(0)?.stdout)?;
    let [part] = &parts(&answer)?[..] else { anyhow::bail!("{answer}") };
    assert_eq!((&part["cause"], &part["certainty"]), (&"unknown".into(), &"unknown".into()));
    // The typical ones are of 100, 105 and 110 us.
    assert_eq!(part["ns"], 195_000);
    let text = ask(&lengths, &[])?.expect_code(0)?.text();
    assert!(text.starts_with("why LR_PE:infer, which takes most time: 6 executions\n"), "{text}");
    assert!(text.contains("note: context switches are not known"), "{text}");
    Ok(())
}

#[test]
fn what_cannot_be_answered_is_refused() -> Result<()> {
    let few = ask(&[100, 100, 100, 300], &["--of", "infer"])?.expect_code(1)?.stderr;
    assert!(few.contains("LR_PE:infer ended 4 times: slow executions and typical ones need 5"), "{few}");
    let none = ask(&[100, 300], &[])?.expect_code(1)?.stderr;
    assert!(none.contains("no function ended 5 times"), "{none}");
    let unknown = ask(&[100; 6], &["--of", "infr"])?.expect_code(2)?.stderr;
    assert!(unknown.contains("nothing in the run is named infr"), "{unknown}");
    let share = ask(&[100; 6], &["--slowest", "50%"])?.expect_code(2)?.stderr;
    assert!(share.contains("from 0.1% to 40%"), "{share}");
    Ok(())
}
