//! The split of a difference: slow executions less typical ones, by part, exactly.
//!
//! Sums of waits are subtracted. What ran is split in this order: calls, at the typical time of a call; clusters that the
//! typical executions were not on, by what the rest of the work would have taken on theirs; frequencies, by what the same cycles
//! would have taken at the typical ones; what is left is work in each call.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    executions::First,
    tally::{Part, Place, Ran, Tally},
};
use crate::analyze::run_graph::graph::UNMARKED;

/// Share of the time on CPUs of which the frequency may be unknown, percent.
const MOST_UNKNOWN: u64 = 1;
/// Share of the typical time on a kind of clusters from which on that is one of theirs, percent.
const LEAST_AT_HOME: u64 = 10;

/// Difference of means by part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Split {
    /// Numerators, ns.
    pub(super) parts: BTreeMap<Part, i128>,
    /// Denominator of them all.
    pub(super) denominator: i128,
}

/// Sums of the typical executions.
#[derive(Default)]
struct Typical {
    count: i128,
    ran: BTreeMap<Place, Ran>,
    other: BTreeMap<Part, u64>,
    calls: BTreeMap<u32, u64>,
    first: First,
}

/// Splits the difference of the means of slow and typical executions.
pub(super) fn split(slow: &[Tally], typical: &[Tally]) -> Split {
    let mut sums = Typical { count: typical.len() as i128, ..Typical::default() };
    for tally in typical {
        tally.ran.iter().for_each(|(place, ran)| sums.ran.entry(*place).or_default().merge(ran));
        tally.other.iter().for_each(|(part, ns)| *sums.other.entry(*part).or_default() += ns);
        tally.calls.iter().for_each(|(function, calls)| *sums.calls.entry(*function).or_default() += calls);
        sums.first = sums.first.max(tally.first);
    }
    let mut split = Split { denominator: sums.count * slow.len() as i128, ..Split::default() };
    for tally in slow {
        sums.compare(tally, &mut |part, numerator| *split.parts.entry(part).or_default() += numerator);
    }
    split.parts.retain(|_, numerator| *numerator != 0);
    split
}

impl Typical {
    /// Compares an execution; parts are multiples of 1 ns by the number of typical executions.
    fn compare(&self, tally: &Tally, add: &mut dyn FnMut(Part, i128)) {
        let is_first = tally.first > self.first;
        let parts: BTreeSet<Part> = tally.other.keys().chain(self.other.keys()).copied().collect();
        for part in parts {
            let ns = |all: &BTreeMap<Part, u64>| i128::from(all.get(&part).copied().unwrap_or(0));
            let named = match part {
                Part::Slept(Place { peer: None, component }) if is_first => Part::First(component),
                part => part,
            };
            add(named, ns(&tally.other) * self.count - ns(&self.other));
        }
        let places: BTreeSet<Place> = tally.ran.keys().chain(self.ran.keys()).copied().collect();
        let nothing = Ran::default();
        for place in places {
            let before = self.ran.get(&place).unwrap_or(&nothing);
            let ran = tally.ran.get(&place).unwrap_or(&nothing);
            self.place(place, (before, ran), tally, is_first, add);
        }
    }

    /// Splits what ran in one place.
    fn place(
        &self,
        place: Place,
        (before, ran): (&Ran, &Ran),
        tally: &Tally,
        is_first: bool,
        add: &mut dyn FnMut(Part, i128),
    ) {
        let Place { peer, component } = place;
        let count = self.count;
        let whole = i128::from(ran.ns) * count;
        let usual = i128::from(before.ns);
        // Time that as many calls take typically.
        let mut expected = usual;
        if peer.is_none() && component != UNMARKED {
            let calls = |all: &BTreeMap<u32, u64>| i128::from(all.get(&component).copied().unwrap_or(0));
            let (now, then) = (calls(&tally.calls), calls(&self.calls));
            if then == 0 {
                expected = whole;
            } else {
                expected = scaled(now * count, usual, then);
            }
            let named = if is_first && then == 0 { Part::First(component) } else { Part::Calls(component) };
            add(named, expected - usual);
        }
        let mut left = whole - expected;
        if is_known(before) && is_known(ran) && before.ns > 0 && left != 0 {
            left -= self.speeds(peer, (before, ran), expected, add);
        }
        let named = match peer {
            None if is_first => Part::First(component),
            _ if before.undecided > 0 || ran.undecided > 0 => Part::Undecided(place),
            _ => Part::Work(place),
        };
        add(named, left);
    }

    /// Adds what other frequencies and clusters make; returns its sum.
    fn speeds(
        &self,
        peer: Option<super::tally::Peer>,
        (before, ran): (&Ran, &Ran),
        expected: i128,
        add: &mut dyn FnMut(Part, i128),
    ) -> i128 {
        let count = self.count;
        let is_home = |kind: &u32| {
            before.on.get(kind).is_some_and(|(ns, cycles)| {
                u128::from(*ns) * 100 >= u128::from(before.ns) * u128::from(LEAST_AT_HOME) && *cycles > 0
            })
        };
        let Some(home) = before.on.iter().max_by_key(|(_, (ns, _))| *ns).map(|(kind, _)| *kind) else {
            return 0;
        };
        let all_cycles: u128 = before.on.values().map(|(_, cycles)| cycles).sum();
        let all_ns: u64 = before.on.values().map(|(ns, _)| ns).sum();
        let mut sum = 0;
        // Time of the work on clusters of the typical ones, at their typical mix and speed.
        let mut done = 0;
        for (kind, (ns, cycles)) in ran.on.iter().filter(|(kind, _)| is_home(kind)) {
            let (typical_ns, typical_cycles) = before.on[kind];
            let at_usual = scaled(wide(*cycles) * count, i128::from(typical_ns), wide(typical_cycles));
            let at_mix = scaled(wide(*cycles) * count, i128::from(all_ns), wide(all_cycles));
            let lower = i128::from(*ns) * count - at_usual;
            add(Part::Frequency(peer, *kind), lower);
            let mix = at_usual - at_mix;
            if *kind == home {
                // On one kind alone there is no other mix.
                add(Part::Frequency(peer, *kind), mix);
            } else {
                add(Part::Moved(peer, home, *kind), mix);
            }
            done += at_mix;
            sum += lower + mix;
        }
        let away: Vec<(u32, u64)> =
            ran.on.iter().filter(|(kind, _)| !is_home(kind)).map(|(kind, (ns, _))| (*kind, *ns)).collect();
        let away_ns: u64 = away.iter().map(|(_, ns)| ns).sum();
        if away_ns > 0 {
            let rest = (expected - done).max(0);
            let mut shared = 0;
            for (place, (kind, ns)) in away.iter().enumerate() {
                // The last one has what is left by rounding.
                let share = if place + 1 == away.len() {
                    rest - shared
                } else {
                    scaled(rest, i128::from(*ns), i128::from(away_ns))
                };
                shared += share;
                let longer = i128::from(*ns) * count - share;
                add(Part::Moved(peer, home, *kind), longer);
                sum += longer;
            }
        }
        sum
    }
}

/// Whether the frequency is known of nearly all of a time.
fn is_known(ran: &Ran) -> bool {
    ran.undecided == 0 && u128::from(ran.unknown) * 100 <= u128::from(ran.ns) * u128::from(MOST_UNKNOWN)
}

fn wide(cycles: u128) -> i128 {
    i128::try_from(cycles).unwrap_or(i128::MAX)
}

/// Returns `value * times / by`, rounded down; approximately where that needs more digits than there are.
fn scaled(value: i128, times: i128, by: i128) -> i128 {
    match value.checked_mul(times) {
        Some(product) => product.div_euclid(by.max(1)),
        None => (value as f64 / by as f64 * times as f64) as i128,
    }
}
