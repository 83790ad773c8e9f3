//! The test of Mann and Whitney: whether values of one group tend to be larger than those of the other.

use std::f64::consts::SQRT_2;

/// Values of both groups up to which the distribution is counted out; above, it is close to normal.
const MOST_EXACT: usize = 40;

/// Returns the two-sided p-value: twice the probability that dealing the same values to the groups by chance sets their
/// ranks apart at least as far in this direction. Exact, with ties too, up to 40 values together; above, by the normal distribution. 1 without
/// values in a group.
pub(crate) fn mann_whitney(before: &[f64], after: &[f64]) -> f64 {
    let (ranks, own) = doubled_ranks(before, after);
    let size = before.len();
    if size == 0 || after.is_empty() {
        return 1.0;
    }
    if ranks.len() > MOST_EXACT {
        // Of the doubled ranks, as those of ties are whole numbers then, too.
        let mean = size * (ranks.len() + 1);
        return normal(&ranks, size, own.abs_diff(mean) as f64 / 2.0);
    }
    let ways = ways(&ranks, size);
    let all: f64 = ways.iter().sum();
    let (lower, upper): (f64, f64) = (ways[..=own].iter().sum(), ways[own..].iter().sum());
    // With ties and groups of different size the two sides are not alike: the smaller one counts twice.
    (2.0 * lower.min(upper) / all).min(1.0)
}

/// Returns the smallest p-value that groups of these sizes can have: both lie wholly apart.
pub(crate) fn least_p_value(before: usize, after: usize) -> f64 {
    if before == 0 || after == 0 {
        return 1.0;
    }
    // One of the ways to choose the smaller group is the lowest, one the highest.
    let all = before + after;
    let ways = (1..=before.min(after)).fold(1.0, |ways, k| ways * (all + 1 - k) as f64 / k as f64);
    (2.0 / ways).min(1.0)
}

/// Returns the doubled ranks of all values, ascending, and the sum of those of `before`.
fn doubled_ranks(before: &[f64], after: &[f64]) -> (Vec<usize>, usize) {
    let mut all: Vec<(f64, bool)> = before.iter().map(|&value| (value, true)).collect();
    all.extend(after.iter().map(|&value| (value, false)));
    all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut ranks = Vec::with_capacity(all.len());
    let mut own = 0;
    for ties in all.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
        // From the first of them to the last, on average.
        let first = ranks.len() + 1;
        let rank = first + first + ties.len() - 1;
        own += rank * ties.iter().filter(|(_, is_own)| *is_own).count();
        ranks.extend(ties.iter().map(|_| rank));
    }
    (ranks, own)
}

/// Returns for each sum how many choices of this many of the ranks have it.
fn ways(ranks: &[usize], size: usize) -> Vec<f64> {
    let sums = ranks.iter().sum::<usize>() + 1;
    let mut by_size = vec![vec![0.0; sums]; size + 1];
    by_size[0][0] = 1.0;
    for (seen, &rank) in ranks.iter().enumerate() {
        for chosen in (1..=size.min(seen + 1)).rev() {
            let (smaller, larger) = by_size.split_at_mut(chosen);
            let without = &smaller[chosen - 1][..sums - rank];
            larger[0][rank..].iter_mut().zip(without).for_each(|(ways, more)| *ways += more);
        }
    }
    by_size.swap_remove(size)
}

/// Returns the p-value by the normal distribution, corrected for ties and for steps of one half.
fn normal(ranks: &[usize], size: usize, distance: f64) -> f64 {
    let all = ranks.len() as f64;
    let ties = ranks.chunk_by(|a, b| a == b).map(|ties| (ties.len() as f64).powi(3) - ties.len() as f64);
    let both = size as f64 * (all - size as f64);
    let variance = both / 12.0 * ((all + 1.0) - ties.sum::<f64>() / (all * (all - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    libm::erfc((distance - 0.5).max(0.0) / variance.sqrt() / SQRT_2)
}
