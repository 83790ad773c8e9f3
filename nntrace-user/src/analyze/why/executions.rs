//! Executions of a function: which of them were slow, and which are typical.

use std::{cmp::Reverse, str::FromStr};

use nntrace_common::{stack::ON_NO_STACK, stamp::Stamp};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    analyze::run_graph::{
        collect::{Events, Span},
        component::{self, Components},
    },
    model::plurals::counted,
};

/// Executions that are needed at least.
pub(super) const FEWEST: usize = 5;
/// Fewest typical executions, where that many are not slow.
const FEWEST_TYPICAL: usize = 3;
/// Largest share of slow executions, thousandths: the typical ones in the middle are no part of it.
const LARGEST_SHARE: u32 = 400;

/// Share of executions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Thousandths of all, from 1 on.
    thousandths: u32,
}

impl Default for Share {
    fn default() -> Self {
        Self { thousandths: 100 }
    }
}

impl FromStr for Share {
    type Err = String;

    /// Parses `10%`.
    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>().ok();
        #[expect(clippy::cast_sign_loss, reason = "a float beyond the range becomes its end")]
        let thousandths = number.map(|percent| (percent * 10.0).round() as u32);
        let share = thousandths.filter(|share| (1..=LARGEST_SHARE).contains(share));
        share
            .map(|thousandths| Self { thousandths })
            .ok_or_else(|| format!("expected a share of the executions from 0.1% to 40%, and not {text}"))
    }
}

impl Share {
    /// Returns the share of a number of executions: one at least.
    fn of(self, count: usize) -> usize {
        (count * self.thousandths as usize / 1_000).max(1)
    }
}

/// Whether an execution is the first one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum First {
    /// There was one before on its thread.
    #[default]
    No,
    /// It is the first one of its thread in the run.
    OfThread,
    /// It is the first one of its process in the run.
    OfProcess,
}

/// Execution of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Execution {
    /// Number of its section.
    pub(super) span: u32,
    /// Begin, ns.
    pub(super) begin: u64,
    /// End, ns.
    pub(super) end: u64,
    /// Whether it is the first one.
    pub(super) first: First,
    /// Time since the end of the one before in its process, ns: 0 where that still went on, `None` where there was none.
    pub(super) pause: Option<u64>,
}

impl Execution {
    /// Returns its length, ns.
    pub(super) fn length(&self) -> u64 {
        self.end - self.begin
    }
}

/// Reason why a function is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// It was asked for.
    Asked,
    /// Its sections are iterations, and take most time of those that are.
    Iterations,
    /// Its sections take most time.
    Longest,
}

/// Function, and its executions.
pub(super) struct Chosen {
    /// Number of the function.
    pub(super) component: u32,
    /// Reason for it.
    pub(super) reason: Reason,
    /// Its executions, by their begins.
    pub(super) executions: Vec<Execution>,
}

/// Slow and typical executions.
pub(super) struct Groups {
    /// Slowest ones, by their lengths.
    pub(super) slow: Vec<Execution>,
    /// Executions around the median, by their lengths.
    pub(super) typical: Vec<Execution>,
}

/// Finds the executions of a function, or of the one that takes most time: of those whose sections are iterations, if any are.
///
/// # Errors
/// With the reason, when the name means nothing or several functions, or when there are too few executions.
pub(super) fn choose(events: &Events, name: Option<&str>) -> Result<Chosen, Choice> {
    let components = &events.components;
    if let Some(name) = name {
        let component = named(name, components).map_err(Choice::Name)?;
        let executions = executions(events, component);
        if executions.len() < FEWEST {
            return Err(Choice::TooFew(format!(
                "{} ended {}: slow executions and typical ones need {FEWEST} at least",
                components.name(component),
                counted(executions.len() as u64, "time")
            )));
        }
        return Ok(Chosen { component, reason: Reason::Asked, executions });
    }
    let mut counts: FxHashMap<u32, (usize, u64)> = FxHashMap::default();
    for span in &events.spans {
        let (count, ns) = counts.entry(span.component).or_default();
        *count += 1;
        *ns = ns.saturating_add(span.end.time.saturating_sub(span.begin.time));
    }
    let iterations: FxHashSet<u32> =
        events.spans.iter().filter(|span| span.iteration.is_some()).map(|span| span.component).collect();
    let candidates = |is_candidate: &dyn Fn(u32) -> bool| {
        let mut all: Vec<u32> = counts
            .iter()
            .filter(|(component, (count, _))| *count >= FEWEST && is_candidate(**component))
            .map(|(component, _)| *component)
            .collect();
        all.sort_by_key(|component| (Reverse(counts[component].1), components.name(*component)));
        all
    };
    let groups = [
        (Reason::Iterations, candidates(&|component| iterations.contains(&component))),
        (Reason::Longest, candidates(&|_| true)),
    ];
    for (reason, candidates) in groups {
        for component in candidates {
            let executions = executions(events, component);
            if executions.len() >= FEWEST {
                return Ok(Chosen { component, reason, executions });
            }
        }
    }
    Err(Choice::TooFew(format!(
        "no function ended {FEWEST} times: slow executions and typical ones need at least that many"
    )))
}

/// Reason why no function is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// The name means nothing, or several functions.
    Name(String),
    /// There are too few executions.
    TooFew(String),
}

fn named(name: &str, components: &Components) -> Result<u32, String> {
    let is_named = |text: &str, function: &str| function == name || text == name;
    let found: Vec<(u32, String)> = components
        .iter()
        .map(|(number, component)| (number, component.to_string(), &component.function))
        .filter(|(_, text, function)| is_named(text, function))
        .map(|(number, text, _)| (number, text))
        .collect();
    match &found[..] {
        [(number, _)] => Ok(*number),
        [] => {
            let names = components.iter().map(|(_, component)| component.function.clone());
            Err(component::not_found(name, names.collect()))
        }
        _ => {
            let names: Vec<String> = found.into_iter().map(|(_, text)| text).collect();
            Err(format!("{name} may be any of {}: name one of them", names.join(", ")))
        }
    }
}

/// Returns the executions of a function that are in no other one of it, by their begins.
fn executions(events: &Events, component: u32) -> Vec<Execution> {
    let of_component = (0..).zip(&events.spans).filter(|(_, span)| span.component == component);
    let mut spans: Vec<(u32, &Span)> = of_component.collect();
    spans.sort_by_key(|(number, span)| (span.begin, span.depth, *number));
    let mut until: FxHashMap<u32, Stamp> = FxHashMap::default();
    let mut ends: FxHashMap<u32, u64> = FxHashMap::default();
    let mut executions = Vec::new();
    for (number, span) in spans {
        let is_new = !until.contains_key(&span.tid);
        let until = until.entry(span.tid).or_default();
        // Asynchronous ones may overlap.
        if span.begin < *until && span.depth != ON_NO_STACK {
            continue;
        }
        *until = span.end;
        let process = events.processes.get(&span.tid).copied().unwrap_or(span.tid);
        let (begin, end) = (span.begin.time, span.end.max(span.begin).time);
        let before = ends.get(&process).copied();
        ends.insert(process, end.max(before.unwrap_or(0)));
        let first = match (before, is_new) {
            (None, _) => First::OfProcess,
            (Some(_), true) => First::OfThread,
            (Some(_), false) => First::No,
        };
        let pause = before.map(|before| begin.saturating_sub(before));
        executions.push(Execution { span: number, begin, end, first, pause });
    }
    executions
}

/// Takes the slowest executions, and those around the median.
pub(super) fn groups(mut all: Vec<Execution>, slowest: Share) -> Groups {
    all.sort_by_key(|execution| (execution.length(), execution.begin, execution.span));
    let slow = all.split_off(all.len() - slowest.of(all.len()).min(all.len()));
    let count = all.len() + slow.len();
    // The middle fifth of all, and three at least.
    let (mut from, mut to) = (count * 2 / 5, (count * 3).div_ceil(5));
    if to - from < FEWEST_TYPICAL {
        from = (count / 2).saturating_sub(FEWEST_TYPICAL / 2);
        to = from + FEWEST_TYPICAL;
    }
    let to = to.min(all.len());
    let typical = all.drain(from.min(to)..to).collect();
    Groups { slow, typical }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_lengths(lengths: impl IntoIterator<Item = u64>) -> Vec<Execution> {
        let execution = |(number, end)| Execution { span: number, end, ..Execution::default() };
        (0..).zip(lengths).map(execution).collect()
    }

    #[test]
    fn typical_ones_are_in_the_middle_and_never_slow() {
        let lengths = |all: &[Execution]| all.iter().map(Execution::length).collect::<Vec<_>>();
        for (count, share, slow, typical) in [
            (5, "10%", vec![4], vec![1, 2, 3]),
            (5, "40%", vec![3, 4], vec![1, 2]),
            (20, "10%", vec![18, 19], vec![8, 9, 10, 11]),
            (20, "0.1", vec![19], vec![8, 9, 10, 11]),
        ] {
            let groups = groups(of_lengths((0..count).rev()), share.parse().unwrap());
            assert_eq!((lengths(&groups.slow), lengths(&groups.typical)), (slow, typical), "{count} {share}");
        }
        for count in 5..200 {
            for share in ["0.1%", "10%", "33%", "40%"] {
                let groups = groups(of_lengths(0..count), share.parse().unwrap());
                assert!(!groups.slow.is_empty() && !groups.typical.is_empty(), "{count} {share}");
                assert!(groups.typical.last().unwrap().length() < groups.slow[0].length());
            }
        }
    }

    #[test]
    fn shares_are_parsed() {
        for wrong in ["0%", "41%", "-3%", "few", "", "%", "NaN"] {
            assert!(wrong.parse::<Share>().is_err(), "{wrong}");
        }
        assert_eq!("10%".parse::<Share>().unwrap(), Share::default());
    }
}
