//! Distributions as a page draws them: decoded, and of few bins.

use serde::Serialize;

use crate::report::snapshot::TimeHistogram;

/// Bins of equal width in each doubling of the time, as a power of two.
const BINS_BITS: u32 = 6;

/// Times from one on, and below another: both in ns, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Bin(u64, u64, u64);

/// Returns the bins of a distribution that have any times, in their order.
pub(super) fn bins(histogram: Option<&TimeHistogram>) -> Vec<Bin> {
    let mut bins: Vec<Bin> = Vec::new();
    let recorded = histogram.map(|histogram| histogram.iter_recorded()).into_iter().flatten();
    for step in recorded {
        let (low, high) = edges(step.value_iterated_to());
        match bins.last_mut() {
            Some(Bin(last, _, count)) if *last == low => *count += u64::from(step.count_at_value()),
            _ => bins.push(Bin(low, high, step.count_at_value().into())),
        }
    }
    bins
}

/// Returns the edges of the bin that a time is in.
fn edges(ns: u64) -> (u64, u64) {
    let shift = ns.checked_ilog2().unwrap_or(0).saturating_sub(BINS_BITS);
    let low = ns >> shift << shift;
    (low, low.saturating_add(1 << shift))
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;

    use super::*;

    #[test]
    fn bins_have_every_time_once_and_are_narrow() {
        let mut histogram = Histogram::<u32>::new(3).unwrap();
        for (ns, times) in [(0, 2), (7, 1), (1_000, 3), (1_001, 1), (1_000_000, 5)] {
            histogram.record_n(ns, times).unwrap();
        }
        let bins = bins(Some(&histogram.into()));
        assert_eq!(bins[..3], [Bin(0, 1, 2), Bin(7, 8, 1), Bin(1_000, 1_008, 4)]);
        assert_eq!(bins.iter().map(|bin| bin.2).sum::<u64>(), 12);
        assert!(bins.iter().all(|bin| bin.1 - bin.0 <= (bin.0 / 64).max(1)));
        assert_eq!(super::bins(None), []);
        assert_eq!(edges(u64::MAX).1, u64::MAX);
    }
}
