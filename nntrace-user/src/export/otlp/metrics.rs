//! Metrics as OTLP has them: cumulative sums, values, and exponential histograms.

use prost::Message as _;

use super::{
    Request, Resource,
    messages::{
        Buckets, CUMULATIVE, Data, ExponentialHistogram, Gauge, HistogramPoint, KeyValue, Metric,
        MetricsRequest, Number, Point, ResourceMetrics, ScopeMetrics, Sum,
    },
    resource::{scope, text},
};
use crate::export::metrics::{Distribution, Family, Labels, Metrics, SCHEMA, Seconds, Series, Value};

/// Where receivers take metrics.
const PATH: &str = "/v1/metrics";

/// Endings of names that are units, and what OpenTelemetry has in their place.
const UNITS: [(&str, &str); 2] = [("_seconds", "s"), ("_joules", "J")];

/// First and last instant that metrics are of, ns since 1970.
#[derive(Clone, Copy)]
struct Window {
    begin: u64,
    end: u64,
}

/// Returns the request with metrics of a run from an instant to another, ns since 1970.
#[must_use]
pub fn metrics(metrics: &Metrics, resource: &Resource, begin_ns: u64, end_ns: u64) -> Request {
    let window = Window { begin: begin_ns, end: end_ns };
    let families = metrics.families();
    let request = MetricsRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(resource.message([])),
            scope_metrics: vec![ScopeMetrics {
                scope: Some(scope()),
                metrics: families.iter().map(|family| metric(family, window)).collect(),
            }],
        }],
    };
    let points: usize = families.iter().map(|family| family.series.len()).sum();
    Request { path: PATH, body: request.encode_to_vec(), items: points as u64 }
}

fn metric(family: &Family, window: Window) -> Metric {
    let (name, unit) = name_and_unit(family);
    let data = match &family.series {
        Series::Counters(series) => {
            let points = points(series, |value, attributes| point(*value, attributes, window));
            Data::Sum(Sum { points, temporality: CUMULATIVE, is_monotonic: true })
        }
        Series::Gauges(series) => Data::Gauge(Gauge {
            points: points(series, |value, attributes| point(*value, attributes, window)),
        }),
        Series::Histograms(series) => Data::ExponentialHistogram(ExponentialHistogram {
            points: points(series, |times, attributes| histogram(times, attributes, window)),
            temporality: CUMULATIVE,
        }),
    };
    Metric { name, description: family.help.to_owned(), unit: unit.to_owned(), data: Some(data) }
}

/// Returns the name as OpenTelemetry has it, without unit and `total`, which receivers for Prometheus add again.
fn name_and_unit(family: &Family) -> (String, &'static str) {
    let name = family.name.strip_suffix("_total").unwrap_or(family.name);
    let found = UNITS.into_iter().find_map(|(ending, unit)| Some((name.strip_suffix(ending)?, unit)));
    let (name, unit) = found.unwrap_or((name, "1"));
    (name.replacen('_', ".", 1), unit)
}

fn points<V, P>(series: &[(Labels, V)], point: impl Fn(&V, Vec<KeyValue>) -> P) -> Vec<P> {
    let attributes = |labels: &Labels| labels.iter().map(|(key, value)| text(key, value)).collect();
    series.iter().map(|(labels, value)| point(value, attributes(labels))).collect()
}

fn point(value: Value, attributes: Vec<KeyValue>, window: Window) -> Point {
    let number = match value {
        Value::Count(count) => i64::try_from(count).ok().map(Number::Integer),
        Value::Time(_) | Value::Joules(_) => None,
    };
    Point {
        start_time_unix_nano: window.begin,
        time_unix_nano: window.end,
        number: Some(number.unwrap_or_else(|| Number::Double(value.as_f64()))),
        attributes,
    }
}

/// Returns the times that are known one by one: each is in a bucket. Without all of them there is no sum.
fn histogram(times: &Distribution, attributes: Vec<KeyValue>, window: Window) -> HistogramPoint {
    let buckets = &times.exponential.buckets;
    let positive = buckets.first_key_value().zip(buckets.last_key_value()).map(|((first, _), (last, _))| {
        let counts = (*first..=*last).map(|bucket| buckets.get(&bucket).copied().unwrap_or(0)).collect();
        // Here buckets are numbered by their begins.
        Buckets { offset: first - 1, counts }
    });
    HistogramPoint {
        attributes,
        start_time_unix_nano: window.begin,
        time_unix_nano: window.end,
        count: times.known,
        sum: (times.known == times.count).then(|| Seconds(times.sum_ns).as_f64()),
        scale: SCHEMA,
        zero_count: times.exponential.zeros,
        positive,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_units() {
        let named = |name| {
            let family = Family { name, help: "", series: Series::Gauges(Vec::new()) };
            name_and_unit(&family)
        };
        assert_eq!(named("nntrace_phase_duration_seconds"), ("nntrace.phase_duration".into(), "s"));
        assert_eq!(named("nntrace_energy_joules_total"), ("nntrace.energy".into(), "J"));
        assert_eq!(named("nntrace_marks_total"), ("nntrace.marks".into(), "1"));
    }

    #[test]
    fn buckets_are_dense_and_hold_what_is_known() {
        let mut times = Distribution { known: 7, count: 7, sum_ns: 2_000_000_000, ..Distribution::default() };
        times.exponential.zeros = 1;
        times.exponential.buckets = [(-2, 4), (1, 2)].into();
        let window = Window { begin: 5, end: 9 };
        let point = histogram(&times, Vec::new(), window);
        assert_eq!(point.positive, Some(Buckets { offset: -3, counts: vec![4, 0, 0, 2] }));
        assert_eq!((point.count, point.zero_count, point.sum), (7, 1, Some(2.0)));
        let lossy = histogram(&Distribution { count: 9, ..times }, Vec::new(), window);
        assert_eq!((lossy.count, lossy.sum), (7, None));
    }
}
