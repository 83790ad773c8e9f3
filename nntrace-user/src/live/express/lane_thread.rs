//! One thread whose marks we account: its lanes, and its marks that still come by a probe, as one sequence in order
//! of time.

use std::collections::VecDeque;

use nntrace_common::{
    diagnostic::DiagnosticKind,
    express::{Head, Kind},
    record::{LostRecords, after_forwarded},
    section_begin::ParsedBegin,
};

use super::{
    accounting::{Accounting, Mark},
    open_calls::{HookedSections, OpenCalls},
    ring::Ring,
    tick_clock::Line,
};
use crate::model::thread_marks::ThreadMarks;

/// Mark that came by a probe, or the end of the thread.
#[derive(Debug)]
pub(super) struct Forwarded {
    /// Time, ns.
    pub(super) time: u64,
    /// Number among those of the thread.
    pub(super) number: u32,
    /// The mark.
    pub(super) mark: ForwardedMark,
}

/// Kind of a [`Forwarded`] mark.
#[derive(Debug)]
pub(super) enum ForwardedMark {
    /// A section begins.
    Begin(ParsedBegin),
    /// The innermost section ends.
    End,
    /// A mark by its text.
    Text(Box<[u8]>),
}

/// Last event of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastEvent {
    /// Time, ns.
    pub(super) time: u64,
    /// Number that the next forwarded record would have had, if that is known.
    pub(super) number: Option<u32>,
    /// Whether sections that are open then are an error of the program: not at an exec.
    pub(super) is_end: bool,
}

/// Marks by probes that are lost, one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    /// Time of the first, ns.
    pub(super) time: u64,
    /// Number of the first.
    pub(super) number: u32,
    /// Number of the mark after the last.
    pub(super) next: u32,
}

impl Gap {
    /// Creates the gap of records that are lost from a time (ns) on; `None` if there are none.
    pub(super) fn new(time: u64, lost: LostRecords) -> Option<Self> {
        (lost.count != 0).then_some(Self { time, number: lost.first, next: lost.next() })
    }
}

/// Whether a number of a forwarded record comes before another one.
fn is_before(number: u32, other: u32) -> bool {
    number.wrapping_sub(other).cast_signed() < 0
}

/// Returns the later of two numbers of forwarded records.
fn later(number: u32, other: u32) -> u32 {
    if is_before(number, other) { other } else { number }
}

/// Newest of what has come of a thread by probes.
#[derive(Clone, Copy, Debug, Default)]
struct Newest {
    /// Number of the newest forwarded record.
    number: u32,
    /// Whether the last event is known.
    is_end: bool,
}

/// Counts of the marks of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MarkCounts {
    /// Marks by lanes.
    pub(super) by_lane: u64,
    /// Marks by probes since the hand-over.
    pub(super) by_probe: u64,
    /// Lanes that were damaged.
    pub(super) broken: u64,
}

/// Thread whose marks we account.
pub(super) struct LaneThread {
    pub(super) tgid: u32,
    pub(super) tid: u32,
    pub(super) marks: ThreadMarks,
    /// Time of the hand-over, ns.
    since: u64,
    rings: Vec<Ring>,
    forwarded: VecDeque<Forwarded>,
    /// Number of the next forwarded record.
    expected: u32,
    /// Losses that are not accounted yet.
    gaps: VecDeque<Gap>,
    /// Time of the last mark, ns.
    last: u64,
    /// Sections that are open, and hooked calls.
    hooked: HookedSections,
    /// Newest of what is known at the last look.
    looked_at: Newest,
    /// Newest of what was known at the last look that was confirmed.
    settled: Newest,
    /// Last event, once it is known.
    ends: Option<LastEvent>,
    /// Whether all that came by probes before the last event is accounted.
    is_over: bool,
}

impl LaneThread {
    /// Creates the state of a thread that was handed over at `time` (ns).
    pub(super) fn new(tgid: u32, tid: u32, marks: ThreadMarks, time: u64) -> Self {
        Self {
            tgid,
            tid,
            marks,
            since: time,
            rings: Vec::new(),
            forwarded: VecDeque::new(),
            expected: after_forwarded(0),
            gaps: VecDeque::new(),
            last: time,
            hooked: HookedSections::default(),
            looked_at: Newest::default(),
            settled: Newest::default(),
            ends: None,
            is_over: false,
        }
    }

    /// Adds a lane, which is used from the [promise](LaneThread::promise) on.
    pub(super) fn add_ring(&mut self, ring: Ring) {
        self.rings.push(ring);
        // Before it is used.
        self.distinguish();
    }

    /// Promises to read the lane that was added last.
    pub(super) fn promise(&self) {
        if let Some(ring) = self.rings.last() {
            ring.promise();
        }
    }

    /// Demands times of which no two are the same where marks of several lanes have to be put in order.
    fn distinguish(&self) {
        let several = self.rings.iter().filter(|ring| !ring.is_closed()).count() > 1;
        self.rings.iter().for_each(|ring| ring.distinguish(several));
    }

    /// Returns the lanes.
    pub(super) fn rings(&self) -> &[Ring] {
        &self.rings
    }

    /// Adds a mark that came by a probe. Those of several CPUs do not come in order.
    pub(super) fn forward(&mut self, mark: Forwarded) {
        let at = self.forwarded.iter().rposition(|other| is_before(other.number, mark.number));
        let at = at.map_or(0, |at| at + 1);
        self.forwarded.insert(at, mark);
    }

    /// Sets the last event. One from before the hand-over is another one's, or its program's before it was replaced: it may
    /// come late, as it may be in the ring of another CPU.
    pub(super) fn end_with(&mut self, event: LastEvent) {
        self.ends = self.ends.or(Some(event).filter(|event| event.time >= self.since));
    }

    /// Whether the thread has ended, and all that it did is accounted.
    pub(super) fn is_done(&self) -> bool {
        self.is_over && self.rings.iter().all(Ring::is_empty)
    }

    /// Looks for new marks in lanes: what is there now was written after all marks by probes that are in the kernel's rings
    /// now. Returns the bytes that wait.
    pub(super) fn look(&mut self) -> u64 {
        let read = self.forwarded.back().map_or(0, |mark| mark.number);
        let end = self.ends.and_then(|event| event.number).unwrap_or(self.expected);
        self.looked_at =
            Newest { number: later(read, later(end, self.expected)), is_end: self.ends.is_some() };
        self.rings.iter_mut().map(Ring::look).sum()
    }

    /// Converts ticks by this line from now on.
    pub(super) fn convert_by(&mut self, line: Option<Line>) {
        self.rings.iter_mut().for_each(|ring| ring.convert_by(line));
    }

    /// Confirms the last look: all that was in the kernel's rings then is read. What is missing before what was known then is
    /// lost.
    pub(super) fn confirm_look(&mut self) {
        self.settled = self.looked_at;
        self.rings.iter_mut().for_each(Ring::confirm_look);
    }

    /// Renews the leases. A lane whose lease has run out is read to its end.
    pub(super) fn renew(&mut self, now: u64) {
        for ring in &mut self.rings {
            ring.renew(now);
        }
    }

    /// Takes the leases back: whatever is written from now on is not read.
    pub(super) fn release(&mut self) {
        self.rings.iter_mut().for_each(Ring::release);
    }

    /// Accounts all marks up to `until` (ns), in order of time, as far as it is known that none is missing before them, or
    /// all if none can come any more.
    ///
    /// A thread does one thing after the other. So before a mark that a confirmed [`LaneThread::look`] has seen in a lane, all
    /// marks by probes were in the kernel's rings, which were read afterwards; and before a mark by a probe, all
    /// those in lanes are there by now.
    pub(super) fn account(
        &mut self,
        until: u64,
        all: bool,
        counts: &mut MarkCounts,
        accounting: &mut Accounting<'_>,
    ) {
        self.rings.iter_mut().for_each(Ring::refresh);
        loop {
            let Some((time, number)) = self.next_by_probe() else {
                self.account_rings(until, self.is_over, counts, accounting);
                break;
            };
            let is_settled = match number {
                Some(number) => !is_before(self.settled.number, number),
                None => self.settled.is_end,
            };
            let is_next = number == Some(self.expected) || is_settled || all;
            self.account_rings(until.min(time), is_next, counts, accounting);
            // Whatever is missing before a mark that was seen in a lane is lost.
            if time > until || !(is_next || self.has_seen_mark()) {
                break;
            }
            self.account_by_probe(counts, accounting);
        }
        self.rings.iter().for_each(Ring::publish);
        self.drop_rings(counts);
    }

    /// Returns the time, and the number if it is known, of the next mark by a probe that is there, or known to be lost; or
    /// those of the last event.
    fn next_by_probe(&mut self) -> Option<(u64, Option<u32>)> {
        while self.gaps.pop_front_if(|gap| !is_before(self.expected, gap.next)).is_some() {}
        let mark = self.forwarded.front().map(|mark| (mark.time, mark.number));
        let gap = self.gaps.front().map(|gap| (gap.time, later(gap.number, self.expected)));
        let next = match (mark, gap) {
            (Some(mark), Some(gap)) => Some(if is_before(mark.1, gap.1) { mark } else { gap }),
            (mark, gap) => mark.or(gap),
        };
        let last = self.ends.filter(|_| !self.is_over).map(|event| (event.time, event.number));
        next.map(|(time, number)| (time, Some(number))).or(last)
    }

    /// Whether a mark is next in a lane that was there when it was looked at.
    fn has_seen_mark(&self) -> bool {
        self.rings.iter().any(Ring::is_seen)
    }

    /// Accounts the next mark by a probe, the loss before it, or the last event.
    fn account_by_probe(&mut self, counts: &mut MarkCounts, accounting: &mut Accounting<'_>) {
        let is_before_gap =
            |mark: &mut Forwarded| self.gaps.front().is_none_or(|gap| is_before(mark.number, gap.number));
        let Some(mark) = self.forwarded.pop_front_if(is_before_gap) else {
            if let Some(gap) = self.gaps.pop_front() {
                self.lose_until(gap.next);
            } else if let Some(event) = self.ends {
                self.is_over = true;
                self.lose_until(event.number.unwrap_or(self.expected));
            }
            return;
        };
        self.lose_until(mark.number);
        self.expected = after_forwarded(mark.number);
        counts.by_probe += 1;
        self.last = self.last.max(mark.time);
        let ids = (self.tgid, self.tid);
        let mark = match &mark.mark {
            ForwardedMark::Begin(begin) => Mark::Forwarded(begin),
            ForwardedMark::End => {
                let mut calls = self
                    .rings
                    .iter_mut()
                    .filter_map(|ring| ring.calls.as_mut())
                    .find(|calls| calls.has_section());
                while self.hooked.is_left(self.marks.stack().depth(), calls.as_deref_mut()) {
                    accounting.mark(ids, &mut self.marks, self.last, &Mark::End);
                }
                Mark::End
            }
            ForwardedMark::Text(text) => Mark::Text(text),
        };
        accounting.mark(ids, &mut self.marks, self.last, &mark);
        if matches!(mark, Mark::Forwarded(_)) {
            self.hooked.begun(self.marks.stack().depth(), false);
        }
    }

    /// Accounts the marks in lanes up to `until` (ns): those that were looked at, or all.
    fn account_rings(
        &mut self,
        until: u64,
        all: bool,
        counts: &mut MarkCounts,
        accounting: &mut Accounting<'_>,
    ) {
        let Self { tgid, tid, marks, rings, last, hooked, .. } = self;
        let ids = (*tgid, *tid);
        if let [ring] = &mut rings[..] {
            while (all || ring.is_seen())
                && let Some(head) = ring.peek(|text| accounting.site(text)).filter(|head| head.time <= until)
            {
                *last = head.time.max(*last);
                take(ids, (marks, hooked), *last, ring, &head, accounting);
                counts.by_lane += 1;
            }
            return;
        }
        // Two libraries with a lane each, or the old one of a thread and the new one: few.
        loop {
            let times = rings.iter_mut().enumerate().filter_map(|(number, ring)| {
                ring.peek(|text| accounting.site(text)).map(|head| (head.time, number, head))
            });
            let Some((time, number, head)) =
                times.min_by_key(|(time, number, _)| (*time, *number)).filter(|(time, ..)| *time <= until)
            else {
                break;
            };
            if !all && !rings[number].is_seen() {
                break;
            }
            *last = time.max(*last);
            take(ids, (marks, hooked), *last, &mut rings[number], &head, accounting);
            counts.by_lane += 1;
        }
    }

    /// Drops damaged lanes, and those that the thread has closed and that are empty.
    fn drop_rings(&mut self, counts: &mut MarkCounts) {
        let lanes = self.rings.len();
        let broken = self.rings.extract_if(.., |ring| ring.is_broken()).count();
        if broken > 0 {
            counts.broken += broken as u64;
            // Its thread goes on with what was begun there.
            self.marks.forget_open(1);
        }
        self.rings.retain(|ring| !ring.is_over());
        if self.rings.len() < lanes {
            self.distinguish();
        }
    }

    /// Notes lost marks. What is known of some may be noted before it is known of all of them; a state that was read while it
    /// was written has a later time than the record that comes.
    pub(super) fn note_gap(&mut self, gap: Gap) {
        let is_behind = |other: &Gap| {
            if gap.next == other.next { other.time <= gap.time } else { is_before(other.next, gap.next) }
        };
        let at = self.gaps.iter().rposition(is_behind).map_or(0, |at| at + 1);
        self.gaps.insert(at, gap);
    }

    /// Forgets the open sections if marks by probes before the one with this number are missing: which are open now is not
    /// known.
    pub(super) fn lose_until(&mut self, number: u32) {
        if is_before(self.expected, number) {
            let lost = number.wrapping_sub(self.expected);
            self.expected = number;
            self.marks.forget_open(lost);
        }
    }

    /// Forgets the open sections if the last event of the thread, which has ended, is lost.
    pub(super) fn lose_end(&mut self) {
        if self.ends.is_none() {
            self.marks.forget_open(0);
        }
    }

    /// Ends the thread, all of whose marks are accounted.
    pub(super) fn finish(&self, accounting: &mut Accounting<'_>) {
        self.marks.release_held(accounting.diagnostics);
        let Some(event) = self.ends else { return };
        if event.is_end {
            for open in self.marks.open((self.tgid, self.tid), |_| 0) {
                accounting.diagnostics.add(DiagnosticKind::OpenAtEnd, open.begin.time, self.tid, b"");
            }
        }
    }
}

/// Accounts the mark that a ring has next.
#[inline]
fn take(
    ids: (u32, u32),
    (marks, hooked): (&mut ThreadMarks, &mut HookedSections),
    time: u64,
    ring: &mut Ring,
    head: &Head,
    accounting: &mut Accounting<'_>,
) {
    let calls = ring.calls;
    let mark = match head.kind {
        Kind::End => Some(Mark::End),
        Kind::Text => Some(Mark::Text(ring.text(head))),
        _ => ring.site(head).map(Mark::Site),
    };
    if calls.is_none() && hooked.is_empty() {
        if let Some(mark) = mark {
            accounting.mark(ids, marks, time, &mark);
        }
    } else if let Some(mark) = mark {
        ring.calls = take_beside_calls(ids, (marks, hooked), time, calls, &mark, accounting);
    }
    ring.advance(head);
}

/// Accounts a mark on a thread that has hooked calls, by the open ones of its lane, if it is one of theirs; returns those that
/// are open then.
fn take_beside_calls(
    ids: (u32, u32),
    (marks, hooked): (&mut ThreadMarks, &mut HookedSections),
    time: u64,
    mut calls: Option<OpenCalls>,
    mark: &Mark<'_>,
    accounting: &mut Accounting<'_>,
) -> Option<OpenCalls> {
    let begin = accounting.section(mark);
    if calls.as_mut().is_none_or(|calls| calls.counts(begin.as_ref(), marks.stack())) {
        accounting.mark(ids, marks, time, mark);
        if begin.is_some() {
            hooked.begun(marks.stack().depth(), calls.is_some());
        }
    }
    calls
}
