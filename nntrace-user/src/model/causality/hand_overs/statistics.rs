//! Sums of hand-overs: by evidence, layers, phase and function.

use nntrace_common::layer::{Layer, Phase, Tag};

use super::hand_over::{Function, HandOver, Part, Source};
use crate::model::{
    capped_table::{Capped, Key, OTHERS_NAME, Row},
    histogram::{FEW_DIGITS, Times},
};

/// Key of sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PairKey {
    /// Layer that hands the work over.
    pub(crate) from: Option<Layer>,
    /// Layer that does it.
    pub(crate) to: Option<Layer>,
    /// Phase.
    pub(crate) phase: Option<Phase>,
    /// Function that does it.
    pub(crate) function: Option<Function>,
    /// Evidence.
    pub(crate) source: Source,
}

impl PairKey {
    fn of(hand_over: &HandOver) -> Self {
        Self {
            from: hand_over.from.map(Tag::layer),
            to: hand_over.to.map(Tag::layer),
            phase: hand_over.to.or(hand_over.from).map(Tag::phase),
            function: hand_over.function,
            source: hand_over.source,
        }
    }
}

const OTHERS: Option<Function> = Some(Function::Section(OTHERS_NAME));

impl Key for PairKey {
    fn coarser(&self) -> Option<Self> {
        (!self.is_others()).then_some(Self { function: OTHERS, ..*self })
    }

    fn is_others(&self) -> bool {
        self.function == OTHERS
    }
}

/// Distribution of the lengths of a part.
#[derive(Clone, Debug)]
pub(crate) struct Lengths {
    /// How many are known.
    pub(crate) count: u64,
    /// Their sum, ns.
    pub(crate) sum: u128,
    /// Shortest, ns.
    pub(crate) min: u64,
    /// Longest, ns.
    pub(crate) max: u64,
    times: Times,
}

impl Lengths {
    fn new() -> Self {
        Self { count: 0, sum: 0, min: u64::MAX, max: 0, times: Times::new(FEW_DIGITS) }
    }

    fn add(&mut self, ns: u64) {
        self.count += 1;
        self.sum += u128::from(ns);
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
        self.times.record(ns);
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.times.merge(&other.times);
    }

    /// Returns percentiles, ns, of two significant digits, but never beyond the shortest and the longest.
    #[must_use]
    pub(crate) fn percentiles<const N: usize>(&self, of: [f64; N]) -> [u64; N] {
        let times = self.times.histogram();
        of.map(|percentile| times.value_at_quantile(percentile / 100.0).clamp(self.min, self.max))
    }
}

/// Sums of the hand-overs of one key. The first one, which may meet cold caches and code that is not loaded, is also kept by
/// itself.
#[derive(Clone, Debug)]
pub(crate) struct PairSums {
    /// Hand-overs.
    pub(crate) count: u64,
    /// Hand-overs that were taken before they were given.
    pub(crate) violations: u64,
    /// Hand-overs that waited at a gate.
    pub(crate) gated: u64,
    /// The first one.
    first: HandOver,
    /// The others, by part.
    rest: [Lengths; Part::ALL.len()],
}

impl PairSums {
    fn new(first: HandOver) -> Self {
        let mut sums =
            Self { count: 0, violations: 0, gated: 0, first, rest: std::array::from_fn(|_| Lengths::new()) };
        sums.count_one(&first);
        sums
    }

    fn count_one(&mut self, hand_over: &HandOver) {
        self.count += 1;
        self.violations += u64::from(hand_over.is_violation());
        self.gated += u64::from(hand_over.received_first.is_some());
    }

    fn add_rest(&mut self, hand_over: &HandOver) {
        for part in Part::ALL {
            if let Some(ns) = hand_over.part(part) {
                self.rest[part as usize].add(ns);
            }
        }
    }

    /// Adds one that came later, whenever it was.
    fn add_one(&mut self, hand_over: &HandOver) {
        self.count_one(hand_over);
        if hand_over.first_time() < self.first.first_time() {
            let first = std::mem::replace(&mut self.first, *hand_over);
            self.add_rest(&first);
        } else {
            self.add_rest(hand_over);
        }
    }

    /// Returns the lengths of a part of all hand-overs.
    #[must_use]
    pub(crate) fn all(&self, part: Part) -> Lengths {
        let mut all = self.rest(part).clone();
        if let Some(ns) = self.first(part) {
            all.add(ns);
        }
        all
    }

    /// Returns the length of a part of the first one, ns.
    #[must_use]
    pub(crate) fn first(&self, part: Part) -> Option<u64> {
        self.first.part(part)
    }

    /// Returns the lengths of a part of all but the first one.
    #[must_use]
    pub(crate) fn rest(&self, part: Part) -> &Lengths {
        &self.rest[part as usize]
    }
}

impl Row<PairKey> for PairSums {
    fn weight(&self) -> u64 {
        self.count
    }

    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.violations += other.violations;
        self.gated += other.gated;
        let (first, second) = if other.first.first_time() < self.first.first_time() {
            (other.first, self.first)
        } else {
            (self.first, other.first)
        };
        self.first = first;
        self.add_rest(&second);
        self.rest.iter_mut().zip(&other.rest).for_each(|(own, other)| own.merge(other));
    }
}

/// Adds a hand-over to the sums of its key.
pub(super) fn add(rows: &mut Capped<PairKey, PairSums>, hand_over: &HandOver) {
    let key = PairKey::of(hand_over);
    let mut is_new = false;
    let make = || {
        is_new = true;
        PairSums::new(*hand_over)
    };
    let row = rows.row(key, make);
    if !is_new {
        row.add_one(hand_over);
    }
}

#[cfg(test)]
mod tests {
    use super::super::hand_over::Moment;
    use super::*;

    fn hand_over(time: u64, setup: u64) -> HandOver {
        let at = |time| Some(Moment { pid: 1, tid: 1, time, sequence: 0 });
        HandOver {
            dispatch: at(time),
            receive: at(time + 10),
            start: Some((time + 10 + setup).into()),
            ..HandOver::new(Source::Interface)
        }
    }

    #[test]
    fn the_first_one_is_cold_in_whatever_order_they_come() {
        let mut rows = Capped::new(16);
        // The second call is put in first.
        for call in (1..100).chain([0]) {
            let setup = if call == 0 { 5_000_000 } else { 10_000 };
            add(&mut rows, &hand_over(call * 10_000_000, setup));
        }
        let all: Vec<&PairSums> = rows.iter().map(|(_, row, _)| row).collect();
        let [row] = all[..] else { panic!("{all:?}") };
        assert_eq!((row.count, row.first(Part::Setup)), (100, Some(5_000_000)));
        let warm = row.rest(Part::Setup);
        assert_eq!((warm.count, warm.min, warm.max), (99, 10_000, 10_000));
        assert_eq!(warm.percentiles([50.0, 95.0]), [10_000; 2]);
        let setups = row.all(Part::Setup);
        assert_eq!((setups.count, setups.min, setups.max), (100, 10_000, 5_000_000));
        assert_eq!(row.all(Part::Tail).count, 0);
    }
}
