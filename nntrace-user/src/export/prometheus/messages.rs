//! Messages of Prometheus, as in its `io/prometheus/client/metrics.proto`: those fields that are written.

/// Family of metrics.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct MetricFamily {
    #[prost(string, optional, tag = "1")]
    pub(super) name: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(super) help: Option<String>,
    #[prost(enumeration = "MetricType", optional, tag = "3")]
    pub(super) kind: Option<i32>,
    #[prost(message, repeated, tag = "4")]
    pub(super) metrics: Vec<Metric>,
}

/// Kind of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
pub(super) enum MetricType {
    Counter = 0,
    Gauge = 1,
    Histogram = 4,
}

/// Series.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Metric {
    #[prost(message, repeated, tag = "1")]
    pub(super) labels: Vec<LabelPair>,
    #[prost(message, optional, tag = "2")]
    pub(super) gauge: Option<Number>,
    #[prost(message, optional, tag = "3")]
    pub(super) counter: Option<Number>,
    #[prost(message, optional, tag = "7")]
    pub(super) histogram: Option<Histogram>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct LabelPair {
    #[prost(string, optional, tag = "1")]
    pub(super) name: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(super) value: Option<String>,
}

/// Value of a counter or a gauge: their messages are alike.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Number {
    #[prost(double, optional, tag = "1")]
    pub(super) value: Option<f64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Histogram {
    #[prost(uint64, optional, tag = "1")]
    pub(super) sample_count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    pub(super) sample_sum: Option<f64>,
    /// Classic buckets.
    #[prost(message, repeated, tag = "3")]
    pub(super) buckets: Vec<Bucket>,
    #[prost(sint32, optional, tag = "5")]
    pub(super) schema: Option<i32>,
    #[prost(double, optional, tag = "6")]
    pub(super) zero_threshold: Option<f64>,
    #[prost(uint64, optional, tag = "7")]
    pub(super) zero_count: Option<u64>,
    #[prost(message, repeated, tag = "12")]
    pub(super) positive_spans: Vec<BucketSpan>,
    /// Count of each bucket of the spans, less that of the bucket before.
    #[prost(sint64, repeated, packed = "false", tag = "13")]
    pub(super) positive_deltas: Vec<i64>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Bucket {
    #[prost(uint64, optional, tag = "1")]
    pub(super) cumulative_count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    pub(super) upper_bound: Option<f64>,
}

/// Buckets that follow each other.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(super) struct BucketSpan {
    /// Gap to the span before; of the first span the index of its first bucket.
    #[prost(sint32, optional, tag = "1")]
    pub(super) offset: Option<i32>,
    #[prost(uint32, optional, tag = "2")]
    pub(super) length: Option<u32>,
}
