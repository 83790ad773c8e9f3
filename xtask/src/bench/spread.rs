//! Median and range: hosts are noisy, and means follow the noise.

/// Summary of repeated measurements of one thing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
}

impl Spread {
    /// Returns the spread of some measurements; NaN without any.
    pub fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
        let count = sorted.len();
        let median = f64::midpoint(at(count.saturating_sub(1) / 2), at(count / 2));
        Self { median, min: at(0), max: at(count.saturating_sub(1)) }
    }
}

/// Combines measurements of the same rounds: neighbours in time share most of the noise.
pub fn paired(a: &[f64], b: &[f64], combine: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    a.iter().zip(b).map(|(&a, &b)| combine(a, b)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0]), Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(Spread::of(&[4.0, 1.0, 2.0, 3.0]), Spread { median: 2.5, min: 1.0, max: 4.0 });
        assert_eq!(Spread::of(&[7.0]), Spread { median: 7.0, min: 7.0, max: 7.0 });
        assert!(Spread::of(&[]).median.is_nan());
    }

    #[test]
    fn rounds_are_compared_one_by_one() {
        assert_eq!(paired(&[4.0, 9.0], &[2.0, 3.0], |a, b| a / b), [2.0, 3.0]);
    }
}
