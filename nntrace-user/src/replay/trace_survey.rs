//! Facts about a whole trace that accounting its events needs: its window, its gaps, and whether it is in order of time.

use super::{
    TimeRange,
    events::Visitor,
    ftrace::Event,
    losses::{Gap, Gaps, Loss},
    window_markers::{self, Marker},
};

/// Plan for accounting events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Time range; `None`: all of it.
    pub range: Option<TimeRange>,
    /// Gaps in order of time.
    pub gaps: Vec<Gap>,
}

/// Facts found so far.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// Times of the first and the last event, ns.
    seen: Option<(u64, u64)>,
    /// Window that inputs declare, ns.
    pub declared: Option<(u64, u64)>,
    /// Whether all inputs declare it: then events outside of it do not extend it.
    pub is_declared_by_all: bool,
    /// Gaps.
    pub gaps: Gaps,
    /// Whether an event was older than the previous one.
    pub is_out_of_order: bool,
    /// Times of the first begin marker and the last end marker, ns.
    markers: (Option<u64>, Option<u64>),
    /// When the first recorder began, ns.
    recorder_start: Option<u64>,
}

impl Survey {
    /// Takes the window that an input declares, before all events; of several, all together.
    pub(crate) fn declare(&mut self, (begin, end): (u64, u64)) {
        let (first, last) = self.declared.unwrap_or((begin, end));
        self.declared = Some((first.min(begin), last.max(end)));
    }

    /// Returns a survey of the same inputs that has taken no event.
    pub(crate) fn anew(&self) -> Self {
        let &Self { declared, is_declared_by_all, .. } = self;
        Self { declared, is_declared_by_all, ..Self::default() }
    }

    /// Returns the times of the first and the last event, or of the declared window, ns; `None` without an event.
    #[must_use]
    pub(crate) fn extent(&self) -> Option<(u64, u64)> {
        let (first, last) = self.seen?;
        let (begin, end) = self.declared.unwrap_or((first, last));
        if self.is_declared_by_all {
            return Some((begin, end));
        }
        Some((first.min(begin), last.max(end)))
    }

    /// Takes an event, unless it is out of order. Returns the gap that it ends.
    #[inline]
    pub(crate) fn take(&mut self, event: &Event<'_>) -> Option<Gap> {
        let time = event.time;
        let (first, last) = self.seen.unwrap_or((time, time));
        if time < last {
            self.is_out_of_order = true;
            return None;
        }
        self.seen = Some((first, time));
        match window_markers::of(event.kind) {
            Some(Marker::Start) => _ = self.markers.0.get_or_insert(time),
            Some(Marker::RecorderStart) => _ = self.recorder_start.get_or_insert(time),
            Some(Marker::End) => self.markers.1 = Some(time),
            Some(Marker::Frequency { .. }) | None => {}
        }
        self.gaps.event(event.cpu, time)
    }

    /// Returns the plan for the events, all of which were taken: with this range, or else that of the trace's own
    /// markers.
    #[must_use]
    pub(crate) fn plan(&mut self, range: Option<TimeRange>) -> Plan {
        self.gaps.end();
        let mut gaps = self.gaps.found.clone();
        gaps.sort_unstable();
        gaps.dedup();
        Plan { range: range.or_else(|| self.marked_range()), gaps }
    }

    /// Returns the window given by the markers in the trace; `None` without any.
    fn marked_range(&self) -> Option<TimeRange> {
        let (start, end) = self.markers;
        let start = start.or(self.recorder_start);
        let range = TimeRange { begin: start.unwrap_or(0), end: end.unwrap_or(u64::MAX) };
        ((start.is_some() || end.is_some()) && range.begin <= range.end).then_some(range)
    }
}

impl Visitor for Survey {
    fn turn(&mut self, input: usize) {
        self.gaps.turn(input);
    }

    fn event(&mut self, event: &Event<'_>) -> bool {
        self.take(event);
        !self.is_out_of_order
    }

    fn lost(&mut self, loss: Loss) {
        self.gaps.lost(loss);
    }
}
