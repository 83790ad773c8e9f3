//! Where work that a thread took begins: the first section after the receipt.
//!
//! Sections come when they end, inner ones first. So the first section is known when a section ends that is not in the one
//! that would be it, or that was open at the receipt.

use std::collections::VecDeque;

use nntrace_common::{
    layer::{Layer, Tag},
    record::SpanRecord,
    stamp::Stamp,
};

use super::hand_over::Moment;

/// Sections of drivers and CPU executors that are kept of a thread until the call around them ends.
const MOST_RECENT: usize = 64;
/// Gates that are kept of a thread.
const MOST_GATES: usize = 64;
/// Receipts, and dispatches, that wait on one thread; of more, the oldest are over.
const MOST_WAITING: usize = 1 << 10;

/// Section that may do work that was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Work {
    /// Begin.
    pub(super) begin: Stamp,
    /// End.
    pub(super) end: Stamp,
    /// Layer and phase.
    pub(super) tag: Tag,
    /// Hash of its name.
    pub(super) name: u64,
}

impl Work {
    fn of(span: &SpanRecord, tag: Tag) -> Self {
        Self { begin: span.begin_stamp(), end: span.end_stamp(), tag, name: span.name }
    }
}

/// Receipt of which it is not known yet where the work begins.
#[derive(Clone, Copy, Debug)]
struct Receipt {
    /// Number of the hand-over.
    number: u64,
    /// When it was taken.
    at: Stamp,
    /// Sections that were open; `None` where that is not known.
    depth: Option<u8>,
    /// When the last gate opened since.
    gate: Option<Stamp>,
    /// The first section so far.
    first: Option<Work>,
    /// Whether no other can be around that one which began after the receipt.
    is_outermost: bool,
}

/// Something that becomes known of a hand-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Section that this dispatch was in.
    From(Moment, Tag),
    /// Section that does the work of the hand-over with this number, if the scope of the receipt had one, and when the last gate
    /// before it opened.
    Work(u64, Option<Work>, Option<Stamp>),
}

/// Consumer of what becomes known.
pub(super) type Learn<'a> = &'a mut dyn FnMut(Known);

/// State of a thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Thread {
    /// Sections of drivers and CPU executors that are in no other one, by time.
    recent: VecDeque<Work>,
    /// Begin of the last one that is not kept any more.
    dropped: Option<Stamp>,
    /// When gates opened.
    gates: VecDeque<Stamp>,
    receipts: VecDeque<Receipt>,
    /// When work was last taken.
    received: Option<Stamp>,
    /// Dispatches of which it is not known yet in which section they were.
    dispatches: VecDeque<Moment>,
}

impl Thread {
    /// Whether nothing waits here.
    pub(super) fn is_idle(&self) -> bool {
        self.receipts.is_empty() && self.dispatches.is_empty()
    }

    /// Work is handed over by this thread.
    pub(super) fn dispatches(&mut self, at: Moment) {
        if self.dispatches.len() >= MOST_WAITING {
            self.dispatches.pop_front();
        }
        self.dispatches.push_back(at);
    }

    /// Returns when work was last taken.
    pub(super) fn received(&self) -> Option<Stamp> {
        self.received
    }

    /// Work is taken by this thread, with this many sections open.
    pub(super) fn receives(&mut self, number: u64, at: Stamp, depth: Option<u8>, learn: Learn<'_>) {
        self.received = Some(at);
        // The thread goes on to other work: what it took before has begun, unless a section around is still open.
        let is_over =
            |receipt: &Receipt| receipt.is_outermost && receipt.first.is_some_and(|first| first.end <= at);
        self.end_receipts(is_over, learn);
        if self.receipts.len() >= MOST_WAITING
            && let Some(oldest) = self.receipts.pop_front()
        {
            learn(Known::Work(oldest.number, oldest.first, oldest.gate));
        }
        let receipt = Receipt { number, at, depth, gate: None, first: None, is_outermost: false };
        self.receipts.push_back(receipt);
    }

    /// A gate opens for this thread.
    pub(super) fn gate(&mut self, at: Stamp) {
        for receipt in self.receipts.iter_mut().filter(|receipt| receipt.first.is_none()) {
            receipt.gate = Some(at);
        }
        if self.gates.len() >= MOST_GATES {
            self.gates.pop_front();
        }
        self.gates.push_back(at);
    }

    /// A section ends on this thread.
    pub(super) fn section(&mut self, span: &SpanRecord, tag: Tag, learn: Learn<'_>) {
        let work = Work::of(span, tag);
        // The innermost section that was open at a dispatch ends before those around it.
        self.dispatches.retain(|at| {
            let is_around = (work.begin..=work.end).contains(&at.stamp());
            if is_around {
                learn(Known::From(*at, tag));
            }
            !is_around
        });
        for receipt in &mut self.receipts {
            let is_earlier = receipt.first.is_none_or(|first| work.begin <= first.begin);
            if work.begin >= receipt.at && is_earlier {
                receipt.first = Some(work);
                receipt.is_outermost = receipt.depth.is_none_or(|open| span.depth <= open);
            }
        }
        // No other that began later is around an outermost one. Around any other is a section that has not ended: that began
        // later too, if the receipt was in unmarked sections, whose ends do not show. One around the receipt ends its scope.
        let depth = span.depth;
        let is_over = |receipt: &Receipt| {
            // One that ended in the instant of the receipt may come after it, and yet was around it only if it was open.
            let is_around = work.begin < receipt.at
                && work.end >= receipt.at
                && receipt.depth.is_none_or(|open| depth < open);
            is_around || receipt.first.is_some() && span.is_outermost()
        };
        self.end_receipts(is_over, learn);
    }

    fn end_receipts(&mut self, is_over: impl Fn(&Receipt) -> bool, learn: Learn<'_>) {
        self.receipts.retain(|receipt| {
            let is_over = is_over(receipt);
            if is_over {
                learn(Known::Work(receipt.number, receipt.first, receipt.gate));
            }
            !is_over
        });
    }

    /// A section of a driver or CPU executor, which is no interface call, ends on this thread: it may be the work of one.
    pub(super) fn keep_work(&mut self, span: &SpanRecord, tag: Tag) {
        if !matches!(tag.layer(), Layer::Driver | Layer::CpuFallback) {
            return;
        }
        while self.recent.pop_back_if(|inner| inner.begin >= span.begin_stamp()).is_some() {}
        if self.recent.len() >= MOST_RECENT {
            self.dropped = self.recent.pop_front().map(|oldest| oldest.begin);
        }
        self.recent.push_back(Work::of(span, tag));
    }

    /// An interface call ends that this thread served: returns the first section of a driver or CPU executor in it, and when a
    /// gate last opened before that.
    pub(super) fn served(&mut self, span: &SpanRecord) -> (Option<Work>, Option<Stamp>) {
        let (begin, end) = (span.begin_stamp(), span.end_stamp());
        // The first one may be among those that are not kept any more.
        let is_known = self.dropped.is_none_or(|dropped| dropped < begin);
        let first = self.recent.iter().find(|work| work.begin >= begin).filter(|_| is_known).copied();
        let until = first.map_or(end, |first| first.begin);
        let gate = self.gates.iter().rev().find(|gate| (begin..=until).contains(gate)).copied();
        (first, gate)
    }

    /// Everything has come: what waits is as known as it gets.
    pub(super) fn finish(&mut self, learn: Learn<'_>) {
        self.dispatches.clear();
        self.end_receipts(|_| true, learn);
    }
}
