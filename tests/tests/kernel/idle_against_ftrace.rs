//! Residency of idle states against the kernel's own recording of the same events, swept by other code.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use anyhow::Result;
use nntrace_tests::{
    live,
    power::{Event, Residency},
    profiler::Profiler,
    results::Results as _,
    tracefs::Instance,
};
use nntrace_user::report::snapshot::{CpuRow, IdleSource, Snapshot};

/// Difference between the two clock readings of one event. The recording rounds to a microsecond; a virtual machine
/// can be off the CPU between the two.
const APART_NS: u64 = 20_000;
/// The most that the mean of that difference may be. It does not cancel out: 394 ns an event were observed on a busy
/// host, perhaps as the later of two programs on one event waits longer for the other after a wakeup.
const READING_NS: u64 = 1_000;
/// Uncertainty at the end: the profiler reads one CPU after the other just before the window ends, and the last state
/// that it read holds to the end.
const EDGE_NS: u64 = 5_000_000;

/// Runs `work` while every CPU sleeps and wakes.
fn with_naps<T>(work: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for nap in [300, 700, 1_900, 11_000].map(Duration::from_micros) {
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    thread::sleep(nap);
                }
            });
        }
        let result = work();
        stop.store(true, Ordering::Relaxed);
        result
    })
}

/// Difference between a run and the kernel's recording of it.
enum Apart {
    /// More time than the readings of the clock may be apart.
    Time(String),
    /// A different number of stays, for any part of the recording that ends where the window may.
    Stays(String),
}

#[test]
fn residency_and_hits_are_those_of_the_kernels_own_recording() -> Result<()> {
    /// Number of attempts: a host that takes the CPU away for milliseconds between two readings of the clock does not
    /// do so in every run; an error of ours occurs in all of them.
    const TRIES: u32 = 8;
    /// If it does so around the window's end, the recording may have one more stay; that is rare.
    const STAYS_APART: u32 = 1;
    let Some(_live) = live::enter()? else { return Ok(()) };
    let mut stays_apart = 0;
    for _ in 0..TRIES {
        match measure_and_compare()? {
            None => return Ok(()),
            Some(Apart::Time(text)) => println!("again: {text}"),
            Some(Apart::Stays(text)) => {
                stays_apart += 1;
                assert!(stays_apart <= STAYS_APART, "{text}");
                println!("again: {text}");
            }
        }
    }
    panic!("times were apart in each of {TRIES} runs");
}

/// Compares one run with the recording; returns their difference.
fn measure_and_compare() -> Result<Option<Apart>> {
    let recording = Instance::recording_idle()?;
    let run = with_naps(|| Profiler::new()?.args(["--duration", "3s"]).run())?;
    let snapshot = run.snapshot;
    run.ended.expect_code(0)?;
    let cpus = snapshot.cpus.iter().map(|row| row.cpu as usize + 1).max().unwrap_or(0);
    let events = recording.finish(cpus)?;
    assert_eq!(snapshot.odd_marks(), [].into());
    let (mut compared, mut apart) = (0, None);
    for row in &snapshot.cpus {
        let events = &events[row.cpu as usize];
        if events.is_empty() && row.idle.iter().any(|row| row.hits > 0) {
            // Observed on a virtual machine, even without the profiler, while the kernel's own counters went up.
            println!(
                "CPU {}: the kernel's recording has nothing of it, so there is nothing to compare",
                row.cpu
            );
            continue;
        }
        if events.is_empty() && row.initial.idle == IdleSource::Kernel {
            // The profiler has looked at it, the recording has not.
            println!("CPU {}: without any event, it was seen in one state: {row:?}", row.cpu);
            compared += 1;
            continue;
        }
        apart = apart.or(compare(&snapshot, row, events));
        compared += 1;
    }
    assert!(compared > 0, "the kernel has recorded no CPU");
    Ok(apart)
}

/// Compares one CPU. It is unknown which events at the very edges of the window the profiler has seen; but it has
/// seen all of them between a first and a last one.
fn compare(snapshot: &Snapshot, row: &CpuRow, events: &[(u64, Event)]) -> Option<Apart> {
    let (begin, end) = (snapshot.window.begin_ns, snapshot.window.end_ns);
    // The last event before the window sets the state at its begin.
    let before = events.partition_point(|(at, _)| *at < begin).saturating_sub(1);
    let inside: Vec<(u64, Event)> = events[before..]
        .iter()
        .copied()
        .filter(|(at, _)| *at < end + APART_NS)
        .map(|(at, event)| (at.clamp(begin, end), event))
        .collect();
    let early = inside.iter().filter(|(at, _)| *at < begin + EDGE_NS).count();
    let late = inside.iter().filter(|(at, _)| *at > end - EDGE_NS).count();
    // Two events make a stay: this many are missing, plus or minus one at either edge.
    let hits: u64 = row.idle.iter().map(|row| row.hits).sum();
    let missed = inside.len().saturating_sub(2 * hits as usize);
    let best = (0..=early)
        .flat_map(|first| {
            (missed.saturating_sub(2)..=missed + 2).map(move |all| (first, all.checked_sub(first)))
        })
        .filter_map(|(first, last)| {
            let last = last.filter(|&last| last <= late)?;
            let seen = inside.get(first..inside.len().checked_sub(last)?)?;
            let swept = Residency::sweep(seen, begin, end, None);
            same_hits(row, &swept).then(|| (difference(row, &swept), first, last, swept))
        })
        .min_by_key(|(difference, ..)| *difference);
    let all = Residency::sweep(&inside, begin, end, None);
    let Some((difference, first, last, swept)) = best else {
        let text = format!("no run of the events has these hits:\n{row:#?}\nall of them: {all:#?}");
        return Some(Apart::Stays(text));
    };
    let until = first.checked_sub(1).map_or(0, |at| inside[at].0 - begin);
    let from = inside.len().checked_sub(last).and_then(|at| inside.get(at)).map_or(0, |(at, _)| end - at);
    println!(
        "CPU {}: {} events in {} ms, {difference} ns apart; missed {first} in the first {} us and {last} in the last \
         {} us, with them {} ns apart",
        row.cpu,
        inside.len(),
        (end - begin) / 1_000_000,
        until / 1_000,
        from / 1_000,
        self::difference(row, &all),
    );
    // Each event has its own reading of the clock on either side: nothing else may differ.
    let most = inside.len() as u64 * READING_NS + APART_NS;
    let text = || format!("{difference} ns apart, {most} ns at most:\n{row:#?}\n{swept:#?}");
    (difference > most).then(|| Apart::Time(text()))
}

fn same_hits(row: &CpuRow, swept: &Residency) -> bool {
    let idle = row.idle.iter().map(|row| (row.state, row.hits));
    let running: u64 = row.running.iter().map(|row| row.hits).sum();
    idle.eq(swept.idle.iter().map(|(&state, stays)| (state, stays.hits)))
        && running == swept.running.values().map(|stays| stays.hits).sum::<u64>()
}

/// Returns the largest difference in any state, ns.
fn difference(row: &CpuRow, swept: &Residency) -> u64 {
    let states = row.idle.iter().map(|row| row.state).chain(swept.idle.keys().copied());
    let idle = states.map(|state| {
        let ours = row.idle.iter().find(|row| row.state == state).map_or(0, |row| row.ns);
        ours.abs_diff(swept.idle.get(&state).map_or(0, |stays| stays.ns))
    });
    let running = row.running.iter().map(|row| row.ns).sum::<u64>();
    let others = [
        running.abs_diff(swept.running.values().map(|stays| stays.ns).sum()),
        row.idle_unknown_ns.abs_diff(swept.idle_unknown_ns),
        row.unknown_ns.abs_diff(swept.unknown_ns),
    ];
    idle.chain(others).max().unwrap_or(0)
}
