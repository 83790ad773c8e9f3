//! The express lane: rings that threads of the targets write their marks to, and the accounting of these threads, which
//! the kernel programs hand over. See `docs/express.md`.
//!
//! ```text
//! kernel/lanes (semaphore) ─► offer ─► ring ─┐
//! probed marks of the same thread ───────────┴► lane_thread, in order of time ─► accounting ─► totals, records
//! ```

mod accounting;
mod lane_thread;
mod lane_totals;
mod left_out;
pub(super) mod offers;
mod open_calls;
mod ring;
mod room;
mod tick_clock;

use std::{collections::BTreeMap, fs::File, io, time::Duration};

use nntrace_common::{
    app_events::{ExecutionCount, ExecutionKey},
    diagnostic::{DiagnosticCount, DiagnosticKind},
    express::{DOORBELL, FILES_UNANSWERED, SECTIONS_LEFT_OUT, UNIT, WORDS_REFUSED},
    mark::Prefix,
    record::{
        ForwardedRecord, Forwarding, HandoverRecord, LaneRecord, LostRecords, ProcessRecord, Record,
        RecordKind, TrackRecord,
    },
    section_begin::ParsedBegin,
};
use rustc_hash::FxHashMap;

use self::{
    accounting::{Accounting, Sums},
    lane_thread::{Forwarded, ForwardedMark, Gap, LaneThread, LastEvent, MarkCounts},
    left_out::LeftOut,
    ring::{LaneError, Ring},
    room::Grants,
    tick_clock::{Line, TickClock},
};
use super::clock::{self, nanoseconds};
use crate::model::{
    Model, causality::Questions, diagnostics::DiagnosticCounts, limits::Limits, marks::OpenSection,
    plurals::one_or_many, run_facts::ExpressUse, stacks::Totals, thread_marks::ThreadMarks,
};

/// Bytes of lanes that are mapped at most.
const MOST_MAPPED: usize = 256 << 20;
/// Marks of all threads that are accounted before their records are handed out, about.
const BATCH: u64 = 4_096;
/// Parts that the time of one drain is split into at most.
const MOST_PARTS: u64 = 64;
/// Time for which an event waits for the hand-over of its thread, which may be in another CPU's ring.
const PATIENCE: Duration = Duration::from_secs(1);

/// Use of the express lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpressLane {
    /// Where it is possible.
    #[default]
    Auto,
    /// Where it is possible; where it is not, that is noted.
    Wanted,
    /// Never.
    Never,
}

/// Event of a thread with lanes, in the order of the rings that it came from.
#[derive(Debug)]
pub(crate) struct ExpressEvent {
    tgid: u32,
    tid: u32,
    time: u64,
    kind: EventKind,
}

#[derive(Debug)]
enum EventKind {
    Handover(Box<HandoverRecord>),
    Lane(LaneRecord),
    Forwarded(Forwarded),
    Lost(Gap),
    Ends(LastEvent),
}

impl ExpressEvent {
    /// Creates the event of a hand-over.
    #[must_use]
    pub(crate) fn handover(record: Box<HandoverRecord>) -> Self {
        Self { tgid: record.tgid, tid: record.tid, time: record.time, kind: EventKind::Handover(record) }
    }

    /// Creates the event of an offered lane, or a doorbell.
    #[must_use]
    pub(crate) fn lane(record: LaneRecord) -> Self {
        Self { tgid: record.tgid, tid: record.tid, time: record.time, kind: EventKind::Lane(record) }
    }

    /// Creates the event of a forwarded begin or end, or of the loss of some; `None` if its prefix is none.
    #[must_use]
    pub(crate) fn forwarded(record: &ForwardedRecord) -> Option<Self> {
        let ForwardedRecord { tid, tgid, number, time, name, label, .. } = *record;
        if record.kind == RecordKind::ForwardedLoss as u32 {
            let lost = LostRecords { first: number, count: u32::try_from(name).ok()? };
            return Some(Self { tgid, tid, time, kind: EventKind::Lost(Gap::new(time, lost)?) });
        }
        let mark = if record.kind == RecordKind::ForwardedBegin as u32 {
            ForwardedMark::Begin(ParsedBegin {
                prefix: Prefix::from_code(record.prefix)?,
                label,
                name,
                is_marked: record.is_marked != 0,
                nests_anywhere: record.nests_anywhere != 0,
                ..ParsedBegin::default()
            })
        } else {
            ForwardedMark::End
        };
        Some(Self { tgid, tid, time, kind: EventKind::Forwarded(Forwarded { time, number, mark }) })
    }

    /// Creates the event of a forwarded text; `None` if its length is none of a text.
    #[must_use]
    pub(crate) fn text(record: &TrackRecord) -> Option<Self> {
        let TrackRecord { tid, tgid, time, depth: number, .. } = *record;
        let text = record.payload.get(..record.len as usize)?;
        let mark = ForwardedMark::Text(text.into());
        Some(Self { tgid, tid, time, kind: EventKind::Forwarded(Forwarded { time, number, mark }) })
    }

    /// Creates the event of a thread that ends, or whose program is replaced; `None` for any other.
    #[must_use]
    pub(crate) fn last(record: &Record) -> Option<Self> {
        let (event, number, is_end) = match record {
            Record::Exit(event) => (event, (event.detail != 0).then_some(event.detail), true),
            Record::Exec(event) => (event, None, false),
            _ => return None,
        };
        let ProcessRecord { tgid, tid, time, .. } = *event;
        Some(Self { tgid, tid, time, kind: EventKind::Ends(LastEvent { time, number, is_end }) })
    }
}

/// Threads with lanes.
pub(crate) struct Express {
    threads: FxHashMap<u32, LaneThread>,
    sums: Sums,
    diagnostics: DiagnosticCounts,
    counts: MarkCounts,
    /// Events whose threads were not handed over yet, as far as is known.
    waiting: Vec<ExpressEvent>,
    handed_over: u64,
    refused: BTreeMap<String, u64>,
    left_out: LeftOut,
    grants: Grants,
    clock: TickClock,
    /// Conversion of ticks at the last look, where there is one.
    line: Option<Line>,
    /// Bytes that waited in lanes at the last look.
    bytes: u64,
    /// End of the last plan, ns.
    planned: u64,
    /// Marks of these threads that were lost when their states were last read.
    lost: u64,
    /// Whether there are threads whose states were not read yet.
    is_unread: bool,
}

impl Express {
    /// Creates the state without any thread, for a run that needs all begins or does not.
    #[must_use]
    pub(crate) fn new(emits_begins: bool) -> Self {
        Self {
            threads: FxHashMap::default(),
            sums: Sums::new(emits_begins),
            diagnostics: DiagnosticCounts::default(),
            counts: MarkCounts::default(),
            waiting: Vec::new(),
            handed_over: 0,
            refused: BTreeMap::new(),
            left_out: LeftOut::default(),
            grants: Grants::default(),
            clock: TickClock::new(),
            line: None,
            bytes: 0,
            planned: 0,
            lost: 0,
            is_unread: false,
        }
    }

    /// Takes the events of one drain of the rings.
    pub(crate) fn take(
        &mut self,
        events: Vec<ExpressEvent>,
        model: &mut Model,
        records: &mut dyn FnMut(Record),
    ) {
        let now = clock::now();
        let mut events: Vec<_> = std::mem::take(&mut self.waiting).into_iter().chain(events).collect();
        // Stable: a hand-over and its offer have one time.
        events.sort_by_key(|event| event.time);
        for event in events {
            self.on_event(event, now, model, records);
        }
        for thread in self.threads.values_mut() {
            thread.renew(now);
        }
        self.grants.review(now, &self.threads);
    }

    fn on_event(
        &mut self,
        event: ExpressEvent,
        now: u64,
        model: &mut Model,
        records: &mut dyn FnMut(Record),
    ) {
        let ExpressEvent { tgid, tid, time, kind } = event;
        if let EventKind::Handover(record) = kind {
            let HandoverRecord { is_marked, held, stack, .. } = &*record;
            // A former thread of this id has ended.
            self.finish_thread(tid, model, records);
            self.handed_over += 1;
            self.is_unread = true;
            let marks = ThreadMarks::new(stack, *is_marked != 0, tid, held);
            self.threads.insert(tid, LaneThread::new(tgid, tid, marks, time));
            return;
        }
        match kind {
            EventKind::Lane(LaneRecord { file: SECTIONS_LEFT_OUT, key, .. }) => {
                return self.left_out.sections(tgid, key);
            }
            EventKind::Lane(LaneRecord { file: WORDS_REFUSED, key, .. }) => {
                return self.left_out.words(tgid, key);
            }
            EventKind::Lane(LaneRecord { file: FILES_UNANSWERED, key, .. }) => {
                return self.left_out.files(tgid, key);
            }
            _ => {}
        }
        let Some(thread) = self.threads.get_mut(&tid) else {
            let is_last = matches!(kind, EventKind::Ends(LastEvent { number: None, .. }));
            if is_last {
                return;
            }
            if time.saturating_add(nanoseconds(PATIENCE)) > now {
                self.waiting.push(ExpressEvent { tgid, tid, time, kind });
            }
            return;
        };
        match kind {
            EventKind::Lane(LaneRecord { file: DOORBELL, .. }) | EventKind::Handover(_) => {}
            // A thread offers its ring again until it sees that the ring is read.
            EventKind::Lane(LaneRecord { key, .. }) if thread.rings().iter().any(|ring| ring.key == key) => {}
            EventKind::Lane(LaneRecord { file, key, .. }) => self.accept(tgid, tid, file, key, now),
            EventKind::Forwarded(mark) => thread.forward(mark),
            EventKind::Lost(gap) => thread.note_gap(gap),
            EventKind::Ends(event) => thread.end_with(event),
        }
    }

    fn accept(&mut self, tgid: u32, tid: u32, file: i64, key: u64, now: u64) {
        let mapped: usize = self.threads.values().flat_map(LaneThread::rings).map(Ring::mapped_bytes).sum();
        let accepted = if mapped >= MOST_MAPPED {
            Err(LaneError::NotALane("lanes take too much memory already"))
        } else {
            Ring::accept(tgid, file, key, now, self.line)
        };
        match (accepted, self.threads.get_mut(&tid)) {
            (Ok(ring), Some(thread)) => {
                log::debug!("thread {tid} of process {tgid} has a lane of {} bytes", ring.mapped_bytes());
                thread.add_ring(ring);
                self.grants.grant(tgid, &self.threads);
                if let Some(thread) = self.threads.get(&tid) {
                    thread.promise();
                }
            }
            // With the process its memory is gone.
            (Err(_), _) if offers::has_ended(tgid) => {}
            // Its marks take the probe until the thread offers one again, if it is still there.
            (Ok(_), None) | (Err(LaneError::Gone), _) => {}
            (Err(error), _) => {
                log::debug!("the lane of thread {tid} of process {tgid} is not read: {error}");
                *self.refused.entry(error.to_string()).or_default() += 1;
            }
        }
    }

    /// Looks for new marks in lanes. To be called before the kernel's rings are read; see [`LaneThread::account`].
    pub(crate) fn look(&mut self) {
        self.bytes = self.threads.values_mut().map(LaneThread::look).sum();
        // After the looks, so that all they have seen was written before the reading of the clock.
        self.line = self.clock.update();
        self.threads.values_mut().for_each(|thread| thread.convert_by(self.line));
    }

    /// Confirms the last look: all that was in the kernel's rings then is read.
    pub(crate) fn confirm_look(&mut self) {
        self.threads.values_mut().for_each(LaneThread::confirm_look);
    }

    /// Splits the time up to `until` (ns) into parts of some [`BATCH`] marks each; returns the ends of the parts. Their records
    /// are handed out part by part, and so take bounded memory.
    pub(crate) fn plan(&mut self, until: u64) -> impl Iterator<Item = u64> + use<> {
        let parts = (self.bytes / UNIT as u64 / BATCH + 1).min(MOST_PARTS);
        let known_until = until.min(clock::now());
        let begin = std::mem::replace(&mut self.planned, known_until).min(known_until);
        let length = (known_until - begin) / parts;
        (1..parts).map(move |part| begin + length * part).chain([until])
    }

    /// Accounts the marks of all threads up to `until` (ns), as far as none can be missing, or all of them. Their records go to
    /// `records`.
    pub(crate) fn account(
        &mut self,
        until: u64,
        all: bool,
        model: &mut Model,
        records: &mut dyn FnMut(Record),
    ) {
        let Self { threads, sums, diagnostics, counts, .. } = self;
        let mut accounting = Accounting::new(sums, diagnostics, model, records);
        for thread in threads.values_mut() {
            thread.account(until, all, counts, &mut accounting);
        }
        for (_, thread) in threads.extract_if(|_, thread| thread.is_done()) {
            thread.finish(&mut accounting);
        }
    }

    /// Ends a thread, if it is known: another one has its id.
    fn finish_thread(&mut self, tid: u32, model: &mut Model, records: &mut dyn FnMut(Record)) {
        let Some(mut thread) = self.threads.remove(&tid) else { return };
        let Self { sums, diagnostics, counts, .. } = self;
        let mut accounting = Accounting::new(sums, diagnostics, model, records);
        thread.account(u64::MAX, true, counts, &mut accounting);
        thread.finish(&mut accounting);
    }

    /// Takes all leases back, at the end of the window.
    pub(crate) fn release(&mut self) {
        self.threads.values_mut().for_each(LaneThread::release);
    }

    /// Notes the marks that threads have lost, by their states, if the kernel programs' count of them has changed.
    pub(crate) fn note_lost(&mut self, lost: u64, forwarding: impl Fn(u32) -> Option<Forwarding>) {
        if std::mem::replace(&mut self.lost, lost) == lost && (lost == 0 || !self.is_unread) {
            return;
        }
        self.is_unread = false;
        for (tid, thread) in &mut self.threads {
            if let Some(state) = forwarding(*tid)
                && let Some(gap) = Gap::new(state.lost_from, state.lost)
            {
                thread.note_gap(gap);
            }
        }
    }

    /// Whether any thread is accounted here.
    #[must_use]
    pub(crate) fn is_used(&self) -> bool {
        !self.threads.is_empty()
    }

    /// Compares what came of the threads with the numbers, in their states, that their next forwarded records would have, at the
    /// end of the window. A thread without a state has ended.
    pub(crate) fn check_numbers(&mut self, forwarding: impl Fn(u32) -> Option<Forwarding>) {
        for (tid, thread) in &mut self.threads {
            match forwarding(*tid) {
                Some(state) => thread.lose_until(state.next),
                None => thread.lose_end(),
            }
        }
    }

    /// Returns the sections that are open.
    pub(crate) fn open(&self) -> impl Iterator<Item = OpenSection> {
        self.threads.values().flat_map(|thread| thread.marks.open((thread.tgid, thread.tid), |_| 0))
    }

    /// Returns the names that are needed: of sites, and of open sections.
    pub(crate) fn names(&self) -> Vec<u64> {
        let sites = self.threads.values().flat_map(LaneThread::rings).flat_map(Ring::names);
        sites.chain(self.open().map(|open| open.name)).collect()
    }

    /// Forgets the parsed begins, as their names have been forgotten.
    pub(crate) fn read_names_again(&mut self) {
        self.sums.read_names_again();
    }

    /// Adds the totals to those of the kernel programs.
    pub(crate) fn add_totals(&self, totals: &mut Totals) {
        for (key, total) in self.sums.totals.iter() {
            totals.entry(*key).or_default().add(total);
        }
    }

    /// Adds the executions to those of the kernel programs.
    pub(crate) fn add_executions(&self, executions: &mut Vec<(ExecutionKey, ExecutionCount)>) {
        executions.extend(self.sums.executions.iter().map(|(key, count)| (*key, *count)));
    }

    /// Adds the diagnostics to those of the kernel programs.
    pub(crate) fn add_diagnostics(&self, all: &mut Vec<(DiagnosticKind, DiagnosticCount)>) {
        let mut own = DiagnosticCounts::default();
        own.merge(&self.diagnostics);
        for thread in self.threads.values() {
            thread.marks.release_held(&mut own);
        }
        self.sums.add_left_out(&mut own);
        for (kind, count) in std::mem::take(all) {
            own.add_counted(kind, &count);
        }
        *all = own.counts();
    }

    /// Returns the number of marks that came by lanes.
    #[must_use]
    pub(crate) fn marks_by_lane(&self) -> u64 {
        self.counts.by_lane
    }

    /// Returns the use that was made of lanes; `None` if there was none. `lost` is the kernel programs' count of marks that found
    /// no room in a ring.
    #[must_use]
    pub(crate) fn facts(&self, lost: u64) -> Option<ExpressUse> {
        (self.handed_over > 0 || self.left_out.marks() > 0).then_some(ExpressUse {
            threads: self.handed_over,
            marks: self.counts.by_lane,
            probed: self.counts.by_probe,
            lost: lost.saturating_add(self.left_out.marks()),
            damaged: self.counts.broken,
        })
    }

    /// Returns notes on lanes that were offered and not read.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        let refused = self.refused.iter().map(|(reason, count)| {
            format!(
                "{count} {} not read, whose marks take the probe instead: {reason}",
                one_or_many(*count, "lane that a thread offered is", "lanes that threads offered are")
            )
        });
        refused.chain(self.left_out.notes())
    }
}

/// Accounts all marks in a lane as those of one thread, with causes or without: for tests of what a program may write there.
///
/// # Errors
/// When the file has not the form of a lane with this key.
pub fn account_lane(file: &File, key: u64, with_causes: bool) -> io::Result<ExpressUse> {
    let ring = Ring::map(file, key).map_err(io::Error::other)?;
    let mut model = Model::new(&Limits::default(), Questions::default(), None);
    let mut express = Express::new(with_causes);
    let mut thread = LaneThread::new(1, 1, ThreadMarks::default(), 0);
    thread.add_ring(ring);
    thread.promise();
    express.threads.insert(1, thread);
    express.look();
    express.confirm_look();
    express.account(u64::MAX, true, &mut model, &mut |_| ());
    let MarkCounts { by_lane, by_probe, broken } = express.counts;
    Ok(ExpressUse { threads: 1, marks: by_lane, probed: by_probe, lost: 0, damaged: broken })
}

#[cfg(test)]
mod tests;
