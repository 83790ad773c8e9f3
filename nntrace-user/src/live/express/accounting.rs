//! Accounting of the marks of threads with lanes: what the kernel programs do with those of others.

use nntrace_common::{
    app_events::{ExecutionCount, ExecutionKey},
    diagnostic::DiagnosticKind,
    hidl_calls::EXECUTION_CREATE,
    layer::{Layer, Phase, Tag},
    mark::{self, Kind},
    record::{Record, SpanRecord, Total, TotalKey},
    section_begin::ParsedBegin,
    stack::{Closed, Stack},
};
use rustc_hash::FxHashMap;

use super::{lane_totals::LaneTotals, ring::Site};
use crate::model::{
    Model,
    begin_parsing::Begins,
    causality::Origin,
    diagnostics::DiagnosticCounts,
    thread_marks::{self, ThreadMarks},
};

/// Threads with executions at most.
const MOST_EXECUTIONS: usize = 65_536;

const EXECUTION: Tag = Tag::new(Layer::Application, Phase::Execution);

/// Sums over all threads with lanes.
pub(super) struct Sums {
    pub(super) totals: LaneTotals,
    pub(super) executions: FxHashMap<ExecutionKey, ExecutionCount>,
    /// Executions and totals without room.
    pub(super) left_out: u64,
    begins: Begins,
    create_name: u64,
    emits_begins: bool,
    slot: SlotTime,
}

/// Number of the last change of the application's phases, and the times between which it is that.
#[derive(Clone, Copy, Default)]
struct SlotTime {
    slot: u16,
    from: u64,
    until: u64,
}

impl Sums {
    /// Creates the sums, for a run that needs all begins or does not.
    pub(super) fn new(emits_begins: bool) -> Self {
        Self {
            totals: LaneTotals::default(),
            executions: FxHashMap::default(),
            left_out: 0,
            begins: Begins::default(),
            create_name: mark::name_hash(EXECUTION_CREATE, 0),
            emits_begins,
            slot: SlotTime::default(),
        }
    }

    /// Forgets the parsed begins, as their names have been forgotten.
    pub(super) fn read_names_again(&mut self) {
        self.begins = Begins::default();
    }
}

/// Mark of a thread with lanes.
pub(super) enum Mark<'a> {
    /// A section begins at a site.
    Site(&'a Site),
    /// A section begins, by the kernel programs' parsing.
    Forwarded(&'a ParsedBegin),
    /// The innermost section ends.
    End,
    /// A mark by its text.
    Text(&'a [u8]),
}

/// One pass of accounting: the sums, the model, and where records in order of time go.
pub(super) struct Accounting<'a> {
    sums: &'a mut Sums,
    model: &'a mut Model,
    records: &'a mut dyn FnMut(Record),
    pub(super) diagnostics: &'a mut DiagnosticCounts,
}

impl<'a> Accounting<'a> {
    /// Creates a pass. Changes of the application's phases may have come since the last one.
    pub(super) fn new(
        sums: &'a mut Sums,
        diagnostics: &'a mut DiagnosticCounts,
        model: &'a mut Model,
        records: &'a mut dyn FnMut(Record),
    ) -> Self {
        sums.slot = SlotTime::default();
        Self { sums, model, records, diagnostics }
    }

    /// Parses the text of a site. Its tag may be unknown.
    pub(super) fn site(&mut self, text: &[u8]) -> Site {
        let payload = [b"B|0|", text].concat().into_boxed_slice();
        let begin = self.sums.begins.read(&payload, &mut self.model.marks.names);
        Site { begin, payload }
    }

    /// Returns the section that a mark begins; `None` if it begins none.
    pub(super) fn section(&mut self, mark: &Mark<'_>) -> Option<ParsedBegin> {
        match mark {
            Mark::Site(site) => Some(site.begin),
            Mark::Forwarded(begin) => Some(**begin),
            Mark::Text(text) if mark::kind(*text) == Some(Kind::Begin) => {
                Some(self.sums.begins.read(text, &mut self.model.marks.names))
            }
            Mark::End | Mark::Text(_) => None,
        }
    }

    /// Accounts a mark of a thread at `now` (ns).
    #[inline]
    pub(super) fn mark(&mut self, ids: (u32, u32), marks: &mut ThreadMarks, now: u64, mark: &Mark<'_>) {
        match mark {
            Mark::Site(site) => self.begin(ids, marks, now, &site.begin, &site.payload),
            Mark::Forwarded(begin) => {
                let name = self.sums.emits_begins.then(|| self.model.marks.names.text(begin.name));
                self.begin(ids, marks, now, begin, name.unwrap_or_default().as_bytes());
            }
            Mark::End => self.end(ids, marks, now),
            Mark::Text(text) => self.text(ids, marks, now, text),
        }
    }

    fn text(&mut self, ids: (u32, u32), marks: &mut ThreadMarks, now: u64, text: &[u8]) {
        match mark::kind(text) {
            Some(Kind::Begin) => {
                let begin = self.sums.begins.read(text, &mut self.model.marks.names);
                self.begin(ids, marks, now, &begin, text);
            }
            Some(Kind::End) => self.end(ids, marks, now),
            Some(_) => {
                let origin = Origin { pid: ids.0, tid: ids.1, depth: marks.stack().innermost(), sequence: 0 };
                self.model.track(origin, now, text);
            }
            None => {}
        }
    }

    #[inline]
    fn begin(
        &mut self,
        ids: (u32, u32),
        marks: &mut ThreadMarks,
        now: u64,
        begin: &ParsedBegin,
        payload: &[u8],
    ) {
        if marks.join(begin) {
            self.model.mark_thread(ids.0, ids.1);
        }
        if (begin.has_attributes || self.sums.emits_begins)
            && begin.label.is_tagged()
            && let Some(depth) = marks.stack().depth_of_next(begin.prefix)
        {
            let origin = Origin { pid: ids.0, tid: ids.1, depth, sequence: 0 };
            self.model.annotated_begin(origin, now, payload, begin.name_at);
        }
        marks.set_slot(self.slot(now));
        let ids = (ids.0, ids.1, marks.is_marked());
        let Self { sums, model, records, .. } = self;
        let found = marks.begin(now, begin, |stack, closed| {
            sums.store_switched(ids, stack, closed, model, records);
        });
        if !found.is_empty() && !begin.nests_anywhere {
            let name = payload.is_empty().then(|| self.model.marks.names.text(begin.name));
            let example = name.as_ref().map_or(payload, |name| name.as_bytes());
            marks.diagnose(found, now, ids.1, example, self.diagnostics);
        }
    }

    #[inline]
    fn end(&mut self, (tgid, tid): (u32, u32), marks: &mut ThreadMarks, now: u64) {
        let ids = (tgid, tid, marks.is_marked());
        let Self { sums, model, records, .. } = self;
        let found = marks.end(now, |stack, closed| sums.store(ids, stack, closed, model, records));
        marks.diagnose(found, now, tid, b"E", self.diagnostics);
    }

    /// Returns the number of the last change of the application's phases at a time.
    #[inline]
    fn slot(&mut self, now: u64) -> u16 {
        let SlotTime { slot, from, until } = self.sums.slot;
        if (from..until).contains(&now) {
            return slot;
        }
        let (slot, from, until) = self.model.marks.slots.at(now);
        self.sums.slot = SlotTime { slot, from, until };
        slot
    }
}

impl Sums {
    /// Adds a closed frame to the totals and to the sections, or creates its record where its place among those of other
    /// threads matters.
    #[inline(always)]
    fn store(
        &mut self,
        ids: (u32, u32, bool),
        stack: &Stack,
        closed: &Closed,
        model: &mut Model,
        records: &mut dyn FnMut(Record),
    ) {
        let (tgid, tid, is_marked) = ids;
        let slot = u32::from(closed.slot);
        let counted = if is_marked { 0 } else { tid };
        let key = TotalKey { path: closed.path, tgid, tid: counted, slot, reserved: 0 };
        let own = if closed.adds.to_total() { closed.own } else { 0 };
        let one = Total { count: 1, own, exclusive: closed.exclusive };
        if let Some(total) = self.totals.get_mut(&key) {
            total.add(&one);
        } else {
            thread_marks::know_path(stack, closed, &mut model.marks.paths);
            self.left_out += u64::from(!self.totals.insert(key, one));
        }
        self.count_execution(tgid, tid, closed);
        let span = SpanRecord::new(tgid, tid, is_marked, closed);
        if !model.span_anywhere(&span) {
            records(Record::Span(span));
        }
    }

    /// Does the same for a frame that a switch closes: those are few.
    #[cold]
    fn store_switched(
        &mut self,
        ids: (u32, u32, bool),
        stack: &Stack,
        closed: &Closed,
        model: &mut Model,
        records: &mut dyn FnMut(Record),
    ) {
        self.store(ids, stack, closed, model, records);
    }

    /// Counts an execution, in one of the two ways, or both.
    #[inline]
    fn count_execution(&mut self, tgid: u32, tid: u32, closed: &Closed) {
        let creates = closed.name == self.create_name;
        let executes = closed.tag == EXECUTION;
        if creates || executes {
            let key = ExecutionKey { tgid, tid, slot: u32::from(closed.slot) };
            if self.executions.len() >= MOST_EXECUTIONS && !self.executions.contains_key(&key) {
                self.left_out += 1;
                return;
            }
            let count = self.executions.entry(key).or_default();
            count.creates += u64::from(creates);
            count.executions += u64::from(executes);
        }
    }

    /// Adds what had no room to diagnostics.
    pub(super) fn add_left_out(&self, diagnostics: &mut DiagnosticCounts) {
        if self.left_out > 0 {
            diagnostics.add(DiagnosticKind::TableFull, 0, 0, b"");
            diagnostics.add_more(DiagnosticKind::TableFull, self.left_out - 1);
        }
    }
}
