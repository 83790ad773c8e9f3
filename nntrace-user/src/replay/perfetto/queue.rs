//! Events of a packet, until they are taken: in the form of those of a text, with all of their texts in one place.

use std::io::Write as _;

use crate::replay::{
    batch::EventItem,
    ftrace::{Event, EventKind},
    losses::Loss,
    step::Step,
};

/// CPU of events that come from a program itself, and have none.
pub(crate) const NO_CPU: u32 = u32::MAX;

/// Steps that wait.
#[derive(Default)]
pub(super) struct Queue {
    text: Vec<u8>,
    items: Vec<Item>,
    taken: usize,
}

enum Item {
    Event(EventItem),
    Lost(Loss),
    Note(String),
}

/// Place and time of an event.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) comm: &'a [u8],
    pub(super) tid: u32,
    pub(super) tgid: Option<u32>,
    pub(super) cpu: u32,
    /// Time on the clock of the trace, ns.
    pub(super) time: u64,
}

impl Queue {
    /// Advances to the next step; `None` when all were taken, and the queue is empty again.
    pub(super) fn advance(&mut self) -> Option<Step> {
        let Some(item) = self.items.get_mut(self.taken) else {
            self.items.clear();
            self.text.clear();
            self.taken = 0;
            return None;
        };
        self.taken += 1;
        Some(match item {
            Item::Event(_) => Step::Event,
            Item::Lost(loss) => Step::Lost(*loss),
            Item::Note(note) => Step::Cut(std::mem::take(note)),
        })
    }

    fn current(&self) -> Option<&EventItem> {
        match self.items.get(self.taken.checked_sub(1)?)? {
            Item::Event(event) => Some(event),
            Item::Lost(_) | Item::Note(_) => None,
        }
    }

    /// Returns the time of the event that was advanced to, ns.
    pub(super) fn time(&self) -> u64 {
        self.current().map_or(0, |event| event.time)
    }

    /// Returns the event that was advanced to.
    pub(super) fn event(&self) -> Option<Event<'_>> {
        Some(self.current()?.event(&self.text))
    }

    /// Adds a loss.
    pub(super) fn lost(&mut self, loss: Loss) {
        self.items.push(Item::Lost(loss));
    }

    /// Adds a note on what could not be read.
    pub(super) fn note(&mut self, note: String) {
        self.items.push(Item::Note(note));
    }

    /// Adds an event without a text.
    pub(super) fn event_of(&mut self, place: Place<'_>, kind: EventKind<'static>) {
        let start = self.text.len();
        self.text.extend_from_slice(place.comm);
        let comm = &self.text[start..];
        self.push(place, comm.len(), start, |_| kind);
    }

    /// Adds a mark whose text `write` appends.
    pub(super) fn mark(&mut self, place: Place<'_>, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.text.len();
        self.text.extend_from_slice(place.comm);
        write(&mut self.text);
        self.push(place, place.comm.len(), start, EventKind::Mark);
    }

    /// Adds another event; `write` appends its fields.
    pub(super) fn other(&mut self, place: Place<'_>, name: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.text.len();
        self.text.extend_from_slice(place.comm);
        self.text.extend_from_slice(name);
        write(&mut self.text);
        let name = name.len();
        self.push(place, place.comm.len(), start, |text| {
            let (name, fields) = text.split_at(name);
            EventKind::Other { name, fields }
        });
    }

    fn push<'a>(
        &'a mut self,
        place: Place<'_>,
        comm: usize,
        start: usize,
        kind: impl FnOnce(&'a [u8]) -> EventKind<'a>,
    ) {
        let Place { tid, tgid, cpu, time, .. } = place;
        let Self { text, items, .. } = self;
        let (comm, rest) = text[start..].split_at(comm);
        let event = Event { comm, tid, tgid, cpu, time, kind: kind(rest) };
        items.push(Item::Event(EventItem::new(&event, text)));
    }
}

/// Appends formatted text. Memory is always written.
pub(super) fn append(text: &mut Vec<u8>, what: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(what);
}
