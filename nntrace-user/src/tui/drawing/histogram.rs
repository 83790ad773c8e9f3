//! The distribution of one row's times, cut into equal steps of the logarithm.

/// A distribution in this many steps of equal ratio.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Buckets {
    /// Lower edge of the first bucket, ns.
    pub low: f64,
    /// Upper edge of the last bucket, ns.
    pub high: f64,
    /// Frames in each.
    pub counts: Vec<u64>,
}

/// A narrower range than this factor is widened: a peak is to look like a peak, and the axis needs a round number in it.
const LEAST_RATIO: f64 = 4.0;

/// Where `ns` stands between `low` (0) and `high` (1), by logarithm.
fn fraction(ns: f64, low: f64, high: f64) -> f64 {
    (ns / low).ln() / (high / low).ln()
}

impl Buckets {
    /// Cuts a distribution (ascending times, ns, each with its number of frames) into `steps` buckets that cover all of it;
    /// `None` without frames or steps.
    #[must_use]
    pub(crate) fn of(times: &[(u64, u64)], steps: usize) -> Option<Self> {
        // The logarithm knows no zero: less than a nanosecond counts as one.
        let known = |&(ns, count): &(u64, u64)| (ns.max(1) as f64, count);
        let ((low, _), (high, _)) = (times.first().map(known)?, times.last().map(known)?);
        if steps == 0 {
            return None;
        }
        let widen = (LEAST_RATIO / (high / low)).max(1.0).sqrt();
        let (low, high) = (low / widen, high * widen);
        let mut counts = vec![0_u64; steps];
        for (ns, count) in times.iter().map(known) {
            let position = fraction(ns, low, high) * steps as f64;
            #[allow(clippy::cast_sign_loss, reason = "a fraction of the range is not negative")]
            let step = (position as usize).min(steps - 1);
            counts[step] = counts[step].saturating_add(count);
        }
        Some(Self { low, high, counts })
    }

    /// The column of `ns` when every bucket is one column; `None` outside.
    #[must_use]
    pub(crate) fn column(&self, ns: f64) -> Option<usize> {
        let place = fraction(ns, self.low, self.high);
        #[allow(clippy::cast_sign_loss, reason = "only used inside of the range")]
        (0.0..1.0).contains(&place).then_some((place * self.counts.len() as f64) as usize)
    }

    /// The most frames in any bucket.
    #[must_use]
    pub(crate) fn most(&self) -> u64 {
        self.counts.iter().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_is_in_some_bucket() {
        let buckets = Buckets::of(&[(900, 3), (12_000, 40), (1_000_000, 5)], 30).unwrap();
        assert_eq!(buckets.counts.iter().sum::<u64>(), 48);
        assert_eq!((buckets.counts[0], buckets.counts[29], buckets.most()), (3, 5, 40));
        assert_eq!(buckets.counts[buckets.column(12_000.0).unwrap()], 40);
        assert_eq!(buckets.column(100.0), None);
        assert_eq!(buckets.column(2e6), None);
    }

    #[test]
    fn a_single_value_is_a_peak_in_the_middle() {
        let buckets = Buckets::of(&[(5_000, 7)], 9).unwrap();
        assert_eq!(buckets.counts, [0, 0, 0, 0, 7, 0, 0, 0, 0]);
    }

    #[test]
    fn zero_and_no_steps_and_nothing_are_survived() {
        assert_eq!(Buckets::of(&[(0, 2)], 3).unwrap().counts, [0, 2, 0]);
        assert_eq!(Buckets::of(&[(0, 2)], 0), None);
        assert_eq!(Buckets::of(&[], 3), None);
    }
}
