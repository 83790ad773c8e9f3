//! `--level sched`: whether threads ran, waited for a CPU or slept, against the kernel's own counts.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use nntrace_tests::{
    child::Child,
    live,
    profiler::{Profiler, Run},
};
use nntrace_user::report::snapshot::{FunctionUsageRow, Snapshot, ThreadRow};

const TRUTH: &str = env!("CARGO_BIN_EXE_sched-truth");

/// Counts printed by a thread.
#[derive(Debug)]
struct Told {
    tid: u32,
    run: u64,
    wait: u64,
    sleep: u64,
}

fn told(text: &str) -> Result<Vec<Told>> {
    let line = |line: &str| {
        let mut numbers = line.split_whitespace().skip(1).map(str::parse::<u64>);
        let mut next = || numbers.next().context("a word is missing")?.context("not a number");
        Ok(Told { tid: u32::try_from(next()?)?, run: next()?, wait: next()?, sleep: next()? })
    };
    text.lines().map(line).collect()
}

/// Launches the program, and pairs the counts of its threads with their rows.
fn launch(arguments: &[&str]) -> Result<(Run, Vec<(Told, ThreadRow)>)> {
    launch_by(Profiler::new()?, arguments)
}

fn launch_by(profiler: Profiler, arguments: &[&str]) -> Result<(Run, Vec<(Told, ThreadRow)>)> {
    let command = [&[TRUTH], arguments].concat();
    // Losses while other programs keep the profiler from its CPU are not tested here.
    let run =
        profiler.args(["--ring-size", "8192", "--marks", "none", "--level", "sched"]).launch(command)?;
    let told = told(&run.ended.text())?;
    let pairs = told.into_iter().map(|told| {
        let row = run.snapshot.threads.iter().find(|row| row.tid == told.tid);
        Ok((told, row.context("no row of the thread")?.clone()))
    });
    let pairs: Vec<_> = pairs.collect::<Result<_>>()?;
    ensure!(run.snapshot.loss.records_dropped == 0, "{:?}", run.snapshot.loss);
    Ok((run, pairs))
}

/// Time for beginning and ending a thread, ns; besides, the kernel counts interrupts for no thread.
const ENDS: u64 = 3_000_000;

/// Checks that the row equals the thread's own counts. Time taken by a hypervisor counts as sleep there, and as time
/// on CPU here. On a busy host the thread may wait once more before its end.
fn check((told, row): &(Told, ThreadRow), switches: u64) {
    println!("{told:?}\n{row:?}");
    let life = told.run + told.wait + told.sleep;
    // A kernel may skip an event; that is little time, and known.
    assert!(row.unknown_ns <= life / 8, "unknown");
    let granted = ENDS + life / 50 + switches * 2_000 + row.unknown_ns;
    assert!(row.on_cpu_ns + granted >= told.run, "on CPU, {granted} ns granted");
    assert!(asleep(row) <= told.sleep + granted, "sleeping, {granted} ns granted");
    let both = (row.on_cpu_ns + asleep(row), told.run + told.sleep);
    assert!(both.0.abs_diff(both.1) <= granted, "{both:?}, {granted} ns granted");
    let waits = told.wait.saturating_sub(granted)..=told.wait + granted + 50_000_000;
    assert!(waits.contains(&row.runnable_ns), "runnable, not in {waits:?}");
}

fn asleep(row: &ThreadRow) -> u64 {
    row.sleeping_ns + row.uninterruptible_ns
}

#[test]
fn a_thread_that_naps_is_seen_to_run_to_wait_and_to_sleep_as_the_kernel_counts() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let (run, pairs) = launch(&["naps", "20", "10"])?;
    let [pair] = &pairs[..] else { anyhow::bail!("one thread was expected: {pairs:?}") };
    check(pair, 40);
    assert!(asleep(&pair.1) + pair.1.unknown_ns >= 20 * 10_000_000, "each nap took 10 ms at least");
    // The main thread waits for it all the time. If a kernel skips an event, its state is unknown.
    let main = run.snapshot.threads.iter().find(|row| row.pid == row.tid).context("no main thread")?;
    println!("{main:?}");
    assert!(asleep(main) + main.unknown_ns + ENDS >= pair.0.run + pair.0.sleep);
    Ok(())
}

#[test]
fn rivals_for_one_cpu_wait_for_each_other() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let (_, pairs) = launch(&["rivals", "3", "300"])?;
    assert_eq!(pairs.len(), 3);
    for pair in &pairs {
        check(pair, 200);
        assert!(pair.0.wait > 50_000_000, "they were to be rivals");
    }
    Ok(())
}

#[test]
fn threads_that_were_there_before_are_known_from_their_state_on() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let sleeper = Child::start(std::process::Command::new("sleep").arg("60"))?;
    let pid = sleeper.pid().to_string();
    let run = Profiler::new()?
        .args(["--marks", "none", "--level", "sched", "--duration", "500ms", "--pid", &pid])
        .run()?;
    let rows = &run.snapshot.threads;
    println!("{rows:?}");
    let [row] = &rows[..] else { anyhow::bail!("one thread was expected: {rows:?}") };
    // There was no event: it was found asleep, and nothing woke it.
    assert_eq!((row.pid, row.comm.as_str()), (sleeper.pid(), "sleep"));
    assert!(row.sleeping_ns >= 400_000_000);
    assert!(row.unknown_ns <= 200_000_000, "before it was looked at");
    assert_eq!(row.on_cpu_ns + row.runnable_ns + row.uninterruptible_ns, 0);
    Ok(())
}

#[test]
fn a_ring_that_overflows_leaves_unknown_and_not_wrong() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let run = Profiler::new()?.args(["--marks", "none", "--level", "sched", "--ring-size", "4"]).launch([
        TRUTH,
        "ping-pong",
        "200000",
    ])?;
    let Snapshot { loss, overhead, threads, .. } = &run.snapshot;
    println!("{loss:?}\n{overhead:?}\n{threads:?}");
    ensure!(loss.records_dropped > 0, "the ring was to overflow");
    let told = told(&run.ended.text())?;
    let echo = threads.iter().find(|row| row.tid == told[0].tid).context("no row of the thread")?;
    assert!(echo.unknown_ns > 0);
    assert!(echo.on_cpu_ns <= told[0].run + told[0].run / 10 + ENDS);
    Ok(())
}

#[test]
fn two_that_pass_a_byte_are_seen_at_each_switch() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let (run, pairs) = launch(&["ping-pong", "20000"])?;
    let overhead = &run.snapshot.overhead;
    println!("{:?} events of {:?} ns\n{pairs:?}", overhead.sched_events, overhead.ns_per_sched_event);
    check(&pairs[0], 2 * 20_000);
    // Two switches and a wake-up each, or two.
    ensure!(overhead.sched_events.is_some_and(|events| events >= 3 * 20_000));
    Ok(())
}

#[test]
fn without_the_level_nothing_is_attached_and_nothing_shown() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let run = Profiler::new()?.args(["--marks", "none"]).launch(["true"])?;
    assert_eq!(run.snapshot.threads, []);
    assert_eq!(run.snapshot.overhead.sched_events, None);
    Ok(())
}

/// A kernel may leave out a switch to the waking thread; the thread that sleeps all the time is known to sleep.
#[test]
fn a_thread_that_sleeps_is_known_to_however_often_another_wakes() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let (run, pairs) = launch(&["dozes", "1500"])?;
    println!("{:?}", run.snapshot.notes);
    let [dozes, (told, main)] = &pairs[..] else { anyhow::bail!("two threads were expected: {pairs:?}") };
    println!("{told:?}\n{main:?}");
    // The one event that may be missing is its waking up at the end: what it does from there on may be unknown, and it ends
    // when the machine lets it.
    assert!(main.unknown_ns <= told.sleep / 20, "it slept");
    // On a busy host its start and end take as long as it waited for a CPU.
    assert!(asleep(main) + main.unknown_ns + told.wait + ENDS >= told.sleep, "it waited for the other");
    // Within the microseconds of a wake-up the kernel counts the begin of running differently: with tens of thousands
    // of naps, only the sum of both can be compared.
    let (told, row) = dozes;
    let awake = row.on_cpu_ns + row.runnable_ns;
    let granted = ENDS + (told.run + told.wait + told.sleep) / 8 + row.unknown_ns;
    assert!(
        awake.abs_diff(told.run + told.wait) <= granted,
        "{awake} ns awake, {granted} ns granted: {dozes:?}"
    );
    Ok(())
}

#[test]
fn a_thread_that_execs_ends_there_and_the_program_goes_on_as_the_leader() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let run =
        Profiler::new()?.args(["--marks", "none", "--level", "sched"]).launch([TRUTH, "exec", "400"])?;
    let told = told(&run.ended.text())?;
    let [former, naps] = &told[..] else { anyhow::bail!("two lines were expected: {told:?}") };
    let rows: Vec<&ThreadRow> = run.snapshot.threads.iter().collect();
    println!("{rows:?}");
    let life = |row: &ThreadRow| row.on_cpu_ns + row.runnable_ns + asleep(row) + row.unknown_ns;
    let row = rows.iter().find(|row| row.tid == former.tid).context("no row of the thread that execs")?;
    // It slept 20 ms, and execed.
    assert!((20_000_000..200_000_000).contains(&life(row)), "{row:?}");
    assert!(
        rows.iter().any(|row| row.tid == naps.tid && life(row) >= 800_000_000),
        "of the new program's thread"
    );
    // The leader ended, and the thread that took its id waited for the thread of the new program.
    let leaders: Vec<_> = rows.iter().filter(|leader| leader.tid == row.pid).collect();
    assert_eq!(leaders.len(), 2, "{leaders:?}");
    assert!(asleep(leaders[1]) + leaders[1].unknown_ns >= 700_000_000, "{leaders:?}");
    Ok(())
}

/// Without BTF the offset of a task's id is unknown: programs read the events as described by tracefs.
#[test]
fn without_btf_threads_are_followed_and_the_events_counted_as_overhead() -> Result<()> {
    const BTF: &str = "/sys/kernel/btf";
    let Some(_live) = live::enter()? else { return Ok(()) };
    let profiler = if Path::new(BTF).exists() { Profiler::without(BTF)? } else { Profiler::new()? };
    let (run, pairs) = launch_by(profiler, &["ping-pong", "20000"])?;
    let overhead = &run.snapshot.overhead;
    println!("{:?} events of {:?} ns\n{pairs:?}", overhead.sched_events, overhead.ns_per_sched_event);
    // The kernel skips some, and counts only those that ran.
    ensure!(overhead.sched_events.is_some_and(|events| events >= 2 * 20_000), "{overhead:?}");
    ensure!(overhead.ns_per_sched_event.is_some_and(|ns| ns > 0), "{overhead:?}");
    let (told, row) = &pairs[0];
    assert!(row.on_cpu_ns <= told.run + told.run / 10 + ENDS, "{row:?}");
    Ok(())
}

#[test]
fn what_outlives_its_command_is_named() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let run = Profiler::new()?.args(["--marks", "none"]).launch([TRUTH, "daemon", "30"])?;
    let daemon = told(&run.ended.text())?[0].tid;
    kill(Pid::from_raw(daemon.cast_signed()), Signal::SIGKILL)?;
    let notes = run.snapshot.notes.join("\n");
    assert!(
        notes.contains(&format!(
            "1 of the processes that it started lives on, traced no more: {daemon} (sleep)"
        )),
        "{notes}"
    );
    let run = Profiler::new()?.args(["--marks", "none"]).launch(["true"])?;
    assert!(!run.snapshot.notes.iter().any(|note| note.contains("live on")), "{:?}", run.snapshot.notes);
    Ok(())
}

/// Launches the program with its sections, and returns the row of a function with its exclusive time.
fn used(arguments: &[&str], name: &str) -> Result<(Snapshot, FunctionUsageRow, u64)> {
    let command = [&[TRUTH], arguments].concat();
    let run = Profiler::new()?.args(["--ring-size", "8192", "--level", "sched"]).launch(command)?;
    println!("{:?}", run.snapshot.usage);
    let usage = run.snapshot.usage.as_ref().context("no usage")?;
    let row = usage.functions.iter().find(|row| row.site.name == name).context("no row of it")?.clone();
    let function = run.snapshot.functions.iter().find(|row| row.name == name).context("no function")?;
    let exclusive = function.exclusive_ns;
    Ok((run.snapshot, row, exclusive))
}

fn all_of(row: &FunctionUsageRow) -> u64 {
    let usage = &row.usage;
    usage.on_cpu_ns + usage.runnable_ns + usage.sleeping_ns + usage.uninterruptible_ns + usage.unknown_ns
}

#[test]
fn a_section_that_spins_300_ms_and_sleeps_700_used_just_that() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let mut run = used(&["work", "300", "700"], "work")?;
    // Under load the kernel may skip a program: what the thread did until its next event is unknown then.
    for _ in 0..2 {
        if run.1.usage.unknown_ns > 0 {
            run = used(&["work", "300", "700"], "work")?;
        }
    }
    let (snapshot, row, exclusive) = run;
    let usage = &row.usage;
    assert_eq!(all_of(&row), exclusive, "the parts add up to the nanosecond");
    assert!(usage.on_cpu_ns.abs_diff(300_000_000) <= 3_000_000, "{usage:?}");
    assert!(usage.sleeping_ns.abs_diff(700_000_000) <= 7_000_000, "{usage:?}");
    assert_eq!(usage.unknown_ns, 0, "a launched thread is known from its begin");
    // Everything that the threads of the process did is in one of its rows.
    let threads = snapshot.threads.iter().filter(|thread| thread.pid == row.site.pid);
    let life: u64 = threads
        .map(|thread| thread.on_cpu_ns + thread.runnable_ns + asleep(thread) + thread.unknown_ns)
        .sum();
    let phases = snapshot.usage.iter().flat_map(|usage| &usage.phases);
    let rows = phases.filter(|phase| phase.pid == row.site.pid).map(|phase| {
        let usage = phase.usage.clone();
        all_of(&FunctionUsageRow { site: row.site.clone(), usage })
    });
    assert_eq!(rows.sum::<u64>(), life);
    Ok(())
}

#[test]
fn sections_of_rivals_for_one_cpu_wait_for_it() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let (_, row, exclusive) = used(&["rivals", "2", "300"], "rival")?;
    assert_eq!(all_of(&row), exclusive);
    // Both want to run all of the time, and one can.
    assert!(row.usage.runnable_ns >= 200_000_000, "{row:?}");
    assert!(row.usage.on_cpu_ns + row.usage.runnable_ns >= exclusive / 10 * 9, "{row:?}");
    Ok(())
}
