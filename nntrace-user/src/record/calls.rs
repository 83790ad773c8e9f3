//! Calls of a recording, in the order of their begins.

use std::{collections::BTreeMap, ops::Range, path::Path};

use super::{
    call_entry,
    decode::{Event, EventReader},
    error::ReadError,
    format::{BlockHeader, Stream},
    order::{Ordered, Visit},
    read::Files,
};
use crate::model::calls::{Call, CallDefinition};

/// Calls of a recording.
#[derive(Default)]
pub struct Calls {
    definitions: BTreeMap<u32, CallDefinition>,
    /// Entries, one after the other.
    entries: Vec<u8>,
    /// Begin of each call, ns, and its entry.
    order: Vec<(u64, Range<usize>)>,
    notes: Vec<String>,
}

/// Reads the calls of a recording. Each takes some 50 bytes of memory, and its texts.
///
/// # Errors
/// When it cannot be read. Damage is no error: the rest is read, and what is missing noted.
pub fn calls(folder: &Path) -> Result<Calls, ReadError> {
    let files = Files::open(folder)?;
    let (_, state, damage) = files.state()?;
    let mut calls = Calls::default();
    // Those after the last state of the run, too: they need none.
    let until = files.last_event();
    Ordered::new(&files, state.first_event(), until).visit(until, &mut calls);
    calls.order.sort_by_key(|(begin, _)| *begin);
    calls.notes.extend(damage);
    calls.notes.extend(state.notes);
    Ok(calls)
}

impl Calls {
    /// Passes each call to `take`, with its function.
    pub fn visit(&self, mut take: impl FnMut(Option<&CallDefinition>, &Call<'_>)) {
        let entries = self.order.iter().filter_map(|(_, range)| self.entries.get(range.clone()));
        for call in entries.filter_map(call_entry::read) {
            take(self.definitions.get(&call.definition), &call);
        }
    }

    /// Returns the functions whose calls were recorded.
    pub fn definitions(&self) -> impl Iterator<Item = &CallDefinition> {
        self.definitions.values()
    }

    /// Returns notes of the run, and on damage.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl Visit for Calls {
    fn event(&mut self, _stream: Stream, event: &Event, reader: &EventReader) {
        match event {
            Event::CallDefinition(definition) => {
                self.definitions.insert(definition.number, (**definition).clone());
            }
            Event::Call(range) => {
                let entry = reader.content().get(range.clone()).unwrap_or_default();
                if let Some(begin) = call_entry::begin(entry) {
                    let from = self.entries.len();
                    self.entries.extend_from_slice(entry);
                    self.order.push((begin, from..self.entries.len()));
                }
            }
            _ => {}
        }
    }

    fn missing(&mut self, _stream: Stream, _block: Option<&BlockHeader>, reason: Option<String>) {
        self.notes.extend(reason);
    }
}
