//! Families of series: the same for every format.

use std::fmt::{self, Display};

use super::{bounds::BOUNDS, exponential::Exponential};
use crate::report::terminal_text::clean;

/// Bytes of the value of a label at most.
const MOST_LABEL_BYTES: usize = 512;
/// End of a value that is cut.
const CUT: &str = "...";

/// Family of series.
#[derive(Clone, Debug)]
pub(in crate::export) struct Family {
    /// Name, with the ending of its kind and unit as Prometheus has it.
    pub(in crate::export) name: &'static str,
    /// Description.
    pub(in crate::export) help: &'static str,
    /// Series.
    pub(in crate::export) series: Series,
}

/// Series of a family: at least one.
#[derive(Clone, Debug)]
pub(in crate::export) enum Series {
    /// Sums that only grow.
    Counters(Vec<(Labels, Value)>),
    /// Values.
    Gauges(Vec<(Labels, Value)>),
    /// Distributions of times.
    Histograms(Vec<(Labels, Distribution)>),
}

impl Series {
    /// Returns how many there are.
    pub(in crate::export) fn len(&self) -> usize {
        match self {
            Self::Counters(series) | Self::Gauges(series) => series.len(),
            Self::Histograms(series) => series.len(),
        }
    }

    /// Makes the values of all labels such as can be written.
    pub(super) fn tidy_labels(&mut self) {
        match self {
            Self::Counters(series) | Self::Gauges(series) => tidy_labels(series),
            Self::Histograms(series) => tidy_labels(series),
        }
    }
}

fn tidy_labels<V>(series: &mut [(Labels, V)]) {
    for (_, value) in series.iter_mut().flat_map(|(labels, _)| labels) {
        *value = label(value);
    }
}

/// Returns the value of a label for a text: without characters that act, and not too long; a value of a label is its own.
pub(super) fn label(text: &str) -> String {
    let mut value = clean(text).into_owned();
    if value.len() > MOST_LABEL_BYTES {
        value.truncate(value.floor_char_boundary(MOST_LABEL_BYTES - CUT.len()));
        value.push_str(CUT);
    }
    value
}

/// Labels of a series, in their order.
pub(in crate::export) type Labels = Vec<(&'static str, String)>;

/// Value of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::export) enum Value {
    /// Number of things.
    Count(u64),
    /// Time.
    Time(Seconds),
    /// Energy, J.
    Joules(f64),
}

impl Value {
    /// Returns the value in its unit: the nearest that there is.
    pub(in crate::export) fn as_f64(self) -> f64 {
        match self {
            Self::Count(count) => count as f64,
            Self::Time(time) => time.as_f64(),
            Self::Joules(joules) => joules,
        }
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<Seconds> for Value {
    fn from(time: Seconds) -> Self {
        Self::Time(time)
    }
}

impl From<f64> for Value {
    fn from(joules: f64) -> Self {
        Self::Joules(joules)
    }
}

impl Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => count.fmt(formatter),
            Self::Time(time) => time.fmt(formatter),
            Self::Joules(joules) => joules.fmt(formatter),
        }
    }
}

/// Time, ns, that is shown in seconds, to the last digit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::export) struct Seconds(pub(in crate::export) u64);

impl Seconds {
    /// Returns the time in seconds: the nearest that there is.
    pub(in crate::export) fn as_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Display for Seconds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, rest) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        if rest == 0 {
            return write!(formatter, "{seconds}");
        }
        let rest = format!("{rest:09}");
        write!(formatter, "{seconds}.{}", rest.trim_end_matches('0'))
    }
}

/// Distribution of times.
#[derive(Clone, Debug, Default)]
pub(in crate::export) struct Distribution {
    /// Number of times up to each of the classic bounds.
    pub(in crate::export) up_to: [u64; BOUNDS.len()],
    /// Numbers of these times by exponential buckets.
    pub(in crate::export) exponential: Exponential,
    /// Number of the times that are known one by one: those in the buckets.
    pub(in crate::export) known: u64,
    /// Number of all times: those whose records were lost as well.
    pub(in crate::export) count: u64,
    /// Sum of all times, ns.
    pub(in crate::export) sum_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_can_be_written() {
        assert_eq!(label("a\n\x1b[2J\u{202e}\\"), "a\\n\\x1b[2J\\u{202e}\\");
        let long = "\u{e9}".repeat(1 << 19);
        let value = label(&long);
        assert!(
            value.len() > MOST_LABEL_BYTES - 4
                && value.len() <= MOST_LABEL_BYTES
                && value.ends_with("\u{e9}...")
        );
        assert_eq!(label(&value), value);
    }

    #[test]
    fn seconds_are_exact() {
        let seconds =
            [0, 1, 1_000, 1_500_000_000, 10_000_000_000, u64::MAX].map(|ns| Seconds(ns).to_string());
        assert_eq!(seconds, ["0", "0.000000001", "0.000001", "1.5", "10", "18446744073.709551615"]);
    }
}
