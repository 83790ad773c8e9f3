//! Intervals by resampling.

use std::collections::BTreeMap;

use serde::Serialize;

/// Resamples of both groups.
const RESAMPLES: usize = 2_000;
/// Seed of the resamples: equal values have equal intervals.
const SEED: u64 = 0x6e6e_7472_6163_6521;

/// Interval of a change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Interval {
    /// Lower end.
    pub(crate) low: f64,
    /// Upper end.
    pub(crate) high: f64,
}

/// Resampling of groups: which values are in the middle of each resample depends on the size of the group only.
pub(crate) struct Bootstrap {
    confidence: f64,
    /// Ranks of the two values in the middle of each resample, one and the same where their number is odd, by side and
    /// number of values.
    middles: BTreeMap<(bool, usize), Vec<(usize, usize)>>,
}

impl Bootstrap {
    /// Creates a resampling for intervals of this confidence, of 1.
    pub(crate) const fn new(confidence: f64) -> Self {
        Self { confidence, middles: BTreeMap::new() }
    }

    /// Returns the interval that covers the change between the groups' medians: its percentiles among resamples. `None`
    /// where a group is too small for the confidence, or an end is not finite.
    pub(crate) fn interval(
        &mut self,
        before: &[f64],
        after: &[f64],
        change: impl Fn(f64, f64) -> f64,
    ) -> Option<Interval> {
        if before.len().min(after.len()) < least_runs(self.confidence) {
            return None;
        }
        let (old, new) = (self.medians(false, before), self.medians(true, after));
        let mut changes: Vec<f64> =
            old.into_iter().zip(new).map(|(before, after)| change(before, after)).collect();
        changes.sort_unstable_by(f64::total_cmp);
        let tail = whole((1.0 - self.confidence) / 2.0 * (RESAMPLES - 1) as f64);
        let (low, high) = (changes[tail], changes[RESAMPLES - 1 - tail]);
        (low.is_finite() && high.is_finite()).then_some(Interval { low, high })
    }

    /// Returns the median of each resample.
    fn medians(&mut self, is_after: bool, values: &[f64]) -> Vec<f64> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let middles =
            self.middles.entry((is_after, sorted.len())).or_insert_with(|| middles(is_after, sorted.len()));
        middles.iter().map(|&(low, high)| f64::midpoint(sorted[low], sorted[high])).collect()
    }
}

/// Draws resamples of this many values, and returns the ranks of those in the middle of each.
fn middles(is_after: bool, length: usize) -> Vec<(usize, usize)> {
    let mut random = SplitMix(SEED ^ u64::from(is_after));
    let mut drawn: Vec<usize> = vec![0; length];
    let mut one = || {
        for place in &mut drawn {
            *place = random.below(length);
        }
        drawn.sort_unstable();
        (drawn[(length - 1) / 2], drawn[length / 2])
    };
    (0..RESAMPLES).map(|_| one()).collect()
}

/// Returns the runs of a side from which on an interval can have this confidence: of fewer, not even the smallest and the
/// largest enclose the median so often.
pub(crate) fn least_runs(confidence: f64) -> usize {
    let fits = |runs: &usize| 0.5_f64.powf((*runs - 1) as f64) <= 1.0 - confidence;
    (1..64).find(fits).unwrap_or(usize::MAX)
}

#[expect(clippy::cast_sign_loss, reason = "a place among the resamples")]
fn whole(place: f64) -> usize {
    place as usize
}

/// `SplitMix64`, a generator of numbers that look random.
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        ((u128::from(mixed) * end as u128) >> 64) as usize
    }
}
