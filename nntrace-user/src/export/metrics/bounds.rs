//! Bounds of classic histograms.

/// Bounds of the histograms, ns: 1, 2 and 5 of each power of ten from a microsecond to ten seconds.
pub(in crate::export) const BOUNDS: [u64; 22] = bounds();

const fn bounds() -> [u64; 22] {
    let mut bounds = [0; 22];
    let (mut at, mut unit) = (0, 1_000);
    while at < bounds.len() {
        bounds[at] = unit * [1, 2, 5][at % 3];
        if at % 3 == 2 {
            unit *= 10;
        }
        at += 1;
    }
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_decimal() {
        assert_eq!(BOUNDS[..4], [1_000, 2_000, 5_000, 10_000]);
        assert_eq!(BOUNDS[BOUNDS.len() - 1], 10_000_000_000);
    }
}
