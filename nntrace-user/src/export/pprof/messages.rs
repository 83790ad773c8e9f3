//! Messages of pprof's format, by the numbers of its schema (`proto/profile.proto`): those fields that are written.
//!
//! Texts are indices of the table of texts, whose first one is empty.

/// Profile.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Profile {
    /// Types of the values of each sample.
    #[prost(message, repeated, tag = "1")]
    pub(super) sample_type: Vec<ValueType>,
    /// Samples.
    #[prost(message, repeated, tag = "2")]
    pub(super) sample: Vec<Sample>,
    /// Programs that frames are of.
    #[prost(message, repeated, tag = "3")]
    pub(super) mapping: Vec<Mapping>,
    /// Places that frames are at.
    #[prost(message, repeated, tag = "4")]
    pub(super) location: Vec<Location>,
    /// Names of the places.
    #[prost(message, repeated, tag = "5")]
    pub(super) function: Vec<Function>,
    /// Texts.
    #[prost(string, repeated, tag = "6")]
    pub(super) string_table: Vec<String>,
    /// Begin, ns since 1970; 0 where it is not known.
    #[prost(int64, tag = "9")]
    pub(super) time_nanos: i64,
    /// Length, ns.
    #[prost(int64, tag = "10")]
    pub(super) duration_nanos: i64,
    /// Text for people.
    #[prost(int64, repeated, tag = "13")]
    pub(super) comment: Vec<i64>,
    /// Type of the values that are shown first.
    #[prost(int64, tag = "14")]
    pub(super) default_sample_type: i64,
}

/// Type of a value.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct ValueType {
    /// Name.
    #[prost(int64, tag = "1")]
    pub(super) r#type: i64,
    /// Unit.
    #[prost(int64, tag = "2")]
    pub(super) unit: i64,
}

/// Stack with its values.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Sample {
    /// Locations, from the innermost out.
    #[prost(uint64, repeated, tag = "1")]
    pub(super) location_id: Vec<u64>,
    /// Values, one of each type.
    #[prost(int64, repeated, tag = "2")]
    pub(super) value: Vec<i64>,
    /// Labels.
    #[prost(message, repeated, tag = "3")]
    pub(super) label: Vec<Label>,
}

/// Label of a sample: a text or, where that is 0, a number.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Label {
    /// Key.
    #[prost(int64, tag = "1")]
    pub(super) key: i64,
    /// Text.
    #[prost(int64, tag = "2")]
    pub(super) str: i64,
    /// Number.
    #[prost(int64, tag = "3")]
    pub(super) num: i64,
    /// Unit of the number.
    #[prost(int64, tag = "4")]
    pub(super) num_unit: i64,
}

/// Program that frames are of.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Mapping {
    /// Number, from 1.
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    /// Whether names are known: no symbols are looked for then.
    #[prost(bool, tag = "7")]
    pub(super) has_functions: bool,
}

/// Place that a frame is at.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Location {
    /// Number, from 1.
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    /// Program.
    #[prost(uint64, tag = "2")]
    pub(super) mapping_id: u64,
    /// Name.
    #[prost(message, repeated, tag = "4")]
    pub(super) line: Vec<Line>,
}

/// Name of a place.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Line {
    /// Number of the function.
    #[prost(uint64, tag = "1")]
    pub(super) function_id: u64,
}

/// Function.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Function {
    /// Number, from 1.
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    /// Name.
    #[prost(int64, tag = "2")]
    pub(super) name: i64,
}
