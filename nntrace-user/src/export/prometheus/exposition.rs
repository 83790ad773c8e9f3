//! The text format of Prometheus: families of series, each with its help and its type once.

use std::fmt::{self, Display, Write as _};

use crate::report::terminal_text::clean;

/// Type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Sum that only grows.
    Counter,
    /// Value.
    Gauge,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
        }
    }
}

/// Labels of a series, in their order.
pub(super) type Labels = Vec<(&'static str, String)>;

/// Time, ns, that is shown in seconds, to the last digit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seconds(pub(super) u64);

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

/// Series of a histogram.
pub(super) struct Distribution<const N: usize> {
    /// Number of times up to each bound.
    pub(super) up_to: [u64; N],
    /// Number of all times.
    pub(super) count: u64,
    /// Sum of all times, ns.
    pub(super) sum_ns: u64,
}

/// Text that families are added to.
#[derive(Default)]
pub(super) struct Exposition(String);

impl Exposition {
    /// Returns the text.
    pub(super) fn into_text(self) -> String {
        self.0
    }

    /// Adds a family, if it has any series.
    pub(super) fn family<V: Display>(
        &mut self,
        name: &str,
        kind: Kind,
        help: &str,
        series: impl IntoIterator<Item = (Labels, V)>,
    ) {
        let mut series = series.into_iter().peekable();
        if series.peek().is_some() {
            self.head(name, kind.name(), help);
        }
        for (labels, value) in series {
            self.sample(name, "", &labels, None, value);
        }
    }

    /// Adds a family of one series without labels.
    pub(super) fn single<V: Display>(&mut self, name: &str, kind: Kind, help: &str, value: V) {
        self.family(name, kind, help, [(Labels::new(), value)]);
    }

    /// Adds a family of histograms of times, with these bounds (ns), if it has any series.
    pub(super) fn histograms<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        bounds: &[u64; N],
        series: impl IntoIterator<Item = (Labels, Distribution<N>)>,
    ) {
        let mut series = series.into_iter().peekable();
        if series.peek().is_some() {
            self.head(name, "histogram", help);
        }
        for (labels, times) in series {
            for (bound, count) in bounds.iter().zip(times.up_to) {
                self.sample(name, "_bucket", &labels, Some(&Seconds(*bound).to_string()), count);
            }
            self.sample(name, "_bucket", &labels, Some("+Inf"), times.count);
            self.sample(name, "_sum", &labels, None, Seconds(times.sum_ns));
            self.sample(name, "_count", &labels, None, times.count);
        }
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail, here and below.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(
        &mut self,
        name: &str,
        suffix: &str,
        labels: &[(&'static str, String)],
        bound: Option<&str>,
        value: impl Display,
    ) {
        let _ = write!(self.0, "{name}{suffix}");
        let labels = labels.iter().map(|(key, value)| (*key, value.as_str()));
        let mut before = '{';
        for (key, value) in labels.chain(bound.map(|bound| ("le", bound))) {
            let _ = write!(self.0, "{before}{key}=\"{}\"", escaped(value));
            before = ',';
        }
        let end = if before == ',' { "}" } else { "" };
        let _ = writeln!(self.0, "{end} {value}");
    }
}

/// Escapes the value of a label: clean, and without what would end it.
fn escaped(text: &str) -> String {
    clean(text).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_exact() {
        let seconds =
            [0, 1, 1_000, 1_500_000_000, 10_000_000_000, u64::MAX].map(|ns| Seconds(ns).to_string());
        assert_eq!(seconds, ["0", "0.000000001", "0.000001", "1.5", "10", "18446744073.709551615"]);
    }

    #[test]
    fn a_family_has_its_head_once_and_none_without_series() {
        let mut text = Exposition::default();
        text.family("a_total", Kind::Counter, "Nothing.", Vec::<(Labels, u64)>::new());
        let labels = |name: &str| vec![("name", name.to_owned()), ("cpu", "0".into())];
        let series = [(labels("plain"), 1), (labels("\\ \"x\"\n\x1b[2J"), 2)];
        text.family("b_total", Kind::Counter, "Something.", series);
        text.single("c", Kind::Gauge, "One.", 7);
        let times = Distribution { up_to: [1, 3], count: 4, sum_ns: 2_500_000_000 };
        text.histograms("d_seconds", "Times.", &[1_000, 1_000_000], [(labels("f"), times)]);
        let expected = r#"# HELP b_total Something.
# TYPE b_total counter
b_total{name="plain",cpu="0"} 1
b_total{name="\\ \"x\"\\n\\x1b[2J",cpu="0"} 2
# HELP c One.
# TYPE c gauge
c 7
# HELP d_seconds Times.
# TYPE d_seconds histogram
d_seconds_bucket{name="f",cpu="0",le="0.000001"} 1
d_seconds_bucket{name="f",cpu="0",le="0.001"} 3
d_seconds_bucket{name="f",cpu="0",le="+Inf"} 4
d_seconds_sum{name="f",cpu="0"} 2.5
d_seconds_count{name="f",cpu="0"} 4
"#;
        assert_eq!(text.into_text(), expected);
    }
}
