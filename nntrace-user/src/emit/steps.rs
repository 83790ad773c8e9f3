//! Steps of one thread: the marks that it writes, in order of time.
//!
//! The contract's accounting goes along: it says where a `[SUB]` is needed, and whether the marks give what was recorded.

use std::borrow::Cow;

use nntrace_common::{
    hidl_calls,
    layer::Phase,
    mark::{Label, Prefix},
    record::SpanRecord,
    stack::{Class, Closed, Stack},
    stamp::Stamp,
};
use rustc_hash::FxHashMap;

use super::{
    collect::{Annotations, Point, PointKind},
    nesting::{Edge, EdgeKind},
    texts::{TextId, Texts},
};

/// Number of a gate, or of none ([`super::ordering`]).
pub(super) type GateId = u32;
/// Number that no gate has.
pub(super) const NO_GATE: GateId = GateId::MAX;

/// Script of a thread.
#[derive(Debug, Default)]
pub(super) struct ThreadScript {
    /// Recorded process.
    pub(super) pid: u32,
    /// Recorded thread.
    pub(super) tid: u32,
    /// Number among the scripts of one recorded thread: those but 0 have sections that overlap with others of it.
    pub(super) lane: u32,
    /// Name, if it is known.
    pub(super) name: Option<String>,
    /// Steps in order of time.
    pub(super) steps: Vec<Step>,
}

/// Step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Time, ns.
    pub(super) time: u64,
    /// [`Stamp::sequence`] of its event, by which threads take turns within one time; 0 where that is not known.
    pub(super) sequence: u32,
    /// Action.
    pub(super) action: Action,
    /// Gate that must be open before.
    pub(super) waits: GateId,
    /// Gate that is opened after it.
    pub(super) opens: GateId,
}

/// Action of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// A section begins, with this text.
    Begin(TextId),
    /// The innermost section ends.
    End,
    /// Any other event, with this text.
    Event(TextId),
    /// The thread of this number is started.
    Start(u32),
}

impl Step {
    /// Returns a step that depends on no other thread.
    pub(super) fn new(at: Stamp, action: Action) -> Self {
        Self { time: at.time, sequence: at.sequence, action, waits: NO_GATE, opens: NO_GATE }
    }
}

/// Maker of the steps of threads.
pub(super) struct StepMaker<'a> {
    /// Texts of names, by their hashes.
    pub(super) names: &'a FxHashMap<u64, String>,
    /// Known texts of begins.
    pub(super) annotations: &'a Annotations,
    /// Texts of marks.
    pub(super) texts: &'a mut Texts,
    /// How the marks differ from the recorded run.
    pub(super) differences: Differences,
}

/// Differences of the marks from the recorded run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Differences {
    /// Sections without a layer and a phase, which no text gives: work for an execution on another thread.
    pub(super) untagged: u64,
    /// Sections that the accounting of the marks gives another class, place or time.
    pub(super) other_sections: u64,
}

/// Section that was open at the end of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenAtEnd {
    /// When it began.
    pub(super) begin: Stamp,
    /// Layer and phase, if they are known, and how it began.
    pub(super) tag: Option<(Label, Class)>,
    /// Hash of the name.
    pub(super) name: u64,
    /// Attributes, as far as they are known.
    pub(super) attributes: Option<TextId>,
}

impl StepMaker<'_> {
    /// Returns the predicate by which a begin may be a switch: where its text is known, that says it.
    pub(super) fn is_switch(&self, span: &SpanRecord) -> bool {
        let annotation = self.annotations.of(span);
        annotation.is_none_or(|annotation| annotation.is_switch)
    }

    /// Makes the steps of a thread from its begins and ends, its sections without an end, and its other events, each in
    /// order of time.
    pub(super) fn make(&mut self, edges: &[Edge], open: &[OpenAtEnd], points: &[Point]) -> Vec<Step> {
        let mut made = Made { steps: Vec::with_capacity(edges.len() + points.len()), ..Made::default() };
        let (mut open, mut points) = (open.iter().peekable(), points.iter().peekable());
        for edge in edges {
            // At one time, what is around a section begins before it, and an event is inside of it, where nothing shows another
            // order.
            let is_begin = matches!(edge.kind, EdgeKind::Begin { .. });
            loop {
                let is_before = |at: &Stamp, at_one_time: bool| {
                    let is_numbered = at.sequence > 0 && edge.at.sequence > 0;
                    let is_before = if is_numbered { *at < edge.at } else { at_one_time };
                    at.time < edge.at.time || (is_before && at.time == edge.at.time)
                };
                let opened = open.peek().map(|open| open.begin).filter(|begin| is_before(begin, is_begin));
                let event = points.peek().map(|point| point.at).filter(|at| is_before(at, !is_begin));
                match (opened, event) {
                    (Some(begin), event) if event.is_none_or(|at| begin <= at) => {
                        open.next().into_iter().for_each(|open| self.open_at_end(open, &mut made));
                    }
                    (_, Some(_)) => points.next().into_iter().for_each(|point| self.point(point, &mut made)),
                    _ => break,
                }
            }
            self.edge(edge, &mut made);
        }
        for open in open {
            while let Some(point) = points.next_if(|point| point.at < open.begin) {
                self.point(point, &mut made);
            }
            self.open_at_end(open, &mut made);
        }
        points.for_each(|point| self.point(point, &mut made));
        self.differences.other_sections += made.other_sections;
        made.steps
    }

    fn edge(&mut self, edge: &Edge, made: &mut Made) {
        match edge.kind {
            EdgeKind::End => made.end(edge.at),
            EdgeKind::Begin { span, is_switch } => {
                let attributes = self.annotations.of(&span).map(|annotation| annotation.attributes);
                let class = Class::from_code(span.class).unwrap_or(Class::Foreign);
                let label = span.tag().map_or(Label::FOREIGN, Label::tagged);
                let label = if matches!(class, Class::Handed | Class::Part) {
                    self.differences.untagged += 1;
                    Label::FOREIGN
                } else {
                    label
                };
                let prefix = if is_switch { Prefix::Switch } else { made.prefix(label, class) };
                let text = self.begin(prefix, label, span.name, attributes);
                made.begin(edge.at, prefix, label, text, label.is_tagged().then_some(span));
            }
        }
    }

    fn open_at_end(&mut self, open: &OpenAtEnd, made: &mut Made) {
        let (label, class) = open.tag.unwrap_or((Label::FOREIGN, Class::Foreign));
        let prefix = made.prefix(label, class);
        let text = self.begin(prefix, label, open.name, open.attributes);
        made.begin(open.begin, prefix, label, text, None);
    }

    fn point(&mut self, point: &Point, made: &mut Made) {
        match point.kind {
            PointKind::Event(text) => made.push(point.at, Action::Event(text)),
            PointKind::Call(name) => {
                let text = self.begin(Prefix::None, Label::FOREIGN, name, None);
                made.push(point.at, Action::Begin(text));
                made.push(point.at, Action::End);
            }
        }
    }

    /// Returns the text of a begin.
    fn begin(&mut self, prefix: Prefix, label: Label, name: u64, attributes: Option<TextId>) -> TextId {
        let name = match self.names.get(&name) {
            Some(name) => Cow::Borrowed(name.as_str()),
            None => Cow::Owned(format!("?{name:016x}")),
        };
        let mut text = b"B".to_vec();
        if let Some(tag) = label.tag()
            && !is_call(label, &name)
        {
            text.extend_from_slice(match prefix {
                Prefix::None | Prefix::Handed | Prefix::Part => b"",
                Prefix::Switch => b"[SW]",
                Prefix::Subtract => b"[SUB]",
            });
            text.extend_from_slice(format!("[NN_{tag}]").as_bytes());
        }
        text.extend_from_slice(name.as_bytes());
        text.extend_from_slice(attributes.map_or(&[], |id| self.texts.text(id)));
        self.texts.add(&text)
    }
}

/// Whether a section is an interface call, whose name says its layer and phase: it has no tag.
fn is_call(label: Label, name: &str) -> bool {
    let meant = || hidl_calls::meaning(name.as_bytes()).label.tag();
    let fits = || {
        let (Some(meant), Some(tag)) = (meant(), label.tag()) else { return false };
        meant.layer() == tag.layer() && (meant.phase() == Phase::Unspecified || meant.phase() == tag.phase())
    };
    hidl_calls::is_interface_call(name.as_bytes()) && fits()
}

/// Steps so far, and the accounting of them.
struct Made {
    steps: Vec<Step>,
    stack: Box<Stack>,
    /// Recorded sections that are open, or closed by a switch that is not; `None` for any other mark.
    expected: Vec<Option<SpanRecord>>,
    other_sections: u64,
}

impl Default for Made {
    fn default() -> Self {
        Self { steps: Vec::new(), stack: Box::new(Stack::EMPTY), expected: Vec::new(), other_sections: 0 }
    }
}

impl Made {
    fn push(&mut self, at: Stamp, action: Action) {
        // What was taken with another time before it keeps its place.
        let time = self.steps.last().map_or(at.time, |step| step.time.max(at.time));
        self.steps.push(Step::new(Stamp { time, ..at }, action));
    }

    /// Returns the prefix by which a section that begins now has this class.
    fn prefix(&self, label: Label, class: Class) -> Prefix {
        if class != Class::Subtract {
            return Prefix::None;
        }
        // The path of a subtracted section is another one than that of the same section without it.
        let path_by = |prefix| {
            let mut stack = *self.stack;
            stack.begin(0, prefix, label, 0, |_, _| {});
            stack.open_frames().last().map(|(_, frame)| frame.path)
        };
        if path_by(Prefix::None) == path_by(Prefix::Subtract) { Prefix::None } else { Prefix::Subtract }
    }

    fn begin(&mut self, at: Stamp, prefix: Prefix, label: Label, text: TextId, span: Option<SpanRecord>) {
        self.push(at, Action::Begin(text));
        let ended = if prefix == Prefix::Switch { self.expected.pop().flatten() } else { None };
        if prefix == Prefix::Switch {
            self.expected.push(None);
        }
        let Self { stack, other_sections, .. } = self;
        stack.begin(at.time, prefix, label, span.map_or(0, |span| span.name), |_, closed| {
            *other_sections += u64::from(!ended.is_some_and(|ended| is_same(&ended, closed)));
        });
        self.expected.push(span);
    }

    fn end(&mut self, at: Stamp) {
        self.push(at, Action::End);
        let ended = self.expected.pop().flatten();
        let Self { stack, other_sections, .. } = self;
        stack.end(at.time, |_, closed| {
            *other_sections += u64::from(!ended.is_some_and(|ended| is_same(&ended, closed)));
        });
    }
}

/// Whether a section is accounted as it was recorded.
fn is_same(recorded: &SpanRecord, closed: &Closed) -> bool {
    let SpanRecord { tag, class, adds, begin, end, own, exclusive, path, name, .. } = *recorded;
    if class == Class::Asynchronous as u8 {
        // A section of its own, which does not know how long it was in flight.
        let alone = Closed::alone(closed.tag, name, begin, end, closed.slot);
        return tag == closed.tag.index() && alone == *closed;
    }
    // What is open around it without an end has no name here.
    (tag, class, adds.of_path(), path, name)
        == (closed.tag.index(), closed.class as u8, closed.adds.of_path(), closed.path, closed.name)
        && (begin, end, own, exclusive) == (closed.begin, closed.end, closed.own, closed.exclusive)
}
