//! The text formats of Prometheus and OpenMetrics: families of series, each with its help and its type once.

use std::fmt::{Display, Write as _};

use crate::export::metrics::{BOUNDS, Family, Labels, Seconds, Series, Value};

/// Ending of the names of counters, which are not part of the family's name in OpenMetrics.
const TOTAL: &str = "_total";

/// Writes families as Prometheus's text.
pub(super) fn text(families: &[Family]) -> String {
    Exposition::of(families, false).text
}

/// Writes families as text of OpenMetrics.
pub(super) fn open_metrics(families: &[Family]) -> String {
    Exposition::of(families, true).text + "# EOF\n"
}

/// Text that families are added to.
struct Exposition {
    text: String,
    is_open_metrics: bool,
}

impl Exposition {
    fn of(families: &[Family], is_open_metrics: bool) -> Self {
        let mut exposition = Self { text: String::new(), is_open_metrics };
        for family in families {
            exposition.family(family);
        }
        exposition
    }

    fn family(&mut self, family: &Family) {
        match &family.series {
            Series::Counters(series) => self.numbers(family, "counter", series),
            Series::Gauges(series) => self.numbers(family, "gauge", series),
            Series::Histograms(series) => {
                self.head(family, "histogram");
                for (labels, times) in series {
                    for (bound, count) in BOUNDS.iter().zip(times.up_to) {
                        let bound = self.bound(Seconds(*bound));
                        self.sample(family.name, "_bucket", labels, Some(&bound), count);
                    }
                    self.sample(family.name, "_bucket", labels, Some("+Inf"), times.count);
                    self.sample(family.name, "_sum", labels, None, Seconds(times.sum_ns));
                    self.sample(family.name, "_count", labels, None, times.count);
                }
            }
        }
    }

    fn numbers(&mut self, family: &Family, kind: &str, series: &[(Labels, Value)]) {
        self.head(family, kind);
        for (labels, value) in series {
            self.sample(family.name, "", labels, None, value);
        }
    }

    fn head(&mut self, Family { name, help, .. }: &Family, kind: &str) {
        let name = if self.is_open_metrics { name.strip_suffix(TOTAL).unwrap_or(name) } else { name };
        // Writing to a string cannot fail, here and below.
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    /// Returns a bound as the format has it: OpenMetrics shows that it is no integer.
    fn bound(&self, bound: Seconds) -> String {
        let mut text = bound.to_string();
        if self.is_open_metrics && !text.contains('.') {
            text.push_str(".0");
        }
        text
    }

    fn sample(
        &mut self,
        name: &str,
        suffix: &str,
        labels: &[(&'static str, String)],
        bound: Option<&str>,
        value: impl Display,
    ) {
        let _ = write!(self.text, "{name}{suffix}");
        let labels = labels.iter().map(|(key, value)| (*key, value.as_str()));
        let mut before = '{';
        for (key, value) in labels.chain(bound.map(|bound| ("le", bound))) {
            let _ = write!(self.text, "{before}{key}=\"{}\"", escaped(value));
            before = ',';
        }
        let end = if before == ',' { "}" } else { "" };
        let _ = writeln!(self.text, "{end} {value}");
    }
}

/// Escapes what would end the value of a label. There are no line ends in it.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::metrics::Distribution;

    fn families() -> [Family; 3] {
        let labels = |name: &str| vec![("name", name.to_owned()), ("cpu", "0".into())];
        let counters = vec![(labels("plain"), 1.into()), (labels("\\ \"x\""), Seconds(1_500_000_000).into())];
        let times = Distribution { known: 3, count: 4, sum_ns: 2_500_000_000, ..Distribution::default() };
        let times =
            Distribution { up_to: BOUNDS.map(|bound| 3 * u64::from(bound >= 1_000_000_000)), ..times };
        [
            Family { name: "b_total", help: "Something.", series: Series::Counters(counters) },
            Family { name: "c", help: "One.", series: Series::Gauges(vec![(Labels::new(), 7.into())]) },
            Family {
                name: "d_seconds",
                help: "Times.",
                series: Series::Histograms(vec![(labels("f"), times)]),
            },
        ]
    }

    /// Lines of a text, without buckets below half a second.
    fn lines(text: &str) -> String {
        let lines = text.split_inclusive('\n').filter(|line| !line.contains("le=\"0."));
        lines.collect()
    }

    #[test]
    fn families_are_text() {
        let expected = r#"# HELP b_total Something.
# TYPE b_total counter
b_total{name="plain",cpu="0"} 1
b_total{name="\\ \"x\"",cpu="0"} 1.5
# HELP c One.
# TYPE c gauge
c 7
# HELP d_seconds Times.
# TYPE d_seconds histogram
d_seconds_bucket{name="f",cpu="0",le="1"} 3
d_seconds_bucket{name="f",cpu="0",le="2"} 3
d_seconds_bucket{name="f",cpu="0",le="5"} 3
d_seconds_bucket{name="f",cpu="0",le="10"} 3
d_seconds_bucket{name="f",cpu="0",le="+Inf"} 4
d_seconds_sum{name="f",cpu="0"} 2.5
d_seconds_count{name="f",cpu="0"} 4
"#;
        assert_eq!(lines(&text(&families())), expected);
    }

    #[test]
    fn open_metrics_names_counters_without_their_ending() {
        let expected = r#"# HELP b Something.
# TYPE b counter
b_total{name="plain",cpu="0"} 1
b_total{name="\\ \"x\"",cpu="0"} 1.5
# HELP c One.
# TYPE c gauge
c 7
# HELP d_seconds Times.
# TYPE d_seconds histogram
d_seconds_bucket{name="f",cpu="0",le="1.0"} 3
d_seconds_bucket{name="f",cpu="0",le="2.0"} 3
d_seconds_bucket{name="f",cpu="0",le="5.0"} 3
d_seconds_bucket{name="f",cpu="0",le="10.0"} 3
d_seconds_bucket{name="f",cpu="0",le="+Inf"} 4
d_seconds_sum{name="f",cpu="0"} 2.5
d_seconds_count{name="f",cpu="0"} 4
# EOF
"#;
        assert_eq!(lines(&open_metrics(&families())), expected);
    }
}
