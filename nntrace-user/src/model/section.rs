//! Single sections, as lists and exports show them.

use std::borrow::Cow;

use nntrace_common::{
    layer::Tag,
    mark,
    record::{BeginRecord, Record, SpanRecord},
    stack::Class,
    stamp::Stamp,
};
use rustc_hash::FxHashMap;

use super::{
    causality::Origin,
    function_names::Names,
    input::{Input, Observe},
};

/// Returns the word for a class that is not the usual one.
pub(crate) const fn class_name(class: Class) -> Option<&'static str> {
    match class {
        Class::Subtract => Some("subtracted"),
        Class::Section | Class::Foreign | Class::Placeholder => None,
        Class::Detail | Class::Handed | Class::Part | Class::Asynchronous => Some(class.word()),
    }
}

/// Sections at most whose attributes are kept until they end; those whose ends were lost stay.
const MOST_ANNOTATIONS: usize = 1 << 20;

/// Marked section that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section<'a> {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Begin, ns.
    pub begin_ns: u64,
    /// End, ns.
    pub end_ns: u64,
    /// Duration without subtracted sections, ns.
    pub own_ns: u64,
    /// Duration without the marked sections in it, ns.
    pub exclusive_ns: u64,
    /// Sections that were open around it, foreign ones too.
    pub depth: u8,
    /// Layer and phase, as written.
    pub tag: Tag,
    /// Class, by which it adds to totals.
    pub class: Class,
    /// Hash of the tags from the outermost section to this one.
    pub path: u64,
    /// Name without attributes; its hash where the text never came.
    pub name: Cow<'a, str>,
    /// Attributes as written, each after a `#`; empty where there is none, or they were not recorded.
    pub attributes: Cow<'a, str>,
    /// Whether its thread took no part in the accounting when it ended. Sums have it if the thread took part later.
    pub is_provisional: bool,
    /// Whether it is inside a section of the same function, whose sums have its exclusive time alone.
    pub in_itself: bool,
    /// [`Stamp::sequence`] of its begin and of its end.
    pub sequences: (u32, u32),
}

impl<'a> Section<'a> {
    /// Creates the section of a record; `None` for one without a layer and a phase. A name is `None` where its text never
    /// came.
    pub(crate) fn of(
        span: &SpanRecord,
        name: Option<&'a str>,
        attributes: Option<Cow<'a, str>>,
    ) -> Option<Self> {
        Some(Self {
            pid: span.tgid,
            tid: span.tid,
            begin_ns: span.begin,
            end_ns: span.end,
            own_ns: span.own,
            exclusive_ns: span.exclusive,
            depth: span.depth,
            tag: span.tag()?,
            class: Class::from_code(span.class)?,
            path: span.path,
            name: name.map_or_else(|| Cow::Owned(format!("?{:016x}", span.name)), Cow::Borrowed),
            attributes: attributes.unwrap_or_default(),
            is_provisional: span.is_provisional(),
            in_itself: span.adds.is_in_itself(),
            sequences: (span.begin_sequence, span.end_sequence),
        })
    }

    /// Returns the word for a class that is not the usual one.
    pub(crate) const fn class_name(&self) -> Option<&'static str> {
        class_name(self.class)
    }

    /// Returns when it began.
    pub(crate) const fn begin_stamp(&self) -> Stamp {
        Stamp::new(self.begin_ns, self.sequences.0)
    }

    /// Returns when it ended.
    pub(crate) const fn end_stamp(&self) -> Stamp {
        Stamp::new(self.end_ns, self.sequences.1)
    }

    /// Returns the duration, ns.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }
}

/// Mark that is no section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark<'a> {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Time, ns.
    pub time: u64,
    /// [`Stamp::sequence`].
    pub sequence: u32,
    /// Sections that are open around it, foreign ones too.
    pub depth: u8,
    /// Text, as written.
    pub payload: Cow<'a, str>,
}

impl<'a> Mark<'a> {
    /// Returns the mark that an input is, if it is none of a section, by the texts of names.
    pub(crate) fn of(input: &Input<'a>, name: impl FnOnce(u64) -> Option<&'a str>) -> Option<Self> {
        match *input {
            Input::Track { origin, time, payload } => {
                let Origin { pid, tid, depth, sequence } = origin;
                Some(Self { pid, tid, time, sequence, depth, payload: String::from_utf8_lossy(payload) })
            }
            // Callbacks are no sections, and yet their begins count.
            Input::Record(Record::Begin(begin)) if !begin.label.is_tagged() => {
                let BeginRecord { tgid: pid, tid, time, sequence, .. } = *begin;
                let payload = format!("B|{pid}|{}", name(begin.name)?).into();
                Some(Self { pid, tid, time, sequence, depth: u8::MAX, payload })
            }
            _ => None,
        }
    }
}

/// Attributes of sections that are open, by thread, begin and the number of sections around: several may begin in one instant.
#[derive(Debug, Default)]
pub(crate) struct Annotations(FxHashMap<(u32, Stamp, u8), String>);

impl Annotations {
    /// Keeps the attributes of a section that begins, if its mark has any.
    pub(crate) fn begin(&mut self, origin: Origin, time: u64, payload: &[u8], name_at: u16) {
        let name_end = usize::from(name_at) + mark::name(payload, name_at).len();
        let attributes = payload.get(name_end..).unwrap_or_default().trim_ascii_end();
        if !attributes.is_empty() && self.0.len() < MOST_ANNOTATIONS {
            self.0.insert(
                (origin.tid, origin.at(time), origin.depth),
                String::from_utf8_lossy(attributes).into_owned(),
            );
        }
    }

    /// Whether there are none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the attributes of a section that ended.
    #[inline]
    pub(crate) fn end(&mut self, span: &SpanRecord) -> Option<String> {
        if self.0.is_empty() { None } else { self.0.remove(&(span.tid, span.begin_stamp(), span.depth)) }
    }
}

/// Observer of a model that hands out its sections in the order in which they end.
pub(crate) struct SectionObserver<T> {
    annotations: Annotations,
    take: T,
}

impl<T: FnMut(&Section<'_>)> SectionObserver<T> {
    /// Creates an observer that calls this with every section.
    pub(crate) fn new(take: T) -> Self {
        Self { annotations: Annotations::default(), take }
    }
}

impl<T: FnMut(&Section<'_>)> Observe for SectionObserver<T> {
    fn input(&mut self, input: &Input<'_>, names: &Names) {
        match *input {
            Input::Record(Record::Span(span)) | Input::SpanAnywhere(span) => {
                let name = names.get(span.name).map(|name| name.text.as_str());
                let attributes = self.annotations.end(span).map(Cow::Owned);
                if let Some(section) = Section::of(span, name, attributes) {
                    (self.take)(&section);
                }
            }
            Input::AnnotatedBegin { origin, time, payload, name_at } => {
                self.annotations.begin(origin, time, payload, name_at);
            }
            _ => {}
        }
    }
}
