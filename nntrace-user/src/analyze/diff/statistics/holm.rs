//! Correction for many tests at once.

/// Returns p-values as they count among all of these, by Holm: rejecting those up to a level rejects any true hypothesis
/// with no more probability than that level, whatever the tests have to do with each other.
pub(crate) fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest: f64 = 0.0;
    for (done, &place) in order.iter().enumerate() {
        let left = (p_values.len() - done) as f64;
        largest = largest.max(p_values[place] * left).min(1.0);
        adjusted[place] = largest;
    }
    adjusted
}
