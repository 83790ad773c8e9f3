//! Data shared by the kernel programs and user space: records in the rings, keys and values of the maps.
//!
//! Both halves are built together and run on one host, so the layouts are those of `repr(C)` in native byte order;
//! every padding byte is spelled out.

use crate::diagnostic::HeldDiagnostics;
use crate::frequency_limits::{CoolingRecord, LimitRecord};
use crate::layer::Tag;
use crate::mark::{BUFFER_BYTES, Label};
use crate::rivals::RivalRecord;
use crate::stack::{Adds, Class, Closed, Stack, outermost_path};
use crate::stamp::Stamp;

mod tables;
mod thread;

pub use tables::{ANY_SLOT, FrequencyKey, RingCount, TARGET, TARGET_TO_HOLD, Total, TotalKey};
pub use thread::{Forwarding, KNOWN_NAMES, LostRecords, NameText, Thread, after_forwarded};

/// First word of every record: its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum RecordKind {
    /// A [`SpanRecord`].
    Span = 1,
    /// A [`PowerRecord`] of a `cpu_idle` event.
    Idle = 2,
    /// A [`PowerRecord`] of a `cpu_frequency` event.
    Frequency = 3,
    /// A [`ProcessRecord`]: a traced process forked.
    Fork = 4,
    /// A [`ProcessRecord`]: a traced process executed another program.
    Exec = 5,
    /// A [`ProcessRecord`]: a thread of a traced process ended.
    Exit = 6,
    /// A [`SpanRecord`] of a thread with interface calls only so far: it counts once the thread writes a mark of its
    /// own, or the server of a device is seen.
    ProvisionalSpan = 7,
    /// A [`BeginRecord`].
    Begin = 8,
    /// A [`TrackRecord`].
    Track = 9,
    /// A [`PowerRecord`]: a CPU went offline or online.
    Hotplug = 10,
    /// A [`SchedRecord`].
    Sched = 11,
    /// A [`ProcessRecord`]: the loader of a traced process begins or ends to map or unmap libraries.
    Loader = 12,
    /// A [`TrackRecord`] of the begin of a section.
    AnnotatedBegin = 13,
    /// A [`ForwardedRecord`]: a section begins on a thread that user space accounts.
    ForwardedBegin = 14,
    /// A [`ForwardedRecord`]: the innermost section of such a thread ends.
    ForwardedEnd = 15,
    /// A [`TrackRecord`] of any mark of such a thread whose text matters, with its number in place of the depth.
    ForwardedText = 16,
    /// A [`LaneRecord`].
    Lane = 17,
    /// A [`HandoverRecord`].
    Handover = 18,
    /// A [`ForwardedRecord`]: some were lost, one after the other. Its number and time are those of the first, its name is
    /// how many.
    ForwardedLoss = 19,
    /// A [`ProcessRecord`]: a thread that has made interface calls takes part in the accounting from now on.
    TakesPart = 20,
    /// A [`CallRecord`](crate::calls::CallRecord).
    Call = 21,
    /// A [`LimitRecord`].
    FrequencyLimit = 22,
    /// A [`CoolingRecord`].
    Cooling = 23,
    /// A [`RivalRecord`].
    Rival = 24,
}

/// Marked section that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "user",
    derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout)
)]
#[repr(C)]
pub struct SpanRecord {
    /// [`RecordKind::Span`] or [`RecordKind::ProvisionalSpan`].
    pub kind: u32,
    /// Thread id.
    pub tid: u32,
    /// Process id.
    pub tgid: u32,
    /// [`Tag::index`] of its layer and phase.
    pub tag: u8,
    /// [`Class`] of the section.
    pub class: u8,
    /// Number of sections open around it; [`ON_NO_STACK`](crate::stack::ON_NO_STACK) for an asynchronous execution.
    pub depth: u8,
    /// Totals that `own` is added to.
    pub adds: Adds,
    /// Begin, ns.
    pub begin: u64,
    /// End, ns.
    pub end: u64,
    /// Duration without subtracted sections, ns.
    pub own: u64,
    /// Duration without the marked sections in it, ns.
    pub exclusive: u64,
    /// Hash of the tags from the outermost section to this one.
    pub path: u64,
    /// Hash of the name, a key of the names map.
    pub name: u64,
    /// [`Stamp::sequence`] of its begin; 0 from the kernel programs.
    pub begin_sequence: u32,
    /// [`Stamp::sequence`] of its end; 0 from the kernel programs.
    pub end_sequence: u32,
}

impl SpanRecord {
    /// Creates the record of a closed frame, on a thread that takes part in the accounting, or does not yet.
    #[must_use]
    #[inline(always)]
    pub const fn new(tgid: u32, tid: u32, is_marked: bool, closed: &Closed) -> Self {
        // The two differ by six: no branch for the verifier to follow.
        let provisional = RecordKind::ProvisionalSpan as u32 - RecordKind::Span as u32;
        Self {
            kind: RecordKind::Span as u32 + provisional * (1 - is_marked as u32),
            tid,
            tgid,
            tag: closed.tag.index(),
            class: closed.class as u8,
            depth: closed.depth,
            adds: closed.adds,
            begin: closed.begin,
            end: closed.end,
            own: closed.own,
            exclusive: closed.exclusive,
            path: closed.path,
            name: closed.name,
            begin_sequence: 0,
            end_sequence: 0,
        }
    }

    /// Returns what it adds to the sums of its function. Inside a section of the same function that is time of its own
    /// alone: the rest counts there.
    #[must_use]
    pub const fn of_function(&self) -> Total {
        let Self { own, exclusive, .. } = *self;
        if self.adds.is_in_itself() {
            Total { count: 0, own: 0, exclusive }
        } else {
            Total { count: 1, own, exclusive }
        }
    }

    /// Returns when it began.
    #[must_use]
    pub const fn begin_stamp(&self) -> Stamp {
        Stamp::new(self.begin, self.begin_sequence)
    }

    /// Returns when it ended.
    #[must_use]
    pub const fn end_stamp(&self) -> Stamp {
        Stamp::new(self.end, self.end_sequence)
    }

    /// Returns the layer and phase; `None` if no tag has that number.
    #[must_use]
    pub const fn tag(&self) -> Option<Tag> {
        Tag::from_index(self.tag)
    }

    /// Whether it counts only if its thread takes part in the accounting later.
    #[must_use]
    pub const fn is_provisional(&self) -> bool {
        self.kind == RecordKind::ProvisionalSpan as u32
    }

    /// Whether no other marked section was around it; foreign ones may have been. An asynchronous execution never is
    /// outermost: its thread did other things meanwhile.
    #[must_use]
    pub const fn is_outermost(&self) -> bool {
        let class = match Class::from_code(self.class) {
            Some(class @ (Class::Subtract | Class::Part)) => class,
            _ => Class::Section,
        };
        self.path == outermost_path(self.tag, class)
    }

    /// Returns an instant (ns) at which its thread was there: an asynchronous execution may have begun before the thread that
    /// waited for it.
    #[must_use]
    pub const fn seen_at(&self) -> u64 {
        if self.class == Class::Asynchronous as u8 { self.end } else { self.begin }
    }

    /// Whether it is a detail of the section around it.
    #[must_use]
    pub const fn is_detail(&self) -> bool {
        self.class == Class::Detail as u8
    }
}

/// Begin of a section that matters beyond its thread: a report or application phase of the application, or an end of
/// an execution in a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "user",
    derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout)
)]
#[repr(C)]
pub struct BeginRecord {
    /// [`RecordKind::Begin`].
    pub kind: u32,
    /// Thread id.
    pub tid: u32,
    /// Process id.
    pub tgid: u32,
    /// Layer and phase, if any.
    pub label: Label,
    /// Always 0.
    pub reserved: [u8; 3],
    /// Time, ns.
    pub time: u64,
    /// Hash of the name.
    pub name: u64,
    /// [`Stamp::sequence`]; 0 from the kernel programs.
    pub sequence: u32,
    /// Always 0.
    pub padding: u32,
}

impl BeginRecord {
    /// Creates the record of a section that begins at `time` (ns), with no number.
    #[must_use]
    #[inline(always)]
    pub const fn new(tgid: u32, tid: u32, label: Label, name: u64, time: u64) -> Self {
        Self {
            kind: RecordKind::Begin as u32,
            tid,
            tgid,
            label,
            reserved: [0; 3],
            time,
            name,
            sequence: 0,
            padding: 0,
        }
    }

    /// Returns when it began.
    #[must_use]
    pub const fn stamp(&self) -> Stamp {
        Stamp::new(self.time, self.sequence)
    }
}

/// Mark as it was written: a counter, an instant, an end of an asynchronous slice, or the begin of a section with a
/// layer and a phase.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    feature = "user",
    derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout)
)]
#[repr(C)]
pub struct TrackRecord {
    /// [`RecordKind::Track`] or [`RecordKind::AnnotatedBegin`].
    pub kind: u32,
    /// Thread id.
    pub tid: u32,
    /// Process id.
    pub tgid: u32,
    /// Bytes used in `payload`.
    pub len: u32,
    /// Time, ns.
    pub time: u64,
    /// Offset of a begin's name in the payload.
    pub name_at: u32,
    /// Number of sections open around a begin; for another mark, those open on the thread up to the innermost marked one.
    pub depth: u32,
    /// The payload.
    pub payload: [u8; BUFFER_BYTES],
}

/// Begin or end of a section on a thread that user space accounts, as it has a lane ([`crate::express`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "user",
    derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout)
)]
#[repr(C)]
pub struct ForwardedRecord {
    /// [`RecordKind::ForwardedBegin`], [`RecordKind::ForwardedEnd`] or [`RecordKind::ForwardedLoss`].
    pub kind: u32,
    /// Thread id.
    pub tid: u32,
    /// Process id.
    pub tgid: u32,
    /// Number of the record among those forwarded of its thread, from 1; see [`after_forwarded`].
    pub number: u32,
    /// Time, ns.
    pub time: u64,
    /// Hash of the name of a section that begins.
    pub name: u64,
    /// Layer and phase of a section that begins, if any.
    pub label: Label,
    /// [`Prefix::code`](crate::mark::Prefix::code) of a section that begins.
    pub prefix: u8,
    /// 1 when the thread takes part in the accounting from this begin on, else 0.
    pub is_marked: u8,
    /// 1 when a section that begins may be in any other ([`crate::section_begin::ParsedBegin::nests_anywhere`]), else 0.
    pub nests_anywhere: u8,
    /// Always 0.
    pub reserved: [u8; 4],
}

/// Offer of a lane, or its doorbell ([`crate::express`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "user",
    derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout)
)]
#[repr(C)]
pub struct LaneRecord {
    /// [`RecordKind::Lane`].
    pub kind: u32,
    /// Thread id.
    pub tid: u32,
    /// Process id.
    pub tgid: u32,
    /// Always 0.
    pub reserved: u32,
    /// Time, ns.
    pub time: u64,
    /// Descriptor of the memfd in the process; [`DOORBELL`](crate::express::DOORBELL) for a lane that is known.
    pub file: i64,
    /// Key of the lane.
    pub key: u64,
}

/// Hand-over of a thread's accounting to user space.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct HandoverRecord {
    /// [`RecordKind::Handover`].
    pub kind: u32,
    /// Thread id.
    pub tid: u32,
    /// Process id.
    pub tgid: u32,
    /// Whether the thread takes part in the accounting.
    pub is_marked: u32,
    /// Time, ns.
    pub time: u64,
    /// Diagnostics from before it takes part.
    pub held: HeldDiagnostics,
    /// Open sections.
    pub stack: Stack,
}

/// `cpu_idle`, `cpu_frequency` or hotplug event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "user",
    derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout)
)]
#[repr(C)]
pub struct PowerRecord {
    /// [`RecordKind::Idle`], [`RecordKind::Frequency`] or [`RecordKind::Hotplug`].
    pub kind: u32,
    /// CPU concerned, which need not be the one that reports the event.
    pub cpu: u32,
    /// Time, ns.
    pub time: u64,
    /// The event's `state`: idle state, exit, or kHz; for hotplug, 0 for offline and 1 for online.
    pub state: u32,
    /// Number of lost records of this CPU so far.
    pub lost: u32,
}

/// Event of a traced process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "user",
    derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout)
)]
#[repr(C)]
pub struct ProcessRecord {
    /// [`RecordKind::Fork`], [`RecordKind::Exec`], [`RecordKind::Exit`], [`RecordKind::Loader`] or
    /// [`RecordKind::TakesPart`].
    pub kind: u32,
    /// Process id; for a fork, that of the forking process.
    pub tgid: u32,
    /// Thread id; for a fork, that of the new task, which is a process or a thread.
    pub tid: u32,
    /// For a fork, the thread that forks; for a loader, 1 when its process is stopped until it is continued; for an exit,
    /// [`Forwarding::next`]; else 0.
    pub detail: u32,
    /// Time, ns.
    pub time: u64,
}

/// Scheduling event of a thread of a traced process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "user",
    derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout)
)]
#[repr(C)]
pub struct SchedRecord {
    /// [`RecordKind::Sched`].
    pub kind: u32,
    /// Thread id.
    pub tid: u32,
    /// Process id; 0 where it is not in the event, which has only that of the thread that leaves the CPU, or execs. Of
    /// [`Change::Woken`](crate::sched::Change::Woken), the id of the thread that wakes this one; 0 where an interrupt does, or where
    /// that is not known.
    pub tgid: u32,
    /// CPU of the event: where the thread ran or runs, or where it was woken.
    pub cpu: u32,
    /// Time, ns.
    pub time: u64,
    /// Number of a [`Change`](crate::sched::Change).
    pub change: u32,
    /// Number of records of this kind without room in this CPU's ring so far; wraps.
    pub lost: u32,
}

/// Record of any kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// A marked section ended.
    Span(SpanRecord),
    /// A section that matters beyond its thread began.
    Begin(BeginRecord),
    /// A CPU entered or left an idle state.
    Idle(PowerRecord),
    /// The requested frequency of a CPU's policy changed.
    Frequency(PowerRecord),
    /// A CPU went offline or online.
    Hotplug(PowerRecord),
    /// The limits of a policy's frequency changed.
    FrequencyLimit(LimitRecord),
    /// The state of a cooling device changed.
    Cooling(CoolingRecord),
    /// Power events of a CPU were lost from this time on; created by the reader of the records.
    Lost {
        /// CPU of the loss.
        cpu: u32,
        /// Time, ns.
        time: u64,
    },
    /// A traced process forked.
    Fork(ProcessRecord),
    /// A traced process executed another program.
    Exec(ProcessRecord),
    /// A thread of a traced process ended.
    Exit(ProcessRecord),
    /// A thread got the CPU, left it, or was woken.
    Sched(SchedRecord),
    /// A thread that is not traced had a CPU that a traced one waited for.
    Rival(RivalRecord),
    /// The loader of a traced process begins or ends to map or unmap libraries.
    Loader(ProcessRecord),
    /// A thread takes part in the accounting from now on: what it showed so far counts.
    TakesPart(ProcessRecord),
}

impl Record {
    /// Returns the time, ns, that records are ordered by.
    #[must_use]
    pub const fn time(&self) -> u64 {
        match self {
            Self::Span(span) => span.end,
            Self::Begin(begin) => begin.time,
            Self::Lost { time, .. } => *time,
            Self::Idle(power) | Self::Frequency(power) | Self::Hotplug(power) => power.time,
            Self::FrequencyLimit(limit) => limit.time,
            Self::Cooling(cooling) => cooling.time,
            Self::Fork(process)
            | Self::Exec(process)
            | Self::Exit(process)
            | Self::Loader(process)
            | Self::TakesPart(process) => process.time,
            Self::Sched(sched) => sched.time,
            Self::Rival(rival) => rival.end,
        }
    }
}
