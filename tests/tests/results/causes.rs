//! Causes of work, live: accounts across hand-overs and created threads, explanations of variance, missing time. The
//! programs print the truth themselves.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context as _, Result, bail, ensure};
use nntrace_tests::{
    live,
    native::Program,
    profiler::{Profiler, Run},
    results::Results as _,
    truth::Bounds,
};
use nntrace_user::report::snapshot::{AccountRow, Snapshot};
use serde::{Deserialize, de::DeserializeOwned};

/// Parses the program's output.
fn truth<T: DeserializeOwned>(run: &Run) -> Result<T> {
    let text = run.ended.text();
    let line =
        text.lines().find(|line| line.starts_with('{')).with_context(|| format!("no truth in {text}"))?;
    serde_json::from_str(line).with_context(|| line.to_owned())
}

/// Checks that a time is within the bounds of the program's clock.
fn ensure_within(what: &str, measured: u64, truth: &Bounds) -> Result<()> {
    println!("{what}: {measured} ns, by the program's clock {truth:?}");
    ensure!(truth.range().contains(&measured), "{what}: {measured} ns, not within {truth:?}");
    Ok(())
}

fn account<'a>(snapshot: &'a Snapshot, name: &str) -> Result<&'a AccountRow> {
    let found = snapshot.accounts.iter().find(|row| row.account.as_deref() == Some(name));
    found.with_context(|| format!("no account {name} in {:?}", snapshot.accounts))
}

fn count(row: &AccountRow, function: &str) -> u64 {
    row.functions.iter().filter(|row| row.site.name == function).map(|row| row.count).sum()
}

/// Returns the sections of the whole run by name.
fn by_name(snapshot: &Snapshot) -> BTreeMap<&str, u64> {
    let mut counts = BTreeMap::new();
    for row in &snapshot.functions {
        *counts.entry(row.name.as_str()).or_default() += row.count;
    }
    counts
}

#[derive(Deserialize)]
struct QueueTruth {
    accounts: BTreeMap<String, Bounds>,
    images: BTreeMap<String, Bounds>,
    sections: BTreeMap<String, u64>,
}

fn a_queue_is_charged_to_who_fills_it(program: &Path) -> Result<()> {
    let run = Profiler::new()?.args(["--by", "img", "--handoff"]).launch([program])?;
    let (truth, snapshot): (QueueTruth, _) = (truth(&run)?, &run.snapshot);
    assert_eq!(run.ended.status.code(), Some(0));
    assert_eq!(snapshot.odd_marks(), [].into());
    assert_eq!(truth.sections, [("foo".to_owned(), 10), ("bar".to_owned(), 15)].into());
    assert_eq!(by_name(snapshot), [("convert_image", 25), ("submit", 25)].into());
    for name in ["foo", "bar"] {
        let row = account(snapshot, name)?;
        ensure_within(name, row.handed_over_ns, &truth.accounts[name])?;
        assert_eq!(count(row, "convert_image"), truth.sections[name], "{row:?}");
        assert_eq!(count(row, "submit"), truth.sections[name], "{row:?}");
        assert_eq!(row.created_ns, 0);
    }
    // The workers' own time, without an account.
    let nobodys = snapshot.accounts.iter().filter(|row| row.account.is_none());
    let (nobodys, all): (u64, u64) = (
        nobodys.map(|row| row.exclusive_ns).sum(),
        truth.accounts.values().map(|bounds| bounds.least_ns).sum(),
    );
    assert!(nobodys * 100 < all, "{nobodys} ns of {all} are nobody's");
    let jobs: u64 = truth.sections.values().sum();
    let counts = snapshot.hand_overs.context("nothing was handed over")?;
    assert_eq!((counts.sent, counts.received, counts.unmatched), (jobs, jobs, 0));
    // A section with the handle takes each job: there is no setup, and nothing that was not seen.
    let split = snapshot.hand_over_split.as_ref().context("no hand-overs")?;
    let [pair] = &split.pairs[..] else { bail!("not one kind of job: {split:?}") };
    assert_eq!((pair.count, pair.name.as_deref(), split.hb_violations), (jobs, Some("convert_image"), 0));
    let [propagation, setup, head, execution, ..] =
        pair.parts().map(|(_, part)| part.map(|part| part.sum_ns));
    assert_eq!((setup, propagation), (Some(0), head));
    let functions = snapshot.functions.iter().filter(|row| row.name == "convert_image");
    assert_eq!(execution, Some(functions.map(|row| u128::from(row.total_ns)).sum()));
    let mut means = BTreeMap::new();
    for (image, truth) in &truth.images {
        let row = snapshot.groups.iter().find(|row| row.value == *image && row.site.name == "convert_image");
        let row = row.with_context(|| format!("no {image} in {:?}", snapshot.groups))?;
        ensure_within(image, row.total_ns, truth)?;
        means.insert(image.as_str(), row.total_ns / row.count);
    }
    assert!(means["foo_image.jpg"] > 2 * means["bar_image.png"], "{means:?}");
    Ok(())
}

#[test]
fn a_queue_in_cxx_is_charged_to_who_fills_it() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    a_queue_is_charged_to_who_fills_it(Program::build("job-queue.cc")?.path())
}

#[test]
fn a_queue_in_rust_is_charged_to_who_fills_it() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    a_queue_is_charged_to_who_fills_it(Path::new(env!("CARGO_BIN_EXE_job-queue")))
}

#[derive(Deserialize)]
struct CallTruth {
    f_calls: u64,
    f_variance: f64,
    g_calls: u64,
    g_mean: f64,
    g_variance: f64,
    count_mean: f64,
    count_variance: f64,
}

#[test]
fn variance_is_put_down_to_how_often_or_to_how_long() -> Result<()> {
    /// Number of attempts: on a busy host calls that should take the same time do not, and the clock readings around
    /// a mark are further apart than the section.
    const TRIES: u32 = 8;
    let Some(_live) = live::enter()? else { return Ok(()) };
    let program = Program::build("f-calls-g.c")?;
    for mode in ["count", "length"] {
        let mut is_clear = false;
        for _ in 0..TRIES {
            let run = Profiler::new()?
                .args(["--explain", "f"])
                .launch([program.path().as_os_str(), mode.as_ref()])?;
            let truth: CallTruth = truth(&run)?;
            let explanation = run.snapshot.explanation.context("nothing is explained")?;
            let [callee] = &explanation.callees[..] else { panic!("{explanation:?}") };
            assert_eq!((explanation.count, callee.calls), (truth.f_calls, truth.g_calls));
            let often = truth.count_variance * truth.g_mean.powi(2) / truth.f_variance;
            let long = truth.count_mean * truth.g_variance / truth.f_variance;
            println!("{mode}: how often {:.3} ({often:.3})", callee.how_often);
            println!("{mode}: how long {:.3} ({long:.3})", callee.how_long);
            let is_true = (callee.how_often - often).abs() < 0.03 && (callee.how_long - long).abs() < 0.03;
            let (right, wrong) = match mode {
                "count" => (callee.how_often, callee.how_long),
                _ => (callee.how_long, callee.how_often),
            };
            is_clear = is_true && right > 0.9 && wrong < 0.05;
            if is_clear {
                break;
            }
        }
        assert!(
            is_clear,
            "{mode}: no run in {TRIES} in which the one cause was seen, as by the program's clock"
        );
    }
    Ok(())
}

#[derive(Deserialize)]
struct ThreadTruth {
    batch: Bounds,
    crowd_threads: u64,
    crowd: Bounds,
}

#[test]
fn threads_belong_to_where_they_were_created() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let program = Program::build("threads.cc")?;
    let run = Profiler::new()?.launch([program.path()])?;
    let truth: ThreadTruth = truth(&run)?;
    let (batch, crowd) = (account(&run.snapshot, "batch")?, account(&run.snapshot, "crowd")?);
    ensure_within("batch", batch.created_ns, &truth.batch)?;
    ensure_within("crowd", crowd.created_ns, &truth.crowd)?;
    let expected = [("created", 1), ("short_lived", 200), ("start_many", 1), ("start_one", 1)];
    assert_eq!(by_name(&run.snapshot), expected.into());
    assert_eq!((count(batch, "created"), count(crowd, "short_lived")), (1, truth.crowd_threads));
    assert_eq!(run.snapshot.odd_marks(), [].into());
    Ok(())
}

#[derive(Deserialize)]
struct FrameTruth {
    frames: u64,
    time: Bounds,
    missing: Bounds,
}

#[test]
fn a_sleep_between_sections_is_missing_and_trips_the_gate() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let program = Program::build("frames.c")?;
    for (most, code) in [("5%", 3), ("95%", 0)] {
        let args = ["--level", "sched", "--max-missing", most];
        let run = Profiler::new()?.args(args).launch([program.path()])?;
        let truth: FrameTruth = truth(&run)?;
        assert_eq!(run.ended.status.code(), Some(code), "{}", run.ended.stderr);
        let [row] = &run.snapshot.missing[..] else { panic!("{:?}", run.snapshot.missing) };
        assert_eq!((row.site.name.as_str(), row.count), ("frame", truth.frames));
        ensure_within("frames", row.total_ns, &truth.time)?;
        ensure_within("missing", row.missing_ns, &truth.missing)?;
        assert_eq!(by_name(&run.snapshot), [("frame", 12), ("render", 12), ("track", 12)].into());
        let slept = 10_000_000 * truth.frames;
        let states = row.states.context("nobody looked at the threads")?;
        assert!(states.sleeping_ns + states.uninterruptible_ns >= slept * 98 / 100);
        assert!(states.unknown_ns * 100 < row.missing_ns, "{states:?}");
        let [frames] = &run.snapshot.iterations[..] else { panic!("{:?}", run.snapshot.iterations) };
        assert_eq!((frames.count, frames.slowest.len() as u64), (truth.frames, truth.frames.min(20)));
        ensure_within("iterations", frames.total_ns, &truth.time)?;
        for iteration in &frames.slowest {
            assert!(iteration.missing_ns >= 10_000_000 && iteration.total_ns >= 18_000_000, "{iteration:?}");
            assert_eq!(iteration.functions.iter().map(|row| row.count).sum::<u64>(), 3);
        }
    }
    Ok(())
}
