//! Rounding of fractions so that they add up to a whole number.

use std::cmp::Reverse;

/// Rounds fractions with one denominator, up or down by less than one as long as the sum allows: those closest to the next whole
/// number are the first to be rounded up.
pub(super) fn rounded(numerators: &[i128], denominator: i128, sum: i128) -> Vec<i128> {
    let mut whole: Vec<i128> = numerators.iter().map(|part| part.div_euclid(denominator)).collect();
    let mut order: Vec<usize> = (0..numerators.len()).collect();
    order.sort_by_key(|place| (Reverse(numerators[*place].rem_euclid(denominator)), *place));
    let mut missing = sum - whole.iter().sum::<i128>();
    while missing != 0 && !order.is_empty() {
        let step = missing.signum();
        let up = order.iter();
        let places: Vec<usize> = if step > 0 { up.copied().collect() } else { up.rev().copied().collect() };
        for place in places {
            if missing == 0 {
                break;
            }
            whole[place] += step;
            missing -= step;
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_sum_is_exact_and_no_part_is_far_off(
            parts in prop::collection::vec(-10_000_i128..10_000, 1..20),
            denominator in 1_i128..500,
        ) {
            let sum = parts.iter().sum::<i128>().div_euclid(denominator);
            let found = rounded(&parts, denominator, sum);
            prop_assert_eq!(found.iter().sum::<i128>(), sum);
            for (part, found) in parts.iter().zip(&found) {
                prop_assert!((found * denominator - part).abs() < denominator);
            }
        }
    }
}
