//! Metrics as messages of Prometheus, with native histograms beside the classic ones.

use prost::Message as _;

use super::messages::{Bucket, BucketSpan, Histogram, LabelPair, Metric, MetricFamily, MetricType, Number};
use crate::export::metrics::{BOUNDS, Distribution, Family, Labels, SCHEMA, Seconds, Series};

/// Longest time that counts as none, s, as in Prometheus's own libraries: here only times of no length do.
const ZERO_THRESHOLD: f64 = 2.938_735_877_055_719e-39; // 2^-128

/// The bucket of what is longer than any number: `2^1024` is the least that is none, each power of two has `2^SCHEMA`.
const OVERFLOW: i32 = (1024 << SCHEMA) + 1;

/// Writes each family after its length.
pub(super) fn delimited(families: &[Family]) -> Vec<u8> {
    families.iter().flat_map(|family| message(family).encode_length_delimited_to_vec()).collect()
}

fn message(family: &Family) -> MetricFamily {
    let number = |value: f64| Some(Number { value: Some(value) });
    let (kind, metrics) = match &family.series {
        Series::Counters(series) => (
            MetricType::Counter,
            metrics(series, |value| Metric { counter: number(value.as_f64()), ..Metric::default() }),
        ),
        Series::Gauges(series) => (
            MetricType::Gauge,
            metrics(series, |value| Metric { gauge: number(value.as_f64()), ..Metric::default() }),
        ),
        Series::Histograms(series) => (
            MetricType::Histogram,
            metrics(series, |times| Metric { histogram: Some(histogram(times)), ..Metric::default() }),
        ),
    };
    MetricFamily {
        name: Some(family.name.to_owned()),
        help: Some(family.help.to_owned()),
        kind: Some(kind.into()),
        metrics,
    }
}

fn metrics<V>(series: &[(Labels, V)], value: impl Fn(&V) -> Metric) -> Vec<Metric> {
    let label = |(name, value): &(&str, String)| LabelPair {
        name: Some((*name).to_owned()),
        value: Some(value.clone()),
    };
    let metric =
        |(labels, of): &(Labels, V)| Metric { labels: labels.iter().map(label).collect(), ..value(of) };
    series.iter().map(metric).collect()
}

/// Times that are in the count only have a bucket as well: that of what is longer than any number, as the classic
/// histogram has them.
fn histogram(times: &Distribution) -> Histogram {
    let unknown = times.count - times.known;
    let (positive_spans, positive_deltas) = spans(
        times
            .exponential
            .buckets
            .iter()
            .map(|(&bucket, &count)| (bucket, count))
            .chain((unknown > 0).then_some((OVERFLOW, unknown))),
    );
    let bucket = |(&bound, count): (&u64, u64)| Bucket {
        cumulative_count: Some(count),
        upper_bound: Some(Seconds(bound).as_f64()),
    };
    Histogram {
        sample_count: Some(times.count),
        sample_sum: Some(Seconds(times.sum_ns).as_f64()),
        buckets: BOUNDS.iter().zip(times.up_to).map(bucket).collect(),
        schema: Some(SCHEMA),
        zero_threshold: Some(ZERO_THRESHOLD),
        zero_count: Some(times.exponential.zeros),
        positive_spans,
        positive_deltas,
    }
}

/// Returns buckets, in their order, as spans without gaps and as differences of counts.
fn spans(buckets: impl Iterator<Item = (i32, u64)>) -> (Vec<BucketSpan>, Vec<i64>) {
    let (mut spans, mut deltas) = (Vec::<BucketSpan>::new(), Vec::new());
    let (mut next, mut before) = (0_i32, 0_u64);
    for (bucket, count) in buckets {
        match spans.last_mut() {
            Some(last) if bucket == next => last.length = last.length.map(|length| length + 1),
            _ => spans.push(BucketSpan { offset: Some(bucket - next), length: Some(1) }),
        }
        deltas.push(count.cast_signed().wrapping_sub(before.cast_signed()));
        (next, before) = (bucket + 1, count);
    }
    (spans, deltas)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Reads spans as Prometheus does.
    fn buckets(spans: &[BucketSpan], deltas: &[i64]) -> BTreeMap<i32, u64> {
        let (mut next, mut count, mut found) = (0, 0_i64, BTreeMap::new());
        let mut deltas = deltas.iter();
        for span in spans {
            next += span.offset.unwrap();
            for _ in 0..span.length.unwrap() {
                count += deltas.next().unwrap();
                found.insert(next, count.cast_unsigned());
                next += 1;
            }
        }
        assert!(deltas.next().is_none());
        found
    }

    proptest! {
        #[test]
        fn spans_hold_the_buckets(expected in prop::collection::btree_map(-600..600_i32, 1..1_u64 << 40, 0..80)) {
            let (spans, deltas) = spans(expected.iter().map(|(&bucket, &count)| (bucket, count)));
            prop_assert!(spans[..].iter().skip(1).all(|span| span.offset > Some(0)));
            prop_assert_eq!(buckets(&spans, &deltas), expected);
        }
    }

    #[test]
    fn no_count_is_lost() {
        let mut times = Distribution { known: 5, count: 8, sum_ns: 1_500_000_000, ..Distribution::default() };
        times.exponential.zeros = 2;
        times.exponential.buckets = [(-3, 1), (4, 2)].into();
        let message = histogram(&times);
        let found = buckets(&message.positive_spans, &message.positive_deltas);
        assert_eq!(found, [(-3, 1), (4, 2), (16_385, 3)].into());
        assert_eq!((message.sample_count, message.zero_count), (Some(8), Some(2)));
        assert_eq!(message.sample_sum, Some(1.5));
    }
}
