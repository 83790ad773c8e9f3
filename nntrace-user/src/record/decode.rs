//! Content of blocks of events, read.

use std::{fmt, ops::Range};

use nntrace_common::{
    app_events::AppEvent,
    mark::Label,
    record::{BeginRecord, PowerRecord, ProcessRecord, Record, RecordKind, SchedRecord, SpanRecord},
    stack::Adds,
};
use rustc_hash::FxHashMap;

use super::{
    initial_host::InitialHost,
    kind::{self, Kind},
    limit_entry, rival_entry,
    varint::Cursor,
};
use crate::model::{
    calls::CallDefinition, causality::Origin, input::Input, scheduling::Found,
    section_statistics::SectionTimes,
};

/// Event of a block. Texts are ranges of the block's content.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Event {
    /// Record.
    Record(Record),
    /// Section at whatever place in the order of time.
    SpanAnywhere(SpanRecord),
    /// Thread that takes part.
    ThreadMarked { tgid: u32, tid: u32 },
    /// Counter, instant, or end of an asynchronous slice.
    Track { origin: Origin, time: u64, payload: Range<usize> },
    /// Begin with its text.
    AnnotatedBegin { origin: Origin, time: u64, payload: Range<usize>, name_at: u16 },
    /// Change of the application's phases.
    AppEvent(AppEvent),
    /// Begin of the window of scheduling.
    SchedulingBegins { begin: u64 },
    /// Thread whose events all come from here on.
    ThreadWatched { pid: u32, tid: u32, since: u64, found: Found },
    /// Loss of events of scheduling.
    SchedulingLost { cpu: u32, lost: u32, time: u64 },
    /// Begin of the window of power.
    PowerBegins { begin: u64, host: Box<InitialHost> },
    /// Names that are forgotten.
    NamesForgotten { kept: Vec<u64> },
    /// Time up to which everything was taken.
    Advance { until: u64 },
    /// Function whose calls come from here on.
    CallDefinition(Box<CallDefinition>),
    /// Call of a function, as [`call_entry`](super::call_entry) reads it.
    Call(Range<usize>),
    /// Event of a kind that a later minor version has.
    Other,
}

impl Event {
    /// Returns the input of a model that it is, with texts of the block's content; `None` if it is no input.
    #[inline]
    pub(super) fn input<'a>(&'a self, content: &'a [u8], with_timelines: bool) -> Option<Input<'a>> {
        Some(match self {
            Self::Record(record) => Input::Record(record),
            Self::SpanAnywhere(span) => Input::SpanAnywhere(span),
            &Self::ThreadMarked { tgid, tid } => Input::ThreadMarked { tgid, tid },
            Self::Track { origin, time, payload } => {
                Input::Track { origin: *origin, time: *time, payload: text(content, payload) }
            }
            Self::AnnotatedBegin { origin, time, payload, name_at } => Input::AnnotatedBegin {
                origin: *origin,
                time: *time,
                payload: text(content, payload),
                name_at: *name_at,
            },
            Self::AppEvent(event) => Input::AppEvent(event),
            &Self::SchedulingBegins { begin } => Input::SchedulingBegins { begin },
            &Self::ThreadWatched { pid, tid, since, found } => {
                Input::ThreadWatched { pid, tid, since, found }
            }
            &Self::SchedulingLost { cpu, lost, time } => Input::SchedulingLost { cpu, lost, time },
            Self::PowerBegins { begin, host } => Input::PowerBegins {
                topology: &host.topology,
                begin: *begin,
                initial: &host.initial,
                with_timelines,
            },
            Self::NamesForgotten { kept } => Input::NamesForgotten { kept },
            &Self::Advance { until } => Input::Advance { until },
            // Nothing is made of calls.
            Self::CallDefinition(_) | Self::Call(_) | Self::Other => return None,
        })
    }
}

fn text<'a>(content: &'a [u8], range: &Range<usize>) -> &'a [u8] {
    content.get(range.clone()).unwrap_or_default()
}

/// Entry that is no entry of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unreadable {
    /// Offset in the content.
    pub(super) at: usize,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the entry at byte {} of a block's content cannot be read", self.at)
    }
}

/// Reader of the events of one block.
#[derive(Debug, Default)]
pub(super) struct EventReader {
    content: Vec<u8>,
    cursor: Cursor,
    number: u64,
    time: u64,
    sites: Vec<Site>,
    /// Place of the site of the last section.
    site: usize,
    /// Names that were defined before the last event and since the one before it.
    names: Vec<(u64, Range<usize>)>,
    /// Texts of all names so far.
    texts: FxHashMap<u64, Range<usize>>,
}

/// Properties that sections have in common.
#[derive(Debug)]
struct Site {
    /// Section without its times.
    span: SpanRecord,
    /// Text of its name, where the block has it.
    name: Option<Range<usize>>,
}

impl EventReader {
    /// Creates a reader of a block's content, whose first event has this number.
    pub(super) fn new(content: Vec<u8>, first: u64) -> Self {
        Self { content, number: first, ..Self::default() }
    }

    /// Returns the content.
    pub(super) fn content(&self) -> &[u8] {
        &self.content
    }

    /// Returns the names that the last event needs first, with their texts.
    pub(super) fn names(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.names.iter().map(|(hash, range)| (*hash, text(&self.content, range)))
    }

    /// Returns the text of a name; `None` where the block has it not so far.
    pub(super) fn text(&self, hash: u64) -> Option<&[u8]> {
        self.texts.get(&hash).map(|range| text(&self.content, range))
    }

    /// Returns the number of the last event.
    #[inline]
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the place of the last section's site among those of the block.
    #[inline]
    pub(super) fn site(&self) -> usize {
        self.site
    }

    /// Returns the text of the last section's name; `None` where the block has it not.
    #[inline]
    pub(super) fn section_name(&self) -> Option<&[u8]> {
        let name = self.sites.get(self.site)?.name.as_ref()?;
        self.content.get(name.clone())
    }

    /// Reads the times of the next event and the place of its site, if it is a section; else nothing is read. Sums of sections
    /// need no more of most, and it is faster than a whole event.
    #[inline]
    pub(super) fn next_times(&mut self) -> Option<(usize, SectionTimes)> {
        let before = (self.cursor, self.number, self.time);
        let times = self.times();
        if times.is_none() {
            (self.cursor, self.number, self.time) = before;
        }
        times
    }

    #[inline]
    fn times(&mut self) -> Option<(usize, SectionTimes)> {
        let head = self.cursor.number(&self.content)?;
        let kind = Kind::from_code(head & ((1 << kind::BITS) - 1));
        if !matches!(kind, Some(Kind::Span | Kind::SpanAnywhere)) {
            return None;
        }
        self.number = self.number.checked_add(head >> kind::BITS)?;
        let site = usize::try_from(self.long()?).ok()?;
        let times = self.section_times()?;
        if site >= self.sites.len() {
            return None;
        }
        self.site = site;
        Some((site, times))
    }

    /// Returns the section of a site with these times.
    pub(super) fn section_at(&self, site: usize, times: SectionTimes) -> Option<SpanRecord> {
        let SectionTimes { begin, end, own, exclusive } = times;
        let span = &self.sites.get(site)?.span;
        Some(SpanRecord { begin, end, own, exclusive, ..*span })
    }

    /// Reads the next event and its number; `None` at the end.
    ///
    /// # Errors
    /// When an entry cannot be read: nothing after it can be.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Event)>, Unreadable> {
        self.names.clear();
        loop {
            let at = self.cursor.offset();
            if at == self.content.len() {
                return Ok(None);
            }
            match self.entry() {
                Some(Entry::Event(event)) => return Ok(Some((self.number, event))),
                Some(Entry::Definition) => {}
                None => return Err(Unreadable { at }),
            }
        }
    }

    fn entry(&mut self) -> Option<Entry> {
        let Self { content, cursor, .. } = self;
        let head = cursor.number(content)?;
        self.number = self.number.checked_add(head >> kind::BITS)?;
        let code = head & ((1 << kind::BITS) - 1);
        let Some(kind) = Kind::from_code(code) else {
            if code < kind::FIRST_WITH_LENGTH {
                return None;
            }
            self.payload()?;
            let is_event = code < kind::FIRST_WITHOUT_NUMBER;
            return Some(if is_event { Entry::Event(Event::Other) } else { Entry::Definition });
        };
        let event = match kind {
            Kind::Site => {
                let span = self.site_span()?;
                let name = self.texts.get(&span.name).cloned();
                self.sites.push(Site { span, name });
                return Some(Entry::Definition);
            }
            Kind::Name => {
                let hash = self.cursor.word(&self.content)?;
                let text = self.payload()?;
                self.texts.entry(hash).or_insert_with(|| text.clone());
                self.names.push((hash, text));
                return Some(Entry::Definition);
            }
            Kind::Span => Event::Record(Record::Span(self.span()?)),
            Kind::SpanAnywhere => Event::SpanAnywhere(self.span()?),
            Kind::Begin => Event::Record(Record::Begin(self.begin()?)),
            Kind::Idle => Event::Record(Record::Idle(self.power(RecordKind::Idle)?)),
            Kind::Frequency => Event::Record(Record::Frequency(self.power(RecordKind::Frequency)?)),
            Kind::Hotplug => Event::Record(Record::Hotplug(self.power(RecordKind::Hotplug)?)),
            Kind::Lost => Event::Record(Record::Lost { cpu: self.small()?, time: self.time()? }),
            Kind::Sched => Event::Record(Record::Sched(self.sched()?)),
            Kind::Fork => Event::Record(Record::Fork(self.process(RecordKind::Fork)?)),
            Kind::Exec => Event::Record(Record::Exec(self.process(RecordKind::Exec)?)),
            Kind::Exit => Event::Record(Record::Exit(self.process(RecordKind::Exit)?)),
            Kind::Loader => Event::Record(Record::Loader(self.process(RecordKind::Loader)?)),
            Kind::TakesPart => Event::Record(Record::TakesPart(self.process(RecordKind::TakesPart)?)),
            Kind::ThreadMarked => Event::ThreadMarked { tgid: self.small()?, tid: self.small()? },
            Kind::Track => {
                Event::Track { origin: self.origin()?, time: self.time()?, payload: self.payload()? }
            }
            Kind::AnnotatedBegin => Event::AnnotatedBegin {
                origin: self.origin()?,
                time: self.time()?,
                payload: self.payload()?,
                name_at: self.small()?.try_into().ok()?,
            },
            Kind::AppEvent => Event::AppEvent(self.app_event()?),
            Kind::SchedulingBegins => Event::SchedulingBegins { begin: self.long()? },
            Kind::ThreadWatched => Event::ThreadWatched {
                pid: self.small()?,
                tid: self.small()?,
                since: self.time()?,
                found: self.found()?,
            },
            Kind::SchedulingLost => {
                Event::SchedulingLost { cpu: self.small()?, lost: self.small()?, time: self.time()? }
            }
            Kind::PowerBegins => {
                let begin = self.long()?;
                let host: Box<InitialHost> =
                    serde_json::from_slice(self.cursor.bytes(&self.content)?).ok()?;
                host.check().ok()?;
                Event::PowerBegins { begin, host }
            }
            Kind::NamesForgotten => {
                let count = self.long()?;
                // Eight bytes each: no more than there are.
                let kept =
                    (0..count).map(|_| self.cursor.word(&self.content)).collect::<Option<Vec<u64>>>()?;
                Event::NamesForgotten { kept }
            }
            Kind::Advance => Event::Advance { until: self.long()? },
            // From here on, one that a later minor version has changed is not understood, and no reason to leave out what
            // follows.
            Kind::CallDefinition => {
                let definition = serde_json::from_slice(self.cursor.bytes(&self.content)?);
                definition.map_or(Event::Other, Event::CallDefinition)
            }
            Kind::Call => Event::Call(self.payload()?),
            Kind::FrequencyLimit => {
                let limit = limit_entry::limit(self.cursor.bytes(&self.content)?);
                limit.map_or(Event::Other, |limit| Event::Record(Record::FrequencyLimit(limit)))
            }
            Kind::Cooling => {
                let cooling = limit_entry::cooling(self.cursor.bytes(&self.content)?);
                cooling.map_or(Event::Other, |cooling| Event::Record(Record::Cooling(cooling)))
            }
            Kind::Rival => {
                let turn = rival_entry::read(self.cursor.bytes(&self.content)?);
                turn.map_or(Event::Other, |turn| Event::Record(Record::Rival(turn)))
            }
        };
        Some(Entry::Event(event))
    }

    fn site_span(&mut self) -> Option<SpanRecord> {
        let (tgid, tid) = (self.small()?, self.small()?);
        let Self { content, cursor, .. } = self;
        let mut byte = || cursor.byte(content);
        let (tag, class, depth, adds, provisional) = (byte()?, byte()?, byte()?, byte()?, byte()?);
        let kind = if provisional == 0 { RecordKind::Span } else { RecordKind::ProvisionalSpan } as u32;
        let (path, name) = (cursor.word(content)?, cursor.word(content)?);
        let adds = Adds::from_bits(adds);
        Some(SpanRecord {
            kind,
            tid,
            tgid,
            tag,
            class,
            depth,
            adds,
            path,
            name,
            begin: 0,
            end: 0,
            own: 0,
            exclusive: 0,
            begin_sequence: 0,
            end_sequence: 0,
        })
    }

    #[inline]
    fn span(&mut self) -> Option<SpanRecord> {
        let site = usize::try_from(self.long()?).ok()?;
        let times = self.section_times()?;
        self.site = site;
        self.section_at(site, times)
    }

    #[inline]
    fn section_times(&mut self) -> Option<SectionTimes> {
        let end = self.time()?;
        let length = self.long()?;
        let mut less = || length.checked_sub(self.cursor.number(&self.content)?);
        let (own, exclusive) = (less()?, less()?);
        Some(SectionTimes { begin: end.checked_sub(length)?, end, own, exclusive })
    }

    fn begin(&mut self) -> Option<BeginRecord> {
        let (tgid, tid) = (self.small()?, self.small()?);
        let label = Label::from_byte(self.cursor.byte(&self.content)?)?;
        let time = self.time()?;
        let name = self.cursor.word(&self.content)?;
        Some(BeginRecord::new(tgid, tid, label, name, time))
    }

    #[inline]
    fn power(&mut self, kind: RecordKind) -> Option<PowerRecord> {
        let (cpu, time) = (self.small()?, self.time()?);
        let (state, lost) = (self.small()?.wrapping_sub(1), self.small()?);
        Some(PowerRecord { kind: kind as u32, cpu, time, state, lost })
    }

    #[inline]
    fn sched(&mut self) -> Option<SchedRecord> {
        let (tid, tgid, cpu, time) = (self.small()?, self.small()?, self.small()?, self.time()?);
        let (change, lost) = (self.small()?, self.small()?);
        Some(SchedRecord { kind: RecordKind::Sched as u32, tid, tgid, cpu, time, change, lost })
    }

    fn process(&mut self, kind: RecordKind) -> Option<ProcessRecord> {
        let (tgid, tid, detail, time) = (self.small()?, self.small()?, self.small()?, self.time()?);
        Some(ProcessRecord { kind: kind as u32, tgid, tid, detail, time })
    }

    fn app_event(&mut self) -> Option<AppEvent> {
        let (change, begun_by, tgid, tid) = (self.small()?, self.small()?, self.small()?, self.small()?);
        let time = self.time()?;
        let begin = time.wrapping_sub(self.cursor.difference(&self.content, 0)?);
        let name = self.cursor.word(&self.content)?;
        Some(AppEvent { change, begun_by, tgid, tid, time, begin, name })
    }

    fn origin(&mut self) -> Option<Origin> {
        let (pid, tid, depth) = (self.small()?, self.small()?, self.small()?);
        Some(Origin { pid, tid, depth: depth.try_into().ok()?, sequence: 0 })
    }

    fn payload(&mut self) -> Option<Range<usize>> {
        let length = self.cursor.bytes(&self.content)?.len();
        let end = self.cursor.offset();
        Some(end - length..end)
    }

    fn found(&mut self) -> Option<Found> {
        match self.cursor.byte(&self.content)? {
            0 => Some(Found::Awake),
            1 => Some(Found::Sleeping),
            2 => Some(Found::Uninterruptible),
            _ => None,
        }
    }

    #[inline]
    fn time(&mut self) -> Option<u64> {
        self.time = self.cursor.difference(&self.content, self.time)?;
        Some(self.time)
    }

    #[inline]
    fn long(&mut self) -> Option<u64> {
        self.cursor.number(&self.content)
    }

    #[inline]
    fn small(&mut self) -> Option<u32> {
        self.cursor.small(&self.content)
    }
}

enum Entry {
    Event(Event),
    Definition,
}

#[cfg(test)]
mod tests;
