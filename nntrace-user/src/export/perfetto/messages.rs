//! Messages of Perfetto's schema, with the fields that an export has. Numbers and types of fields are those of
//! `protos/perfetto/trace/`, which never change.

use prost::Message;

/// Packet: what a trace is a sequence of.
#[derive(Clone, PartialEq, Message)]
#[expect(clippy::struct_field_names, reason = "the names are those of the schema")]
pub(super) struct TracePacket {
    #[prost(message, optional, tag = "1")]
    pub(super) ftrace_events: Option<FtraceEventBundle>,
    #[prost(message, optional, tag = "6")]
    pub(super) clock_snapshot: Option<ClockSnapshot>,
    #[prost(uint64, optional, tag = "8")]
    pub(super) timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub(super) trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub(super) track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")]
    pub(super) interned_data: Option<InternedData>,
    #[prost(uint32, optional, tag = "13")]
    pub(super) sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "59")]
    pub(super) trace_packet_defaults: Option<TracePacketDefaults>,
    #[prost(message, optional, tag = "60")]
    pub(super) track_descriptor: Option<TrackDescriptor>,
}

/// Values of the fields that the packets of a sequence do not have.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TracePacketDefaults {
    #[prost(uint32, optional, tag = "58")]
    pub(super) timestamp_clock_id: Option<u32>,
}

/// Clocks, read at one instant.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub(super) clocks: Vec<Clock>,
    #[prost(uint32, optional, tag = "2")]
    pub(super) primary_trace_clock: Option<u32>,
}

/// Reading of a clock.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Clock {
    #[prost(uint32, optional, tag = "1")]
    pub(super) clock_id: Option<u32>,
    #[prost(uint64, optional, tag = "2")]
    pub(super) timestamp: Option<u64>,
}

/// Begin or end of a slice, instant, or value of a counter.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackEvent {
    #[prost(uint64, repeated, packed = "false", tag = "3")]
    pub(super) category_iids: Vec<u64>,
    #[prost(message, repeated, tag = "4")]
    pub(super) debug_annotations: Vec<DebugAnnotation>,
    #[prost(enumeration = "EventType", optional, tag = "9")]
    pub(super) r#type: Option<i32>,
    #[prost(uint64, optional, tag = "10")]
    pub(super) name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "11")]
    pub(super) track_uuid: Option<u64>,
    #[prost(string, optional, tag = "23")]
    pub(super) name: Option<String>,
    #[prost(int64, optional, tag = "30")]
    pub(super) counter_value: Option<i64>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub(super) flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub(super) terminating_flow_ids: Vec<u64>,
}

/// Type of an event on a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum EventType {
    Unspecified = 0,
    SliceBegin = 1,
    SliceEnd = 2,
    Instant = 3,
    Counter = 4,
}

/// Value beside the name of an event.
#[derive(Clone, PartialEq, Message)]
pub(super) struct DebugAnnotation {
    #[prost(uint64, optional, tag = "1")]
    pub(super) name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub(super) uint_value: Option<u64>,
    #[prost(string, optional, tag = "6")]
    pub(super) string_value: Option<String>,
    #[prost(string, optional, tag = "10")]
    pub(super) name: Option<String>,
    #[prost(uint64, optional, tag = "17")]
    pub(super) string_value_iid: Option<u64>,
}

/// Texts that later packets of the sequence have by number.
#[derive(Clone, PartialEq, Message)]
pub(super) struct InternedData {
    #[prost(message, repeated, tag = "1")]
    pub(super) event_categories: Vec<InternedName>,
    #[prost(message, repeated, tag = "2")]
    pub(super) event_names: Vec<InternedName>,
    #[prost(message, repeated, tag = "3")]
    pub(super) debug_annotation_names: Vec<InternedName>,
    #[prost(message, repeated, tag = "29")]
    pub(super) debug_annotation_string_values: Vec<InternedName>,
}

/// Text and its number. Of the schema's types for them, all are alike.
#[derive(Clone, PartialEq, Message)]
pub(super) struct InternedName {
    #[prost(uint64, optional, tag = "1")]
    pub(super) iid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub(super) name: Option<String>,
}

/// Description of a track.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub(super) uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub(super) name: Option<String>,
    #[prost(message, optional, tag = "3")]
    pub(super) process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")]
    pub(super) thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    pub(super) parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    pub(super) counter: Option<CounterDescriptor>,
    #[prost(int32, optional, tag = "11")]
    pub(super) child_ordering: Option<i32>,
    #[prost(int32, optional, tag = "12")]
    pub(super) sibling_order_rank: Option<i32>,
    #[prost(int32, optional, tag = "15")]
    pub(super) sibling_merge_behavior: Option<i32>,
    #[prost(int32, optional, tag = "19")]
    pub(super) process_ordering: Option<i32>,
    #[prost(int32, optional, tag = "20")]
    pub(super) thread_ordering: Option<i32>,
}

/// Process of a track.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(super) pid: Option<i32>,
    #[prost(string, optional, tag = "6")]
    pub(super) process_name: Option<String>,
}

/// Thread of a track.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ThreadDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(super) pid: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub(super) tid: Option<i32>,
    #[prost(string, optional, tag = "5")]
    pub(super) thread_name: Option<String>,
}

/// Counter of a track.
#[derive(Clone, PartialEq, Message)]
pub(super) struct CounterDescriptor {
    #[prost(string, optional, tag = "6")]
    pub(super) unit_name: Option<String>,
}

/// Events of the kernel on one CPU.
#[derive(Clone, PartialEq, Message)]
pub(super) struct FtraceEventBundle {
    #[prost(uint32, optional, tag = "1")]
    pub(super) cpu: Option<u32>,
    #[prost(message, repeated, tag = "2")]
    pub(super) event: Vec<FtraceEvent>,
}

/// Event of the kernel.
#[derive(Clone, PartialEq, Message)]
pub(super) struct FtraceEvent {
    #[prost(uint64, optional, tag = "1")]
    pub(super) timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "2")]
    pub(super) pid: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub(super) cpu_frequency: Option<CpuState>,
    #[prost(message, optional, tag = "13")]
    pub(super) cpu_idle: Option<CpuState>,
}

/// State of a CPU in a `cpu_idle` or `cpu_frequency` event.
#[derive(Clone, PartialEq, Message)]
pub(super) struct CpuState {
    #[prost(uint32, optional, tag = "1")]
    pub(super) state: Option<u32>,
    #[prost(uint32, optional, tag = "2")]
    pub(super) cpu_id: Option<u32>,
}
