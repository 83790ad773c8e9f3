//! Order of candidates: those that are likeliest to be runs and operators first.

use std::{cmp::Reverse, collections::BTreeMap};

use super::{
    Seen,
    candidates::{Candidates, ExportedCandidate, SlotCandidate},
};

/// Calls of a run at least: what is called once loads a model, or is the program's own loop.
const FEWEST_CALLS: u64 = 2;

/// Candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Candidate<'a> {
    Export(&'a ExportedCandidate),
    Slot(&'a SlotCandidate),
}

/// Candidate, and what a command has shown of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ranked<'a> {
    pub(super) candidate: Candidate<'a>,
    pub(super) seen: Seen,
}

/// Candidates in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranking<'a> {
    /// For runs.
    pub(super) runs: Vec<Ranked<'a>>,
    /// For operators.
    pub(super) operators: Vec<Ranked<'a>>,
}

/// Returns the label of the candidate with this place in the list of its kind.
pub(super) fn label(is_slot: bool, place: usize) -> String {
    format!("{}{place}", if is_slot { "slot " } else { "export " })
}

/// Returns the candidates in their order: by what a command has shown, or by their names and sizes.
pub(super) fn ranked<'a>(candidates: &'a Candidates, seen: Option<&BTreeMap<String, Seen>>) -> Ranking<'a> {
    let exports = candidates.exports.iter().map(Candidate::Export).enumerate();
    let slots = candidates.slots.iter().map(Candidate::Slot).enumerate();
    let of = |is_slot: bool| {
        move |(place, candidate)| {
            let of_label = |seen: &BTreeMap<String, Seen>| seen.get(&label(is_slot, place)).copied();
            Ranked { candidate, seen: seen.and_then(of_label).unwrap_or_default() }
        }
    };
    let (exports, slots): (Vec<Ranked<'a>>, Vec<Ranked<'a>>) =
        (exports.map(of(false)).collect(), slots.map(of(true)).collect());
    if seen.is_some() { by_calls(&exports, &slots) } else { by_names(exports, slots) }
}

/// The function that all of the time goes to is a run if it is called again and again; what is called at least as
/// often may be its operators.
fn by_calls<'a>(exports: &[Ranked<'a>], slots: &[Ranked<'a>]) -> Ranking<'a> {
    let all = || exports.iter().chain(slots).copied().filter(|ranked| ranked.seen.calls > 0);
    let mut runs: Vec<Ranked<'a>> = all().filter(|ranked| ranked.seen.calls >= FEWEST_CALLS).collect();
    runs.sort_by_key(|ranked| Reverse(ranked.seen.total_ns));
    let Some(run) = runs.first().copied() else { return Ranking::default() };
    let calls = run.seen.calls;
    // Of functions that the program calls itself, only those that take their time in runs are operators: they come later.
    let mut operators: Vec<Ranked<'a>> = all().filter(|ranked| ranked.seen.calls >= calls).collect();
    operators.sort_by_key(|Ranked { candidate, seen }| {
        let is_slot = matches!(candidate, Candidate::Slot(_));
        (Reverse(seen.calls > calls), Reverse(is_slot), Reverse(seen.total_ns))
    });
    operators.retain(|operator| run.candidate != operator.candidate);
    Ranking { runs, operators }
}

/// Exported functions may be runs, and virtual ones operators, in the order in which they are already.
fn by_names<'a>(exports: Vec<Ranked<'a>>, slots: Vec<Ranked<'a>>) -> Ranking<'a> {
    Ranking { runs: exports, operators: slots }
}
