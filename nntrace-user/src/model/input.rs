//! Everything that a model takes, in one type. A recording keeps it, and its replay gives it to another model, which then
//! has the same findings.

use nntrace_common::{
    app_events::AppEvent,
    record::{Record, SpanRecord},
};

use super::{
    calls::{Call, CallDefinition},
    causality::Origin,
    devices::{event::DeviceEvent, job::Submitter},
    function_names::Names,
    initial_state::InitialState,
    scheduling::Found,
    topology::Topology,
};

/// One thing that a model takes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Input<'a> {
    /// [`Model::record`](super::Model::record).
    Record(&'a Record),
    /// [`Model::span_anywhere`](super::Model::span_anywhere), where it took the section.
    SpanAnywhere(&'a SpanRecord),
    /// [`Model::mark_thread`](super::Model::mark_thread).
    ThreadMarked {
        /// Process.
        tgid: u32,
        /// Thread.
        tid: u32,
    },
    /// [`Model::track`](super::Model::track).
    Track {
        /// Origin of the mark.
        origin: Origin,
        /// Time, ns.
        time: u64,
        /// Text of the mark.
        payload: &'a [u8],
    },
    /// [`Model::annotated_begin`](super::Model::annotated_begin).
    AnnotatedBegin {
        /// Origin of the mark.
        origin: Origin,
        /// Time, ns.
        time: u64,
        /// Text of the mark.
        payload: &'a [u8],
        /// Offset of the name in it.
        name_at: u16,
    },
    /// [`Model::app_event`](super::Model::app_event).
    AppEvent(&'a AppEvent),
    /// [`Model::begin_scheduling`](super::Model::begin_scheduling).
    SchedulingBegins {
        /// Begin of the window, ns.
        begin: u64,
    },
    /// [`Model::watch_thread`](super::Model::watch_thread).
    ThreadWatched {
        /// Process.
        pid: u32,
        /// Thread.
        tid: u32,
        /// Time from which none of its events is missed, ns.
        since: u64,
        /// State then.
        found: Found,
    },
    /// [`Model::lose_scheduling`](super::Model::lose_scheduling).
    SchedulingLost {
        /// CPU of the loss.
        cpu: u32,
        /// Records lost so far.
        lost: u32,
        /// Time, ns.
        time: u64,
    },
    /// [`Model::begin_power`](super::Model::begin_power).
    PowerBegins {
        /// CPUs and clusters.
        topology: &'a Topology,
        /// Begin of the window, ns.
        begin: u64,
        /// State of the CPUs then.
        initial: &'a InitialState,
        /// Whether the sequence of states is kept.
        with_timelines: bool,
    },
    /// [`Model::device`](super::Model::device).
    Device {
        /// Event.
        event: &'a DeviceEvent<'a>,
        /// Time, ns.
        time: u64,
        /// CPU that it happened on.
        cpu: u32,
        /// Thread that it happened in.
        submitter: Submitter,
        /// Name of the thread.
        comm: &'a [u8],
    },
    /// [`Model::lose_devices`](super::Model::lose_devices).
    DevicesLost {
        /// Time by which events were lost, ns.
        time: u64,
    },
    /// [`Model::forget_names`](super::Model::forget_names), where it forgot some.
    NamesForgotten {
        /// Hashes of names that stay whatever the results need.
        kept: &'a [u64],
    },
    /// [`Model::advance`](super::Model::advance).
    Advance {
        /// Time up to which everything was taken, ns.
        until: u64,
    },
    /// [`Model::call_definition`](super::Model::call_definition).
    CallDefinition(&'a CallDefinition),
    /// [`Model::call`](super::Model::call).
    Call(&'a Call<'a>),
}

/// Consumer of a model's inputs.
pub(crate) trait Observe {
    /// Takes an input of a model with these names.
    fn input(&mut self, input: &Input<'_>, names: &Names);
}

/// Consumer of everything that a run's model takes, such as a recording.
pub struct Observer(Box<dyn Observe>);

impl Observer {
    /// Wraps a consumer.
    pub(crate) fn new(consumer: impl Observe + 'static) -> Self {
        Self(Box::new(consumer))
    }

    /// Returns an observer that passes every input on to this one, and then to another.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::new(Both(self, other))
    }

    /// Passes an input on.
    #[inline]
    pub(crate) fn input(&mut self, input: &Input<'_>, names: &Names) {
        self.0.input(input, names);
    }
}

/// Two consumers of the same inputs.
struct Both(Observer, Observer);

impl Observe for Both {
    fn input(&mut self, input: &Input<'_>, names: &Names) {
        self.0.input(input, names);
        self.1.input(input, names);
    }
}
