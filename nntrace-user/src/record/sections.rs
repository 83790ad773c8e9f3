//! Sections of a recording, one by one, in the order in which they ended.

use std::{borrow::Cow, path::Path};

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
use crate::model::section::{Annotations, Mark, Section};

/// Hands out the sections of a recording, those that no state covers included; returns texts on what is damaged.
///
/// # Errors
/// When the recording cannot be read.
pub fn sections(folder: &Path, take: impl FnMut(&Section<'_>)) -> Result<Vec<String>, ReadError> {
    let files = Files::open(folder)?;
    let (_, state, mut damage) = files.state()?;
    let until = files.last_event();
    let late_names = late_names(&state);
    let mut pass = SectionPass::new(&late_names, InOrderOfEnds(take));
    Ordered::new(&files, state.first_event(), until).visit(until, &mut pass);
    damage.extend(pass.damage);
    Ok(damage)
}

/// Returns the names whose texts came later than their sections.
pub(super) fn late_names(state: &Checkpoint) -> FxHashMap<u64, String> {
    state.late_names.iter().map(|name| (name.hash, name.text.clone())).collect()
}

/// Section as it is found among the events.
pub(super) struct FoundSection<'a> {
    /// Number of the event.
    pub(super) number: u64,
    /// Section.
    pub(super) span: &'a SpanRecord,
    /// Attributes as written, each after a `#`.
    pub(super) attributes: Option<String>,
    reader: &'a EventReader,
    late_names: &'a FxHashMap<u64, String>,
}

impl<'a> FoundSection<'a> {
    /// Returns the name without attributes; its hash where the text never came.
    #[inline]
    pub(super) fn name(&self) -> Cow<'a, str> {
        section_name(self.span, self.reader, self.late_names)
    }
}

/// Consumer of the sections among the events.
pub(super) trait TakeSections {
    /// Takes a section.
    fn section(&mut self, section: FoundSection<'_>);

    /// Takes a mark that is no section, by the number of its event.
    fn mark(&mut self, _number: u64, _mark: &Mark<'_>) {}
}

/// Pass over the events for their sections.
pub(super) struct SectionPass<'a, T> {
    late_names: &'a FxHashMap<u64, String>,
    /// Attributes of sections that are open, by thread and begin.
    annotations: Annotations,
    /// Texts on what is damaged.
    pub(super) damage: Vec<String>,
    /// Consumer.
    pub(super) take: T,
}

impl Annotations {
    /// Keeps the attributes of a begin with its text; other events have none.
    #[inline]
    pub(super) fn take(&mut self, event: &Event, content: &[u8]) {
        if let Event::AnnotatedBegin { origin, time, payload, name_at } = event {
            let payload = content.get(payload.clone()).unwrap_or_default();
            self.begin(*origin, *time, payload, *name_at);
        }
    }
}

impl<'a, T: TakeSections> SectionPass<'a, T> {
    /// Creates a pass.
    pub(super) fn new(late_names: &'a FxHashMap<u64, String>, take: T) -> Self {
        Self { late_names, annotations: Annotations::default(), damage: Vec::new(), take }
    }

    fn span(&mut self, span: &SpanRecord, reader: &EventReader) {
        let attributes = self.annotations.end(span);
        let (number, late_names) = (reader.number(), self.late_names);
        self.take.section(FoundSection { number, span, attributes, reader, late_names });
    }
}

/// Returns the name of a section that was just read; its hash where the text never came.
#[inline]
pub(super) fn section_name<'a>(
    span: &SpanRecord,
    reader: &'a EventReader,
    late_names: &'a FxHashMap<u64, String>,
) -> Cow<'a, str> {
    match reader.section_name() {
        Some(text) => String::from_utf8_lossy(text),
        None => match late_names.get(&span.name) {
            Some(text) => Cow::Borrowed(text),
            None => Cow::Owned(format!("?{:016x}", span.name)),
        },
    }
}

impl<T: TakeSections> Visit for SectionPass<'_, T> {
    #[inline]
    fn event(&mut self, _stream: Stream, event: &Event, reader: &EventReader) {
        match event {
            Event::Record(Record::Span(span)) | Event::SpanAnywhere(span) => self.span(span, reader),
            event => {
                self.annotations.take(event, reader.content());
                if let Some(mark) = mark(event, reader, self.late_names) {
                    self.take.mark(reader.number(), &mark);
                }
            }
        }
    }

    fn missing(&mut self, _stream: Stream, _block: Option<&BlockHeader>, reason: Option<String>) {
        self.damage.extend(reason);
    }
}

/// Returns the mark that an event is, if it is none of a section.
pub(super) fn mark<'a>(
    event: &'a Event,
    reader: &'a EventReader,
    late_names: &'a FxHashMap<u64, String>,
) -> Option<Mark<'a>> {
    let input = event.input(reader.content(), false)?;
    Mark::of(&input, |hash| {
        let late = || late_names.get(&hash).map(String::as_str);
        reader.text(hash).and_then(|text| str::from_utf8(text).ok()).or_else(late)
    })
}

/// Sections as they come.
struct InOrderOfEnds<T>(T);

impl<T: FnMut(&Section<'_>)> TakeSections for InOrderOfEnds<T> {
    fn section(&mut self, found: FoundSection<'_>) {
        let name = found.name();
        if let Some(section) = Section::of(found.span, Some(&name), found.attributes.map(Cow::Owned)) {
            (self.0)(&section);
        }
    }
}
