//! Statistics of two groups of runs, one value a run.
//!
//! Groups are small and their distributions unknown: medians, ranks and resampling, no normal distribution. The same
//! values give the same figures.

mod bootstrap;
mod holm;
mod mann_whitney;
#[cfg(test)]
mod tests;

pub(super) use bootstrap::{Bootstrap, Interval};
pub(super) use holm::holm;
pub(super) use mann_whitney::{least_p_value, mann_whitney};

/// Returns the median; `None` without values.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// Returns Cliff's delta, from -1 (every value after is smaller than every one before) to 1 (every one is larger): the
/// probability that one after is larger, less that it is smaller. `None` without values in a group.
pub(super) fn cliffs_delta(before: &[f64], after: &[f64]) -> Option<f64> {
    let pairs = before.len() * after.len();
    if pairs == 0 {
        return None;
    }
    let signs = before.iter().flat_map(|a| after.iter().map(move |b| b.total_cmp(a) as i64));
    Some(signs.sum::<i64>() as f64 / pairs as f64)
}
