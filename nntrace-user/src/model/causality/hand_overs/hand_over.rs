//! One hand-over of work: its anchors in time, and the parts that they split it into.

use nntrace_common::{attributes::Handle, layer::Tag, record::SpanRecord, stamp::Stamp};

use crate::model::causality::{Origin, iterations::IterationId};

/// Work that went from one thread to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HandOver {
    /// Evidence for it.
    pub(crate) source: Source,
    /// Name of the work, where marks give it one.
    pub(crate) handle: Option<Handle>,
    /// Layer and phase of the section that handed it over.
    pub(crate) from: Option<Tag>,
    /// Layer and phase of the section that does the work.
    pub(crate) to: Option<Tag>,
    /// Function that does the work.
    pub(crate) function: Option<Function>,
    /// Where and when it was handed over.
    pub(crate) dispatch: Option<Moment>,
    /// Where and when it was taken; where it waited at a gate, when that opened.
    pub(crate) receive: Option<Moment>,
    /// When it was taken before it waited at a gate.
    pub(crate) received_first: Option<Stamp>,
    /// When the work began, on the thread that took it.
    pub(crate) start: Option<Stamp>,
    /// When the work was done.
    pub(crate) end: Option<Stamp>,
    /// When the one who handed it over had the result, ns.
    pub(crate) finish: Option<u64>,
    /// Iteration that it was handed over in.
    pub(crate) iteration: Option<IterationId>,
}

/// Time on a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Moment {
    /// Process.
    pub(crate) pid: u32,
    /// Thread.
    pub(crate) tid: u32,
    /// Time, ns.
    pub(crate) time: u64,
    /// [`Stamp::sequence`].
    pub(crate) sequence: u32,
}

impl Moment {
    /// Returns the time (ns) on the thread of a mark.
    pub(crate) const fn new(origin: Origin, time: u64) -> Self {
        Self { pid: origin.pid, tid: origin.tid, time, sequence: origin.sequence }
    }

    /// Returns when a section began.
    pub(crate) const fn of_begin(span: &SpanRecord) -> Self {
        Self { pid: span.tgid, tid: span.tid, time: span.begin, sequence: span.begin_sequence }
    }

    /// Returns the moment of another event on its thread.
    pub(crate) const fn at(self, stamp: Stamp) -> Self {
        Self { time: stamp.time, sequence: stamp.sequence, ..self }
    }

    /// Returns its place in the order of events.
    pub(crate) const fn stamp(&self) -> Stamp {
        Stamp::new(self.time, self.sequence)
    }
}

/// Evidence for a hand-over, from the surest to the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Source {
    /// Marks with one handle: `nn.send` and `nn.recv`.
    Handle,
    /// A binder transaction of the kernel.
    Binder,
    /// Marks of both sides of an interface call, first in, first out.
    Interface,
    /// Begin and end of an asynchronous call.
    Asynchronous,
    /// A wake-up: inferred.
    WakeUp,
}

impl Source {
    /// Word in results.
    #[must_use]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Handle => "handle",
            Self::Binder => "binder",
            Self::Interface => "interface",
            Self::Asynchronous => "asynchronous",
            Self::WakeUp => "wake-up",
        }
    }
}

/// Function that does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Function {
    /// Function of a section, by the hash of its name.
    Section(u64),
    /// Method of an interface, by its number among them.
    Method(u32),
}

/// Part of a hand-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// Time from the dispatch to the receipt: the kernel's way, which the program cannot change.
    Propagation,
    /// Time from the receipt to the start of the work.
    Setup,
    /// Time from the dispatch to the start of the work: both.
    Head,
    /// Time from the start of the work to its end.
    Execution,
    /// Time from the end of the work to the result at the one who handed it over.
    Tail,
    /// Time from the dispatch to the result.
    Latency,
}

impl Part {
    /// All, in their order.
    pub(crate) const ALL: [Self; 6] =
        [Self::Propagation, Self::Setup, Self::Head, Self::Execution, Self::Tail, Self::Latency];
}

impl HandOver {
    /// Returns the hand-over with nothing known but its evidence.
    pub(crate) const fn new(source: Source) -> Self {
        Self {
            source,
            handle: None,
            from: None,
            to: None,
            function: None,
            dispatch: None,
            receive: None,
            received_first: None,
            start: None,
            end: None,
            finish: None,
            iteration: None,
        }
    }

    /// Returns the time by which hand-overs are ordered: that of the first anchor that is known.
    #[must_use]
    pub(crate) fn first_time(&self) -> u64 {
        let times = [self.dispatch, self.receive].into_iter().flatten().map(|moment| moment.time);
        times.chain(self.start.map(|start| start.time)).min().unwrap_or(0)
    }

    /// Whether the work was taken, or begun, before it was handed over: clocks or marks are wrong. Work that waits at a gate
    /// may be taken ahead.
    #[must_use]
    pub(crate) fn is_violation(&self) -> bool {
        let taken = self.receive.map(|moment| moment.time).or(self.start.map(|start| start.time));
        self.dispatch.zip(taken).is_some_and(|(dispatch, taken)| taken < dispatch.time)
    }

    /// Returns the length of a part, ns; `None` where one of its ends is not known, or is before the other.
    #[must_use]
    pub(crate) fn part(&self, part: Part) -> Option<u64> {
        let (dispatch, receive) = (self.dispatch.map(|at| at.time), self.receive.map(|at| at.time));
        let (start, done) = (self.start.map(|at| at.time), self.end.map(|at| at.time));
        // What was taken before it was handed over has no way from the one to the other.
        let sound = dispatch.filter(|_| !self.is_violation());
        let (begin, end) = match part {
            Part::Propagation => (sound, receive),
            Part::Setup => (receive, start),
            Part::Head => (sound, start),
            Part::Execution => (start, done),
            Part::Tail => (done, self.finish),
            Part::Latency => (dispatch, self.finish),
        };
        begin.zip(end).and_then(|(begin, end)| end.checked_sub(begin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(time: u64) -> Moment {
        Moment { pid: 1, tid: 1, time, sequence: 0 }
    }

    fn parts(hand_over: &HandOver) -> [Option<u64>; 6] {
        Part::ALL.map(|part| hand_over.part(part))
    }

    #[test]
    fn head_is_propagation_and_setup() {
        let all = HandOver {
            dispatch: Some(at(1_000)),
            receive: Some(at(1_400)),
            start: Some(1_450.into()),
            end: Some(2_000.into()),
            finish: Some(2_300),
            ..HandOver::new(Source::Interface)
        };
        assert_eq!(parts(&all), [Some(400), Some(50), Some(450), Some(550), Some(300), Some(1_300)]);
        let unseen = HandOver { receive: None, ..all };
        assert_eq!(parts(&unseen), [None, None, Some(450), Some(550), Some(300), Some(1_300)]);
        let server_alone = HandOver { dispatch: None, finish: None, ..all };
        assert_eq!(parts(&server_alone), [None, Some(50), None, Some(550), None, None]);
    }

    #[test]
    fn a_receipt_at_time_zero_is_one() {
        let zero = HandOver {
            dispatch: Some(at(0)),
            receive: Some(at(0)),
            start: Some(7.into()),
            ..HandOver::new(Source::Handle)
        };
        assert_eq!((zero.part(Part::Propagation), zero.part(Part::Setup)), (Some(0), Some(7)));
    }

    #[test]
    fn work_that_is_taken_before_it_is_handed_over_is_a_violation() {
        let early = HandOver {
            dispatch: Some(at(9)),
            receive: Some(at(5)),
            start: Some(12.into()),
            ..HandOver::new(Source::Handle)
        };
        assert!(early.is_violation());
        assert_eq!(parts(&early)[..3], [None, Some(7), None]);
        let gated = HandOver { receive: Some(at(10)), received_first: Some(5.into()), ..early };
        assert!(!gated.is_violation());
        assert_eq!(parts(&gated)[..3], [Some(1), Some(2), Some(3)]);
        assert!(!HandOver { dispatch: None, ..early }.is_violation());
    }
}
