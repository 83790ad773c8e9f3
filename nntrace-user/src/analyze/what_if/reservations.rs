//! Assumptions of answers, and what of them does not hold.

use std::collections::BTreeMap;

use super::cpus::Cpus;
use crate::{
    analyze::run_graph::{
        build::{Built, Facts},
        graph::{Kind, Trust},
    },
    model::{Findings, plurals::counted},
    report::number_format::{count, duration_ns, khz},
};

/// Deviation of the modelled from the recorded makespan that is named, as a share.
const DEVIATION: f64 = 0.1;

/// Facts about a prediction.
pub(super) struct Predicted<'a> {
    /// CPUs; `None` for as many as there are threads.
    pub(super) cpus: Option<&'a Cpus>,
    /// Modelled makespan as a multiple of the recorded one.
    pub(super) fit: f64,
    /// Hand-overs that it takes before they are given.
    pub(super) violations: u64,
    /// Whether more speed never takes longer.
    pub(super) is_monotone: bool,
    /// Components with other speeds.
    pub(super) chosen: &'a [u32],
    /// Lowest and highest frequency (kHz) of the components of which it varied.
    pub(super) varied: &'a BTreeMap<u32, (u32, u32)>,
}

/// Returns the assumptions that a prediction rests on.
pub(super) fn assumptions(predicted: &Predicted<'_>, facts: &Facts) -> Vec<String> {
    let mut all: Vec<String> = [
        "work takes as long whatever else runs: caches, memory and temperature are not modelled",
        "the program does the same: same branches, same worker for each job, locks in the recorded order",
        "work that no section covers keeps its speed, unless `unmarked` is named",
        "only edges that are known make threads wait",
    ]
    .map(Into::into)
    .into();
    all.push(match (facts.is_open, facts.arrivals_given) {
        (true, true) => "input from outside keeps its recorded times (--arrivals open)".into(),
        (true, false) => {
            "input from outside keeps its recorded times, as who takes it pauses in between (open)".into()
        }
        (false, true) => {
            "input from outside comes when the thread that takes it is ready (--arrivals closed)".into()
        }
        (false, false) => "no input comes from outside by the clock (closed)".into(),
    });
    all.push(match predicted.cpus {
        Some(Cpus { count, slice, .. }) => format!(
            "of the threads, {count} have a CPU at once; they take turns by {}, and wait for other programs as long as in the \
             recording",
            duration_ns(*slice)
        ),
        None => "there is a CPU for each thread; waits for a CPU that were recorded stay".into(),
    });
    if facts.fixed > 0 {
        all.push(format!(
            "{} of sleeps that nothing explains (timers, devices) keep their length",
            duration_ns(facts.fixed)
        ));
    }
    for (rooms, word) in [(&facts.rooms.0, "by their marks"), (&facts.rooms.1, "as inferred from waits")] {
        if !rooms.is_empty() {
            let mut rooms = rooms.clone();
            rooms.sort_unstable();
            rooms.dedup();
            let rooms: Vec<String> = rooms.iter().map(ToString::to_string).collect();
            all.push(format!("items that queues have room for, {word}: {}", rooms.join(", ")));
        }
    }
    all
}

/// Returns what of its assumptions does not hold, or is in doubt.
pub(super) fn violated(predicted: &Predicted<'_>, built: &Built<'_>, findings: &Findings<'_>) -> Vec<String> {
    let facts = &built.facts;
    let mut all = Vec::new();
    let inferred: Vec<String> = facts
        .edges
        .iter()
        .filter(|((_, trust), _)| *trust == Trust::Inferred)
        .map(|((kind, _), edges)| format!("{} ({})", plural(*kind), count(*edges)))
        .collect();
    if !inferred.is_empty() {
        all.push(format!("inferred, not known: {}", inferred.join(", ")));
    }
    if facts.edges.is_empty() && facts.threads > 1 {
        all.push(format!(
            "no edge between {} threads is known: they are taken for independent. Marks nn.send and nn.recv would show what \
             they hand over",
            facts.threads
        ));
    }
    if facts.switched < facts.threads {
        all.push(format!(
            "of {} of {} no context switch is known: their time is work but where they wait for another thread",
            facts.threads - facts.switched,
            counted(facts.threads as u64, "thread")
        ));
    }
    if facts.violations > 0 {
        all.push(format!(
            "edges that lead backwards in recorded time are left out ({}): clocks or marks are wrong",
            count(facts.violations)
        ));
    }
    if facts.unmatched > 0 {
        all.push(format!("receipts without a dispatch: {}", count(facts.unmatched)));
    }
    if predicted.violations > 0 {
        all.push(format!(
            "hand-overs that the prediction takes before they are given: {}",
            count(predicted.violations)
        ));
    }
    if facts.unknown > 0 {
        all.push(format!(
            "{} of threads are not known to be work or waiting: taken for work",
            duration_ns(facts.unknown)
        ));
    }
    let deviation = predicted.fit - 1.0;
    if deviation.abs() > DEVIATION {
        all.push(format!(
            "with the recorded speeds the model deviates by {:+.0}% from the recording: threads may be bound to CPUs (--pinned), or were \
             served in another order",
            deviation * 100.0
        ));
    }
    if predicted.cpus.is_some() && !predicted.is_monotone {
        all.push(
            "more speed takes longer in places: with few CPUs, another order of work can be worse (Graham)"
                .into(),
        );
    }
    for (number, (lowest, highest)) in
        predicted.varied.iter().filter(|(number, _)| predicted.chosen.contains(number))
    {
        all.push(format!(
            "the frequency varied while {} ran: {} to {}",
            built.components.name(*number),
            khz(*lowest),
            khz(*highest)
        ));
    }
    if findings.run.loss.records_dropped > 0 {
        all.push(format!("records that were lost: {}", count(findings.run.loss.records_dropped)));
    }
    all
}

const fn plural(kind: Kind) -> &'static str {
    match kind {
        Kind::HandOver => "hand-overs",
        Kind::Reply => "replies",
        Kind::BackPressure => "waits for room in a queue",
        Kind::Lock => "locks",
        Kind::Create => "creations of threads",
        Kind::Join => "joins of threads",
        Kind::WakeUp => "wake-ups",
    }
}
