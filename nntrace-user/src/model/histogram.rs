//! Histograms of times.

use hdrhistogram::Histogram;

/// Digits kept of a time where there are few histograms.
pub const MANY_DIGITS: u8 = 3;
/// Digits kept where there can be many.
pub const FEW_DIGITS: u8 = 2;

/// An empty histogram that grows with what it is given.
#[must_use]
pub fn empty(digits: u8) -> Histogram<u32> {
    let mut histogram = Histogram::new_with_bounds(1, 2, digits)
        .unwrap_or_else(|_| unreachable!("the bounds and the digits are constants that the library takes"));
    histogram.auto(true);
    histogram
}

/// Adds a time, ns.
pub fn record(histogram: &mut Histogram<u32>, ns: u64) {
    // It grows by itself; were it ever not to, the time still counts, at the upper end.
    if histogram.record(ns).is_err() {
        histogram.saturating_record(ns);
    }
}
