//! Sections of a recording, one by one, in the order in which they ended.

use std::path::Path;

use nntrace_common::record::{Record, SpanRecord};
use rustc_hash::FxHashMap;

use super::{
    decode::{Event, EventReader},
    error::ReadError,
    facts::Checkpoint,
    format::{BlockHeader, Stream},
    order::{Ordered, Visit},
    read::Files,
};
use crate::model::section::{Annotations, Section};

/// Hands out the sections of a recording, those that no state covers included; returns texts on what is damaged.
///
/// # Errors
/// When the recording cannot be read.
pub fn sections(folder: &Path, take: impl FnMut(&Section<'_>)) -> Result<Vec<String>, ReadError> {
    let files = Files::open(folder)?;
    let (_, state, damage) = files.state()?;
    let until = files.last_event();
    let mut pass = Pass { names: names(&state), annotations: Annotations::default(), damage, take };
    Ordered::new(&files, until).visit(until, &mut pass);
    Ok(pass.damage)
}

/// Returns the names whose texts came later than their sections.
fn names(state: &Checkpoint) -> FxHashMap<u64, String> {
    state.late_names.iter().map(|name| (name.hash, name.text.clone())).collect()
}

/// Pass over the events.
struct Pass<T> {
    names: FxHashMap<u64, String>,
    annotations: Annotations,
    damage: Vec<String>,
    take: T,
}

impl<T: FnMut(&Section<'_>)> Visit for Pass<T> {
    fn event(&mut self, _stream: Stream, event: &Event, reader: &EventReader) {
        for (hash, text) in reader.names() {
            self.names.entry(hash).or_insert_with(|| String::from_utf8_lossy(text).into_owned());
        }
        match event {
            Event::Record(Record::Span(span)) | Event::SpanAnywhere(span) => self.span(span),
            Event::AnnotatedBegin { origin, time, payload, name_at } => {
                let payload = reader.content().get(payload.clone()).unwrap_or_default();
                self.annotations.begin(origin.tid, *time, payload, *name_at);
            }
            _ => {}
        }
    }

    fn missing(&mut self, _stream: Stream, _block: Option<&BlockHeader>, reason: Option<String>) {
        self.damage.extend(reason);
    }
}

impl<T: FnMut(&Section<'_>)> Pass<T> {
    fn span(&mut self, span: &SpanRecord) {
        let name = self.names.get(&span.name).map(String::as_str);
        let attributes = self.annotations.end(span);
        if let Some(section) = Section::of(span, name, attributes) {
            (self.take)(&section);
        }
    }
}
