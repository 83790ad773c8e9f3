//! Sections of a recording, one by one, in the order in which they ended.

use std::{borrow::Cow, path::Path};

use nntrace_common::{
    mark,
    record::{Record, SpanRecord},
    stack::Class,
};
use rustc_hash::FxHashMap;

use super::{
    decode::{Event, EventReader},
    error::ReadError,
    facts::Checkpoint,
    format::{BlockHeader, Stream},
    order::{Ordered, Visit},
    read::Files,
};
use crate::model::section::Section;

/// Sections at most whose attributes are kept until they end; those whose ends were lost stay.
const MOST_ANNOTATIONS: usize = 1 << 20;

/// Hands out the sections of a recording, those that no state covers included; returns texts on what is damaged.
///
/// # Errors
/// When the recording cannot be read.
pub fn sections(folder: &Path, take: impl FnMut(&Section<'_>)) -> Result<Vec<String>, ReadError> {
    let files = Files::open(folder)?;
    let (_, state, damage) = files.state()?;
    let until = files.last_event();
    let mut pass = Pass { names: names(&state), annotations: FxHashMap::default(), damage, take };
    Ordered::new(&files, 1, until).visit(until, &mut pass);
    Ok(pass.damage)
}

/// Returns the names whose texts came later than their sections.
fn names(state: &Checkpoint) -> FxHashMap<u64, String> {
    state.late_names.iter().map(|name| (name.hash, name.text.clone())).collect()
}

/// Pass over the events.
struct Pass<T> {
    names: FxHashMap<u64, String>,
    /// Attributes of sections that are open, by thread and begin.
    annotations: FxHashMap<(u32, u64), String>,
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
                let name_end = usize::from(*name_at) + mark::name(payload, *name_at).len();
                let attributes = payload.get(name_end..).unwrap_or_default().trim_ascii_end();
                if !attributes.is_empty() && self.annotations.len() < MOST_ANNOTATIONS {
                    let attributes = String::from_utf8_lossy(attributes).into_owned();
                    self.annotations.insert((origin.tid, *time), attributes);
                }
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
        let (Some(tag), Some(class)) = (span.tag(), Class::from_code(span.class)) else { return };
        let name = self.names.get(&span.name).map(String::as_str);
        let attributes =
            if self.annotations.is_empty() { None } else { self.annotations.remove(&(span.tid, span.begin)) };
        (self.take)(&Section {
            pid: span.tgid,
            tid: span.tid,
            begin_ns: span.begin,
            end_ns: span.end,
            own_ns: span.own,
            exclusive_ns: span.exclusive,
            depth: span.depth,
            tag,
            class,
            path: span.path,
            name: name.map_or_else(|| Cow::Owned(format!("?{:016x}", span.name)), Cow::Borrowed),
            attributes: attributes.map_or(Cow::Borrowed(""), Cow::Owned),
        });
    }
}
