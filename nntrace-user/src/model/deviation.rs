//! Standard deviation from exact sums.

/// Returns the standard deviation of all of `count` values, whose sum and sum of squares these are.
///
/// The sum of the squared distances from the mean, squares - sum² / count, is the difference of two large numbers: it is
/// formed in integers, so that small deviations of long times are not lost.
#[must_use]
pub(crate) fn of_sums(count: u64, sum: u128, squares: u128) -> f64 {
    if count == 0 {
        return 0.0;
    }
    let count = u128::from(count);
    let (mean, rest) = (sum / count, sum % count);
    // sum² / count = mean * (sum + rest) + rest² / count, where rest < count.
    let whole = mean.saturating_mul(sum.saturating_add(rest));
    let fraction = rest as f64 * rest as f64 / count as f64;
    let distances = squares.saturating_sub(whole) as f64 - fraction;
    (distances.max(0.0) / count as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[u64]) -> f64 {
        let sum = values.iter().map(|&value| u128::from(value)).sum();
        let squares = values.iter().map(|&value| u128::from(value) * u128::from(value)).sum();
        of_sums(values.len() as u64, sum, squares)
    }

    #[test]
    fn a_nanosecond_in_an_hour_is_seen() {
        let hour = 3_600_000_000_000;
        assert!((of(&[hour, hour + 2]) - 1.0).abs() < 1e-12);
        assert!((of(&[hour; 1000])).abs() < 1e-12);
        assert!(of(&[]).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn it_is_that_of_the_definition(values in prop::collection::vec(0..1_000_000_u64, 1..50), base in 0..1_u64 << 40) {
            let mean = values.iter().sum::<u64>() as f64 / values.len() as f64;
            let squared = values.iter().map(|&value| (value as f64 - mean).powi(2)).sum::<f64>();
            let expected = (squared / values.len() as f64).sqrt();
            let moved: Vec<u64> = values.iter().map(|value| base + value).collect();
            prop_assert!((of(&moved) - expected).abs() <= 1e-9 * expected.max(1.0), "{} {expected}", of(&moved));
        }
    }
}
