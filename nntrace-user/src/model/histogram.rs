//! Distributions of times.

use std::borrow::Cow;

use hdrhistogram::Histogram;

/// Digits kept of a time where there are few distributions.
pub(crate) const MANY_DIGITS: u8 = 3;
/// Digits kept where there can be many.
pub(crate) const FEW_DIGITS: u8 = 2;

/// Times that are kept one by one: a histogram takes kilobytes, and most of many functions run a few times only.
const FEW: usize = 12;

/// Times: one by one while they are few, then as a histogram.
#[derive(Clone, Debug)]
pub(crate) struct Times {
    digits: u8,
    few: Vec<u64>,
    many: Option<Box<Histogram<u32>>>,
    /// Shortest and longest, ns: a bucket of the histogram may reach beyond them.
    least: u64,
    most: u64,
}

/// Durations and their sum.
#[derive(Clone, Debug)]
pub(crate) struct Durations {
    /// Their distribution.
    pub(crate) times: Times,
    /// Their sum, ns.
    pub(crate) total_ns: u64,
}

impl Default for Durations {
    fn default() -> Self {
        Self { times: Times::new(MANY_DIGITS), total_ns: 0 }
    }
}

impl Durations {
    /// Adds a duration, ns.
    pub(crate) fn record(&mut self, ns: u64) {
        self.times.record(ns);
        self.total_ns = self.total_ns.saturating_add(ns);
    }
}

impl Times {
    /// An empty histogram that keeps this many digits.
    #[must_use]
    pub(crate) const fn new(digits: u8) -> Self {
        Self { digits, few: Vec::new(), many: None, least: u64::MAX, most: 0 }
    }

    /// Adds a time, ns.
    #[inline]
    pub(crate) fn record(&mut self, ns: u64) {
        self.least = self.least.min(ns);
        self.most = self.most.max(ns);
        match &mut self.many {
            Some(histogram) => record(histogram, ns),
            None => self.record_one(ns),
        }
    }

    fn record_one(&mut self, ns: u64) {
        if self.few.len() < FEW {
            self.few.push(ns);
        } else {
            let mut histogram = Box::new(empty(self.digits));
            std::mem::take(&mut self.few).into_iter().chain([ns]).for_each(|ns| record(&mut histogram, ns));
            self.many = Some(histogram);
        }
    }

    /// Adds other times, of which as many digits are kept.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
        match (&mut self.many, &other.many) {
            (Some(own), Some(many)) => {
                // It resizes itself to what is added; of equal digits, nothing is lost.
                let added = own.add(&**many);
                debug_assert!(added.is_ok());
            }
            (None, Some(many)) => {
                let few = std::mem::take(&mut self.few);
                self.many = Some(many.clone());
                for ns in few {
                    self.record(ns);
                }
            }
            (_, None) => other.few.iter().for_each(|&ns| self.record(ns)),
        }
    }

    /// How many there are.
    #[must_use]
    pub(crate) fn count(&self) -> u64 {
        self.many.as_ref().map_or(self.few.len() as u64, |histogram| histogram.len())
    }

    /// Returns the shortest and the longest, ns; `None` where there is none.
    #[must_use]
    pub(crate) fn extremes(&self) -> Option<(u64, u64)> {
        (self.count() > 0).then_some((self.least, self.most))
    }

    /// Returns all times as a histogram.
    #[must_use]
    pub(crate) fn histogram(&self) -> Cow<'_, Histogram<u32>> {
        if let Some(histogram) = &self.many {
            return Cow::Borrowed(histogram);
        }
        Cow::Owned(of_few(self.digits, &self.few))
    }

    /// Returns pairs of a time (ns) and the number of times around it, ascending.
    #[must_use]
    pub(crate) fn buckets(&self) -> Vec<(u64, u64)> {
        buckets(&self.histogram())
    }

    /// Returns all times as a histogram.
    #[must_use]
    pub(crate) fn into_histogram(self) -> Histogram<u32> {
        match self.many {
            Some(histogram) => *histogram,
            None => of_few(self.digits, &self.few),
        }
    }
}

fn of_few(digits: u8, times: &[u64]) -> Histogram<u32> {
    let mut histogram = empty(digits);
    for &ns in times {
        record(&mut histogram, ns);
    }
    histogram
}

/// An empty histogram that grows with what it is given.
#[must_use]
pub(crate) fn empty(digits: u8) -> Histogram<u32> {
    let mut histogram = Histogram::new_with_bounds(1, 2, digits)
        .unwrap_or_else(|_| unreachable!("the bounds and the digits are constants that the library takes"));
    histogram.auto(true);
    histogram
}

/// Returns the middle of each bucket that has times, ns, and their number.
#[must_use]
pub(crate) fn buckets(histogram: &Histogram<u32>) -> Vec<(u64, u64)> {
    let middle = |value| histogram.median_equivalent(value);
    histogram
        .iter_recorded()
        .map(|step| (middle(step.value_iterated_to()), step.count_at_value().into()))
        .collect()
}

/// Adds a time, ns.
pub(crate) fn record(histogram: &mut Histogram<u32>, ns: u64) {
    // It grows on its own; were it ever not to, the time still counts, at the upper end.
    if histogram.record(ns).is_err() {
        histogram.saturating_record(ns);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn few_and_many_are_one_distribution(
            times in prop::collection::vec(prop::collection::vec(0..10_000_000_u64, 0..30), 1..6),
        ) {
            let (mut together, mut one_by_one) = (Times::new(FEW_DIGITS), empty(FEW_DIGITS));
            for part in &times {
                let mut some = Times::new(FEW_DIGITS);
                for &ns in part {
                    some.record(ns);
                    record(&mut one_by_one, ns);
                }
                together.merge(&some);
            }
            prop_assert_eq!(&*together.histogram(), &one_by_one);
            let all = || times.iter().flatten().copied();
            prop_assert_eq!(together.extremes(), all().min().zip(all().max()));
        }
    }
}
