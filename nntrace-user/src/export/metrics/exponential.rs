//! Exponential buckets, as native histograms of Prometheus and exponential histograms of OpenTelemetry have them.
//!
//! The model's buckets are linear in each power of two of nanoseconds, these are exponential in seconds: a few of the
//! model's lie on a bound. Each of the model's counts whole, by its lowest time, as in the classic buckets.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

/// Buckets in each power of two, as a power of two itself: `schema` of Prometheus, `scale` of OpenTelemetry. Each is 4.4%
/// wide, and the model's 0.8% at most.
pub(in crate::export) const SCHEMA: i32 = 4;

/// Buckets in each power of two.
const PER_OCTAVE: f64 = (1 << SCHEMA) as f64;
const NS_PER_SECOND: f64 = 1e9;

/// Numbers of times by exponential buckets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::export) struct Exponential {
    /// Number of times of no length.
    pub(in crate::export) zeros: u64,
    /// Numbers of times by bucket, where there are any: the bucket `i` ends with `2^(i / 16)` seconds, that time among it.
    pub(in crate::export) buckets: BTreeMap<i32, u64>,
}

impl Exponential {
    /// Adds times.
    pub(super) fn add_times(&mut self, times: &Histogram<u32>) {
        for step in times.iter_recorded() {
            let count = u64::from(step.count_at_value());
            match times.lowest_equivalent(step.value_iterated_to()) {
                0 => self.zeros = self.zeros.saturating_add(count),
                ns => self.add_bucket(bucket(ns), count),
            }
        }
    }

    /// Adds others.
    pub(super) fn add(&mut self, other: &Self) {
        self.zeros = self.zeros.saturating_add(other.zeros);
        other.buckets.iter().for_each(|(&bucket, &count)| self.add_bucket(bucket, count));
    }

    fn add_bucket(&mut self, bucket: i32, count: u64) {
        let sum = self.buckets.entry(bucket).or_default();
        *sum = sum.saturating_add(count);
    }
}

/// Returns the bucket of a time, ns, that is not 0.
fn bucket(ns: u64) -> i32 {
    let seconds = ns as f64 / NS_PER_SECOND;
    let mut bucket = (seconds.log2() * PER_OCTAVE).ceil() as i32;
    // A logarithm may be off by its last digit, which matters at a bound only.
    while seconds <= end(bucket - 1) {
        bucket -= 1;
    }
    while seconds > end(bucket) {
        bucket += 1;
    }
    bucket
}

/// Returns the end of a bucket, seconds.
fn end(bucket: i32) -> f64 {
    (f64::from(bucket) / PER_OCTAVE).exp2()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::histogram::{FEW_DIGITS, empty, record};

    #[test]
    fn a_bound_is_in_the_bucket_that_it_ends() {
        for (ns, expected) in [
            (1_000_000_000, 0),
            (1_000_000_001, 1),
            (2_000_000_000, 16),
            (2_000_000_001, 17),
            (500_000_000, -16),
            (250_000_000, -32),
            (4_000_000_000_000_000_000, 511),
        ] {
            assert_eq!(bucket(ns), expected, "{ns}");
        }
    }

    proptest! {
        #[test]
        fn every_time_is_counted_once_near_its_own_bucket(
            times in prop::collection::vec((0..60_u32).prop_flat_map(|bits| 0..1_u64 << bits), 0..200),
        ) {
            let mut histogram = empty(FEW_DIGITS);
            for &ns in &times {
                record(&mut histogram, ns);
            }
            let mut found = Exponential::default();
            found.add_times(&histogram);
            prop_assert_eq!(found.zeros + found.buckets.values().sum::<u64>(), times.len() as u64);
            // A slow search for the bucket, and what a bucket of the model can shift a time by.
            let slow = |ns: u64| (-600..1_000).find(|&bucket| ns as f64 / 1e9 <= end(bucket)).unwrap();
            let mut expected: BTreeMap<i32, u64> = BTreeMap::new();
            for &ns in &times {
                let lowest = histogram.lowest_equivalent(ns);
                if lowest > 0 {
                    *expected.entry(slow(lowest)).or_default() += 1;
                    prop_assert!(slow(ns) - slow(lowest) <= 1);
                }
            }
            prop_assert_eq!(found.buckets, expected);
        }
    }
}
