//! Events of the kernel in Perfetto's schema: `protos/perfetto/trace/ftrace/`.

use bytes::{Buf, BufMut, Bytes};
use prost::{
    DecodeError, Message, Oneof,
    encoding::{self, DecodeContext, WireType},
};

/// Events of the kernel on one CPU.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct FtraceEventBundle {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) cpu: Option<u32>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) event: Vec<FtraceEvent>,
    /// Whether events are missing before the first one.
    #[prost(bool, optional, tag = "3")]
    pub(crate) lost_events: Option<bool>,
    #[prost(message, optional, tag = "4")]
    pub(crate) compact_sched: Option<CompactSched>,
    /// Clock of the events; none is the boot time.
    #[prost(int32, optional, tag = "5")]
    pub(crate) ftrace_clock: Option<i32>,
    /// Time of that clock at `boot_timestamp`, ns.
    #[prost(int64, optional, tag = "6")]
    pub(crate) ftrace_timestamp: Option<i64>,
    #[prost(int64, optional, tag = "7")]
    pub(crate) boot_timestamp: Option<i64>,
    #[prost(message, repeated, tag = "8")]
    pub(crate) error: Vec<FtraceError>,
    /// End of the bundle of this CPU before, or, of the first one, the time from which the kernel's buffer has events, ns.
    #[prost(uint64, optional, tag = "9")]
    pub(crate) previous_bundle_end: Option<u64>,
}

/// Part of the kernel's buffer that the recorder could not read.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct FtraceError {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) timestamp: Option<u64>,
}

/// Scheduling events as columns; times are differences from the event before, the first one excepted.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct CompactSched {
    #[prost(uint64, repeated, tag = "1")]
    pub(crate) switch_timestamp: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub(crate) switch_prev_state: Vec<i64>,
    #[prost(int32, repeated, tag = "3")]
    pub(crate) switch_next_pid: Vec<i32>,
    #[prost(int32, repeated, tag = "4")]
    pub(crate) switch_next_prio: Vec<i32>,
    /// Names of threads.
    #[prost(bytes = "bytes", repeated, tag = "5")]
    pub(crate) intern_table: Vec<Bytes>,
    #[prost(uint32, repeated, tag = "6")]
    pub(crate) switch_next_comm_index: Vec<u32>,
    #[prost(uint64, repeated, tag = "7")]
    pub(crate) waking_timestamp: Vec<u64>,
    #[prost(int32, repeated, tag = "8")]
    pub(crate) waking_pid: Vec<i32>,
    #[prost(int32, repeated, tag = "9")]
    pub(crate) waking_target_cpu: Vec<i32>,
    #[prost(int32, repeated, tag = "10")]
    pub(crate) waking_prio: Vec<i32>,
    #[prost(uint32, repeated, tag = "11")]
    pub(crate) waking_comm_index: Vec<u32>,
}

/// Event of the kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FtraceEvent {
    pub(crate) timestamp: Option<u64>,
    /// Thread.
    pub(crate) pid: Option<u32>,
    pub(crate) kind: Option<FtraceKind>,
    /// Any other kind: its number and its message.
    pub(crate) other: Option<(u32, Bytes)>,
}

/// Message of an event: its number in `FtraceEvent`, and its fields with the names that the kernel gives them.
#[derive(Clone, Copy)]
pub(crate) struct EventMessage {
    /// Number of the event.
    pub(crate) number: u32,
    /// Numbers and names of its fields.
    pub(crate) fields: &'static [(u32, &'static str)],
}

/// Numbers of the fields of an event.
const TIMESTAMP: u32 = 1;
const PID: u32 = 2;

// By hand: what is derived would drop the messages of other kinds.
impl Message for FtraceEvent {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        if let Some(timestamp) = &self.timestamp {
            encoding::uint64::encode(TIMESTAMP, timestamp, buf);
        }
        if let Some(pid) = &self.pid {
            encoding::uint32::encode(PID, pid, buf);
        }
        if let Some(kind) = &self.kind {
            kind.encode(buf);
        }
        if let Some((number, message)) = &self.other {
            encoding::bytes::encode(*number, message, buf);
        }
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        match tag {
            TIMESTAMP => encoding::uint64::merge(wire_type, self.timestamp.get_or_insert_default(), buf, ctx),
            PID => encoding::uint32::merge(wire_type, self.pid.get_or_insert_default(), buf, ctx),
            _ if FtraceKind::NUMBERS.contains(&tag) => {
                FtraceKind::merge(&mut self.kind, tag, wire_type, buf, ctx)
            }
            _ if wire_type == WireType::LengthDelimited => {
                let (_, message) = self.other.insert((tag, Bytes::new()));
                encoding::bytes::merge(wire_type, message, buf, ctx)
            }
            _ => encoding::skip_field(wire_type, tag, buf, ctx),
        }
    }

    fn encoded_len(&self) -> usize {
        let timestamp =
            self.timestamp.as_ref().map_or(0, |time| encoding::uint64::encoded_len(TIMESTAMP, time));
        let pid = self.pid.as_ref().map_or(0, |pid| encoding::uint32::encoded_len(PID, pid));
        let kind = self.kind.as_ref().map_or(0, FtraceKind::encoded_len);
        let other = self.other.as_ref();
        timestamp
            + pid
            + kind
            + other.map_or(0, |(number, message)| encoding::bytes::encoded_len(*number, message))
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

impl FtraceKind {
    /// Numbers of these kinds: those of their fields below.
    const NUMBERS: [u32; 17] = [3, 4, 11, 13, 17, 20, 50, 51, 114, 235, 236, 237, 238, 239, 327, 343, 345];
}

/// Kind of an event of the kernel.
#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum FtraceKind {
    #[prost(message, tag = "3")]
    Print(Print),
    #[prost(message, tag = "4")]
    SchedSwitch(SchedSwitch),
    #[prost(message, tag = "11")]
    CpuFrequency(CpuState),
    #[prost(message, tag = "13")]
    CpuIdle(CpuState),
    #[prost(message, tag = "17")]
    SchedWakeup(SchedWakeup),
    #[prost(message, tag = "20")]
    SchedWaking(SchedWakeup),
    #[prost(message, tag = "50")]
    BinderTransaction(BinderTransaction),
    #[prost(message, tag = "51")]
    BinderTransactionReceived(BinderTransactionReceived),
    #[prost(message, tag = "114")]
    SchedWakeupNew(SchedWakeup),
    #[prost(message, tag = "235")]
    TaskNewtask(TaskNewtask),
    #[prost(message, tag = "236")]
    TaskRename(TaskRename),
    #[prost(message, tag = "237")]
    SchedProcessExec(SchedProcessExec),
    #[prost(message, tag = "238")]
    SchedProcessExit(SchedProcessExit),
    #[prost(message, tag = "239")]
    SchedProcessFork(SchedProcessFork),
    #[prost(message, tag = "327")]
    Generic(Generic),
    #[prost(message, tag = "343")]
    CpuhpExit(CpuhpExit),
    #[prost(message, tag = "345")]
    CpuhpEnter(CpuhpEnter),
}

/// Text written to `trace_marker`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Print {
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(crate) buf: Option<Bytes>,
}

/// State of a CPU in a `cpu_idle` or `cpu_frequency` event.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct CpuState {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) state: Option<u32>,
    #[prost(uint32, optional, tag = "2")]
    pub(crate) cpu_id: Option<u32>,
}

/// Switch from one thread to another.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SchedSwitch {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(crate) prev_comm: Option<Bytes>,
    #[prost(int32, optional, tag = "2")]
    pub(crate) prev_pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(crate) prev_prio: Option<i32>,
    #[prost(int64, optional, tag = "4")]
    pub(crate) prev_state: Option<i64>,
    #[prost(bytes = "bytes", optional, tag = "5")]
    pub(crate) next_comm: Option<Bytes>,
    #[prost(int32, optional, tag = "6")]
    pub(crate) next_pid: Option<i32>,
    #[prost(int32, optional, tag = "7")]
    pub(crate) next_prio: Option<i32>,
}

/// Thread that is woken, or is to be.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SchedWakeup {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(crate) comm: Option<Bytes>,
    #[prost(int32, optional, tag = "2")]
    pub(crate) pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(crate) prio: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    pub(crate) target_cpu: Option<i32>,
}

/// Transaction that the binder driver takes.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct BinderTransaction {
    #[prost(int32, optional, tag = "1")]
    pub(crate) debug_id: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    pub(crate) reply: Option<i32>,
    #[prost(uint32, optional, tag = "7")]
    pub(crate) flags: Option<u32>,
}

/// Transaction that a thread receives.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct BinderTransactionReceived {
    #[prost(int32, optional, tag = "1")]
    pub(crate) debug_id: Option<i32>,
}

/// New thread or process.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TaskNewtask {
    #[prost(int32, optional, tag = "1")]
    pub(crate) pid: Option<i32>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(crate) comm: Option<Bytes>,
    #[prost(uint64, optional, tag = "3")]
    pub(crate) clone_flags: Option<u64>,
}

/// Thread that gets a name.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TaskRename {
    #[prost(int32, optional, tag = "1")]
    pub(crate) pid: Option<i32>,
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub(crate) newcomm: Option<Bytes>,
}

/// Thread that executes another program.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SchedProcessExec {
    #[prost(int32, optional, tag = "2")]
    pub(crate) pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(crate) old_pid: Option<i32>,
}

/// Thread that exits.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct SchedProcessExit {
    #[prost(int32, optional, tag = "2")]
    pub(crate) pid: Option<i32>,
}

/// Thread that creates another one.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SchedProcessFork {
    #[prost(int32, optional, tag = "2")]
    pub(crate) parent_pid: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    pub(crate) child_pid: Option<i32>,
}

/// Step of the hotplug state machine that begins.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct CpuhpEnter {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) cpu: Option<u32>,
    #[prost(int32, optional, tag = "3")]
    pub(crate) idx: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    pub(crate) target: Option<i32>,
}

/// Step of the hotplug state machine that ends.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct CpuhpExit {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) cpu: Option<u32>,
    #[prost(int32, optional, tag = "2")]
    pub(crate) idx: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(crate) ret: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    pub(crate) state: Option<i32>,
}

/// Event without a message of its own.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Generic {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(crate) event_name: Option<Bytes>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) field: Vec<GenericField>,
}

/// Field of such an event.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct GenericField {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(crate) name: Option<Bytes>,
    #[prost(oneof = "GenericValue", tags = "3, 4, 5")]
    pub(crate) value: Option<GenericValue>,
}

/// Value of such a field.
#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum GenericValue {
    #[prost(bytes = "bytes", tag = "3")]
    Text(Bytes),
    #[prost(int64, tag = "4")]
    Signed(i64),
    #[prost(uint64, tag = "5")]
    Unsigned(u64),
}

/// Statistics of the kernel's buffers.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct FtraceStats {
    /// 1 at the begin of the trace, 2 at its end.
    #[prost(int32, optional, tag = "1")]
    pub(crate) phase: Option<i32>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) cpu_stats: Vec<FtraceCpuStats>,
}

/// Statistics of the buffer of one CPU.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct FtraceCpuStats {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) cpu: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub(crate) overrun: Option<u64>,
    #[prost(uint64, optional, tag = "4")]
    pub(crate) commit_overrun: Option<u64>,
    #[prost(uint64, optional, tag = "8")]
    pub(crate) dropped_events: Option<u64>,
}
