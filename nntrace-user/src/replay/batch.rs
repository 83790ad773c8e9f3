//! Part of a text, parsed: what its lines are, in a form that can be handed from thread to thread.

use super::{
    ftrace::{Columns, Event, EventKind, Parsed},
    html::Html,
    lines::Text,
    losses::Loss,
};

/// Lines, and what they are. Used again for other lines.
#[derive(Default)]
pub(crate) struct Batch {
    /// Text of the lines.
    pub text: Text,
    /// Events, and whatever else concerns a visitor, in their order.
    pub items: Vec<Item>,
    /// Number of lines.
    pub lines: u64,
}

/// Line that concerns a visitor.
pub(crate) enum Item {
    /// Event.
    Event(EventItem),
    /// Notice of missing records.
    Lost(Loss),
    /// Line that is neither.
    Other {
        /// Number of the line in the batch, from 1 on.
        number: u64,
        /// Trace text in it, which is all of it outside of HTML.
        text: Range,
        /// Line as it was read.
        line: Range,
        /// Whether it is a comment. Such lines are left out after an event, where they mean nothing.
        is_comment: bool,
    },
}

/// Event whose texts are in the batch.
pub(crate) struct EventItem {
    /// Time, ns.
    pub time: u64,
    comm: Range,
    tid: u32,
    tgid: Option<u32>,
    cpu: u32,
    kind: Kind,
}

/// Kind of an event.
enum Kind {
    Mark(Range),
    CpuIdle { state: u32, cpu: u32 },
    CpuFrequency { khz: u32, cpu: u32 },
    Other { name: Range, fields: Range },
}

/// Range of a batch's text, which is much shorter than 4 GiB.
#[derive(Clone, Copy)]
pub(crate) struct Range {
    at: u32,
    len: u32,
}

impl Range {
    /// Returns where `part` is in `text`, which it was taken from.
    #[inline]
    fn of(part: &[u8], text: &[u8]) -> Self {
        let at = (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
        debug_assert!(part.is_empty() || at + part.len() <= text.len(), "a part of another text");
        // An empty one may be from anywhere.
        Self { at: if part.is_empty() { 0 } else { at as u32 }, len: part.len() as u32 }
    }

    /// Returns the part.
    #[inline]
    pub(crate) fn from(self, text: &[u8]) -> &[u8] {
        &text[self.at as usize..][..self.len as usize]
    }
}

impl EventItem {
    /// Keeps an event, all of whose texts are in `text`.
    #[inline]
    pub(crate) fn new(event: &Event<'_>, text: &[u8]) -> Self {
        let of = |part| Range::of(part, text);
        let Event { comm, tid, tgid, cpu, time, kind } = *event;
        let kind = match kind {
            EventKind::Mark(payload) => Kind::Mark(of(payload)),
            EventKind::CpuIdle { state, cpu } => Kind::CpuIdle { state, cpu },
            EventKind::CpuFrequency { khz, cpu } => Kind::CpuFrequency { khz, cpu },
            EventKind::Other { name, fields } => Kind::Other { name: of(name), fields: of(fields) },
        };
        Self { time, comm: of(comm), tid, tgid, cpu, kind }
    }

    /// Returns the event; `text` is that of its batch.
    #[inline]
    pub(crate) fn event<'a>(&self, text: &'a [u8]) -> Event<'a> {
        let Self { time, comm, tid, tgid, cpu, ref kind } = *self;
        let kind = match *kind {
            Kind::Mark(payload) => EventKind::Mark(payload.from(text)),
            Kind::CpuIdle { state, cpu } => EventKind::CpuIdle { state, cpu },
            Kind::CpuFrequency { khz, cpu } => EventKind::CpuFrequency { khz, cpu },
            Kind::Other { name, fields } => {
                EventKind::Other { name: name.from(text), fields: fields.from(text) }
            }
        };
        Event { comm: comm.from(text), tid, tgid, cpu, time, kind }
    }
}

/// Parser of batches. Several can share a text, except that of a page, whose lines depend on those before.
pub(crate) struct Parser {
    columns: Columns,
    /// Filter for the trace text in an HTML page.
    html: Option<Html>,
}

impl Parser {
    /// Creates a parser of plain text, or of a page.
    pub(crate) fn new(is_html: bool) -> Self {
        Self { columns: Columns::default(), html: is_html.then(Html::default) }
    }

    /// Fills in everything of a batch except its text.
    pub(crate) fn parse(&mut self, batch: &mut Batch) {
        let Batch { text: all, items, lines } = batch;
        items.clear();
        *lines = 0;
        let bytes = all.bytes();
        let mut has_event = false;
        for line in all.lines() {
            *lines += 1;
            let text = match &mut self.html {
                None => line,
                Some(html) => match html.feed(line) {
                    Some(text) => text,
                    None => continue,
                },
            };
            // By reference: a copy of a value that was just written in parts is slow.
            match &self.columns.parse(text) {
                Parsed::Event(event) => {
                    has_event = true;
                    items.push(Item::Event(EventItem::new(event, bytes)));
                }
                Parsed::Lost(loss) => items.push(Item::Lost(*loss)),
                Parsed::Header if has_event => {}
                parsed => items.push(Item::Other {
                    number: *lines,
                    text: Range::of(text, bytes),
                    line: Range::of(line, bytes),
                    is_comment: *parsed == Parsed::Header,
                }),
            }
        }
    }
}
