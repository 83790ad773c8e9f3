//! Messages of Perfetto's schema, with the fields that an export writes or a replay reads. Numbers and types of fields are
//! those of `protos/perfetto/trace/`, which never change.
//!
//! Texts are bytes: those of traces need not be UTF-8, and bytes of a packet are shared, not copied.

pub(crate) mod device_events;
pub(crate) mod ftrace;
pub(crate) mod own;

use bytes::Bytes;
use prost::Message;

use ftrace::{FtraceEventBundle, FtraceStats};

/// Key of a packet in a file: field 1, a message.
pub(crate) const PACKET: u8 = 1 << 3 | 2;
/// Flag of a packet: texts and defaults of its sequence before it are forgotten.
pub(crate) const STATE_CLEARED: u32 = 1;
/// Flag of a packet: it needs texts or defaults of its sequence.
pub(crate) const NEEDS_STATE: u32 = 2;

/// Ids of clocks.
pub(crate) const REALTIME: u32 = 1;
pub(crate) const MONOTONIC: u32 = 3;
pub(crate) const MONOTONIC_RAW: u32 = 5;
pub(crate) const BOOTTIME: u32 = 6;

/// Packet: what a trace is a sequence of.
#[derive(Clone, PartialEq, Message)]
#[expect(clippy::struct_field_names, reason = "the names are those of the schema")]
pub(crate) struct TracePacket {
    #[prost(message, optional, tag = "1")]
    pub(crate) ftrace_events: Option<FtraceEventBundle>,
    #[prost(message, optional, tag = "2")]
    pub(crate) process_tree: Option<ProcessTree>,
    #[prost(message, optional, tag = "6")]
    pub(crate) clock_snapshot: Option<ClockSnapshot>,
    #[prost(uint64, optional, tag = "8")]
    pub(crate) timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub(crate) trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub(crate) track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")]
    pub(crate) interned_data: Option<InternedData>,
    #[prost(uint32, optional, tag = "13")]
    pub(crate) sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "34")]
    pub(crate) ftrace_stats: Option<FtraceStats>,
    #[prost(message, optional, tag = "35")]
    pub(crate) trace_stats: Option<TraceStats>,
    #[prost(bool, optional, tag = "41")]
    pub(crate) incremental_state_cleared: Option<bool>,
    #[prost(uint32, optional, tag = "42")]
    pub(crate) previous_packet_dropped: Option<u32>,
    #[prost(message, optional, tag = "44")]
    pub(crate) thread_descriptor: Option<ThreadDescriptor>,
    #[prost(bytes = "bytes", optional, tag = "50")]
    pub(crate) compressed_packets: Option<Bytes>,
    #[prost(uint32, optional, tag = "58")]
    pub(crate) timestamp_clock_id: Option<u32>,
    #[prost(message, optional, tag = "59")]
    pub(crate) trace_packet_defaults: Option<TracePacketDefaults>,
    #[prost(message, optional, tag = "60")]
    pub(crate) track_descriptor: Option<TrackDescriptor>,
    #[prost(message, optional, tag = "69")]
    pub(crate) service_event: Option<ServiceEvent>,
    #[prost(uint32, optional, tag = "98")]
    pub(crate) machine_id: Option<u32>,
    /// Events of kernels that are not Linux: states of tasks, changes of their names, states of CPUs, and their processes.
    #[prost(message, optional, tag = "117")]
    pub(crate) generic_task_state: Option<GenericKernelEvent>,
    #[prost(message, optional, tag = "118")]
    pub(crate) generic_task_rename: Option<GenericKernelEvent>,
    #[prost(message, optional, tag = "120")]
    pub(crate) generic_process_tree: Option<GenericKernelEvent>,
    #[prost(message, optional, tag = "122")]
    pub(crate) generic_cpu_frequency: Option<GenericKernelEvent>,
    #[prost(message, optional, tag = "126")]
    pub(crate) trace_attributes: Option<TraceAttributes>,
    #[prost(bytes = "bytes", optional, tag = "133")]
    pub(crate) zstd_compressed_packets: Option<Bytes>,
}

impl TracePacket {
    /// Whether the packet is an event of a kernel that is not Linux.
    pub(crate) fn is_of_generic_kernel(&self) -> bool {
        let packets = [
            self.generic_task_state,
            self.generic_task_rename,
            self.generic_process_tree,
            self.generic_cpu_frequency,
        ];
        packets.iter().any(Option::is_some)
    }
}

/// Event of a kernel that is not Linux; none of its fields is read.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct GenericKernelEvent {}

/// Event of the recorder itself.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct ServiceEvent {
    #[prost(bool, optional, tag = "2")]
    pub(crate) tracing_started: Option<bool>,
}

/// Values of the fields that the packets of a sequence do not have.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TracePacketDefaults {
    #[prost(message, optional, tag = "11")]
    pub(crate) track_event_defaults: Option<TrackEventDefaults>,
    #[prost(uint32, optional, tag = "58")]
    pub(crate) timestamp_clock_id: Option<u32>,
}

/// Values of the fields that the events of a sequence do not have.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TrackEventDefaults {
    #[prost(uint64, optional, tag = "11")]
    pub(crate) track_uuid: Option<u64>,
}

/// Facts about a trace, by key.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TraceAttributes {
    #[prost(message, repeated, tag = "1")]
    pub(crate) attribute: Vec<TraceAttribute>,
}

/// Fact about a trace.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TraceAttribute {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(crate) key: Option<Bytes>,
    #[prost(int64, optional, tag = "2")]
    pub(crate) long_value: Option<i64>,
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub(crate) string_value: Option<Bytes>,
}

/// Processes and threads, as the recorder found them.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ProcessTree {
    #[prost(message, repeated, tag = "1")]
    pub(crate) processes: Vec<TreeProcess>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) threads: Vec<TreeThread>,
}

/// Process of a tree.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TreeProcess {
    #[prost(int32, optional, tag = "1")]
    pub(crate) pid: Option<i32>,
    #[prost(bytes = "bytes", repeated, tag = "3")]
    pub(crate) cmdline: Vec<Bytes>,
}

/// Thread of a tree.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TreeThread {
    #[prost(int32, optional, tag = "1")]
    pub(crate) tid: Option<i32>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(crate) name: Option<Bytes>,
    #[prost(int32, optional, tag = "3")]
    pub(crate) tgid: Option<i32>,
}

/// Statistics of the recorder.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TraceStats {
    #[prost(message, repeated, tag = "1")]
    pub(crate) buffer_stats: Vec<BufferStats>,
}

/// Statistics of one of the recorder's buffers.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct BufferStats {
    #[prost(uint64, optional, tag = "3")]
    pub(crate) chunks_overwritten: Option<u64>,
    #[prost(uint64, optional, tag = "18")]
    pub(crate) chunks_discarded: Option<u64>,
    #[prost(uint64, optional, tag = "19")]
    pub(crate) trace_writer_packet_loss: Option<u64>,
}

/// Clocks, read at one instant.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub(crate) clocks: Vec<Clock>,
    #[prost(uint32, optional, tag = "2")]
    pub(crate) primary_trace_clock: Option<u32>,
}

/// Reading of a clock.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Clock {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) id: Option<u32>,
    #[prost(uint64, optional, tag = "2")]
    pub(crate) timestamp: Option<u64>,
    #[prost(bool, optional, tag = "3")]
    pub(crate) is_incremental: Option<bool>,
    #[prost(uint64, optional, tag = "4")]
    pub(crate) unit_multiplier_ns: Option<u64>,
}

/// Begin or end of a slice, instant, or value of a counter.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TrackEvent {
    #[prost(uint64, repeated, packed = "false", tag = "3")]
    pub(crate) category_iids: Vec<u64>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) debug_annotations: Vec<DebugAnnotation>,
    #[prost(message, optional, tag = "6")]
    pub(crate) legacy_event: Option<LegacyEvent>,
    #[prost(enumeration = "EventType", optional, tag = "9")]
    pub(crate) r#type: Option<i32>,
    #[prost(uint64, optional, tag = "10")]
    pub(crate) name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "11")]
    pub(crate) track_uuid: Option<u64>,
    #[prost(bytes = "bytes", repeated, tag = "22")]
    pub(crate) categories: Vec<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "23")]
    pub(crate) name: Option<Bytes>,
    #[prost(int64, optional, tag = "30")]
    pub(crate) counter_value: Option<i64>,
    #[prost(double, optional, tag = "44")]
    pub(crate) double_counter_value: Option<f64>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub(crate) flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub(crate) terminating_flow_ids: Vec<u64>,
}

/// Event in the form of Chrome's JSON.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct LegacyEvent {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) name_iid: Option<u64>,
    /// Letter of the JSON's `ph`.
    #[prost(int32, optional, tag = "2")]
    pub(crate) phase: Option<i32>,
    #[prost(int64, optional, tag = "3")]
    pub(crate) duration_us: Option<i64>,
    #[prost(uint64, optional, tag = "6")]
    pub(crate) unscoped_id: Option<u64>,
    #[prost(uint64, optional, tag = "10")]
    pub(crate) local_id: Option<u64>,
    #[prost(uint64, optional, tag = "11")]
    pub(crate) global_id: Option<u64>,
    #[prost(int32, optional, tag = "18")]
    pub(crate) pid_override: Option<i32>,
    #[prost(int32, optional, tag = "19")]
    pub(crate) tid_override: Option<i32>,
}

/// Type of an event on a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum EventType {
    Unspecified = 0,
    SliceBegin = 1,
    SliceEnd = 2,
    Instant = 3,
    Counter = 4,
}

/// Value beside the name of an event.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct DebugAnnotation {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub(crate) uint_value: Option<u64>,
    #[prost(bytes = "bytes", optional, tag = "6")]
    pub(crate) string_value: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "10")]
    pub(crate) name: Option<Bytes>,
    #[prost(uint64, optional, tag = "17")]
    pub(crate) string_value_iid: Option<u64>,
}

/// Texts that later packets of the sequence have by number.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct InternedData {
    #[prost(message, repeated, tag = "1")]
    pub(crate) event_categories: Vec<InternedName>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) event_names: Vec<InternedName>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) debug_annotation_names: Vec<InternedName>,
    #[prost(message, repeated, tag = "29")]
    pub(crate) debug_annotation_string_values: Vec<InternedName>,
}

/// Text and its number. Of the schema's types for them, all are alike.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct InternedName {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) iid: Option<u64>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(crate) name: Option<Bytes>,
}

/// Description of a track.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) uuid: Option<u64>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(crate) name: Option<Bytes>,
    #[prost(message, optional, tag = "3")]
    pub(crate) process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")]
    pub(crate) thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    pub(crate) parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    pub(crate) counter: Option<CounterDescriptor>,
    #[prost(bytes = "bytes", optional, tag = "10")]
    pub(crate) static_name: Option<Bytes>,
    #[prost(int32, optional, tag = "11")]
    pub(crate) child_ordering: Option<i32>,
    #[prost(int32, optional, tag = "12")]
    pub(crate) sibling_order_rank: Option<i32>,
    #[prost(bytes = "bytes", optional, tag = "13")]
    pub(crate) atrace_name: Option<Bytes>,
    #[prost(int32, optional, tag = "15")]
    pub(crate) sibling_merge_behavior: Option<i32>,
    #[prost(int32, optional, tag = "19")]
    pub(crate) process_ordering: Option<i32>,
    #[prost(int32, optional, tag = "20")]
    pub(crate) thread_ordering: Option<i32>,
}

/// Process of a track.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(crate) pid: Option<i32>,
    #[prost(bytes = "bytes", optional, tag = "6")]
    pub(crate) process_name: Option<Bytes>,
}

/// Thread of a track.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ThreadDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(crate) pid: Option<i32>,
    #[prost(int64, optional, tag = "2")]
    pub(crate) tid: Option<i64>,
    #[prost(bytes = "bytes", optional, tag = "5")]
    pub(crate) thread_name: Option<Bytes>,
}

/// Counter of a track.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct CounterDescriptor {
    #[prost(int64, optional, tag = "4")]
    pub(crate) unit_multiplier: Option<i64>,
    #[prost(bool, optional, tag = "5")]
    pub(crate) is_incremental: Option<bool>,
    #[prost(bytes = "bytes", optional, tag = "6")]
    pub(crate) unit_name: Option<Bytes>,
}
