//! One thread whose marks we account: its lanes, and its marks that still come by a probe, as one sequence in order
//! of time.

use std::collections::VecDeque;

use nntrace_common::{
    diagnostic::DiagnosticKind,
    express::{Head, Kind},
    record::after_forwarded,
    section_begin::ParsedBegin,
};

use super::{
    accounting::{Accounting, Mark},
    ring::Ring,
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
    /// Number that the next forwarded record would have had, if that is known.
    pub(super) number: Option<u32>,
    /// Whether sections that are open then are an error of the program: not at an exec.
    pub(super) is_end: bool,
}

/// Marks that are lost from some time on.
#[derive(Clone, Copy, Debug)]
struct Gap {
    /// Time of the first, ns.
    time: u64,
    count: u32,
}

/// Counts of the marks of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MarkCounts {
    /// Marks by lanes.
    pub(super) by_lane: u64,
    /// Marks by probes since the hand-over.
    pub(super) by_probe: u64,
    /// Marks that are known to be lost; the kernel programs have the exact count.
    pub(super) lost: u64,
    /// Lanes that were damaged.
    pub(super) broken: u64,
}

/// Thread whose marks we account.
pub(super) struct LaneThread {
    pub(super) tgid: u32,
    pub(super) tid: u32,
    pub(super) marks: ThreadMarks,
    rings: Vec<Ring>,
    forwarded: VecDeque<Forwarded>,
    /// Number of the next forwarded record.
    expected: u32,
    /// Marks that the kernel programs have lost so far, as far as is known.
    lost: u32,
    /// Loss that is not accounted yet.
    gap: Option<Gap>,
    /// Lost marks that were accounted before the gap in the numbers was met.
    noted: u32,
    /// Time of the last mark, ns.
    last: u64,
    /// Last event, once it is known.
    ends: Option<LastEvent>,
}

impl LaneThread {
    /// Creates the state of a thread that was handed over at `time` (ns).
    pub(super) fn new(tgid: u32, tid: u32, marks: ThreadMarks, time: u64) -> Self {
        Self {
            tgid,
            tid,
            marks,
            rings: Vec::new(),
            forwarded: VecDeque::new(),
            expected: after_forwarded(0),
            lost: 0,
            gap: None,
            noted: 0,
            last: time,
            ends: None,
        }
    }

    /// Adds a lane.
    pub(super) fn add_ring(&mut self, ring: Ring) {
        self.rings.push(ring);
    }

    /// Returns the lanes.
    pub(super) fn rings(&self) -> &[Ring] {
        &self.rings
    }

    /// Adds a mark that came by a probe. Those of several CPUs do not come in order.
    pub(super) fn forward(&mut self, mark: Forwarded) {
        let is_before = |other: &Forwarded| other.number.wrapping_sub(mark.number).cast_signed() <= 0;
        let at = self.forwarded.iter().rposition(is_before).map_or(0, |at| at + 1);
        self.forwarded.insert(at, mark);
    }

    /// Sets the last event.
    pub(super) fn end_with(&mut self, event: LastEvent) {
        self.ends = self.ends.or(Some(event));
    }

    /// Whether the thread has ended, and all that it did is accounted.
    pub(super) fn is_done(&self) -> bool {
        self.ends.is_some()
            && self.gap.is_none()
            && self.forwarded.is_empty()
            && self.rings.iter().all(Ring::is_empty)
    }

    /// Looks for new marks in lanes: what is there now was written after all marks by probes that are in the kernel's rings
    /// now. Returns the bytes that wait.
    pub(super) fn look(&mut self) -> u64 {
        self.rings.iter_mut().map(Ring::look).sum()
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

    /// Accounts all marks up to `until` (ns), in order of time, as far as it is known that none is missing before them. Marks
    /// by probes that are missing before others up to `settled` (ns) are lost.
    ///
    /// A thread does one thing after the other. So before a mark that [`LaneThread::look`] has seen in a lane, all marks by
    /// probes were in the kernel's rings, which were read afterwards; and before a mark by a probe, all those in
    /// lanes are there by now.
    pub(super) fn account(
        &mut self,
        until: u64,
        settled: u64,
        counts: &mut MarkCounts,
        accounting: &mut Accounting<'_>,
    ) {
        self.rings.iter_mut().for_each(Ring::refresh);
        loop {
            let by_probe = self.next_forwarded(settled).unwrap_or(u64::MAX);
            let gap = self.gap.map_or(u64::MAX, |gap| gap.time);
            let next = by_probe.min(gap);
            let all_is_there = next != u64::MAX || self.ends.is_some();
            self.account_rings(until.min(next), all_is_there, counts, accounting);
            if next == u64::MAX || next > until {
                break;
            }
            if gap <= by_probe
                && let Some(gap) = self.gap.take()
            {
                self.noted += gap.count;
                self.lose(gap.count, counts);
                continue;
            }
            if let Some(mark) = self.forwarded.pop_front() {
                self.note_gap(mark.number, counts);
                self.expected = after_forwarded(mark.number);
                counts.by_probe += 1;
                self.last = self.last.max(mark.time);
                let ids = (self.tgid, self.tid);
                let mark = match &mark.mark {
                    ForwardedMark::Begin(begin) => Mark::Forwarded(begin),
                    ForwardedMark::End => Mark::End,
                    ForwardedMark::Text(text) => Mark::Text(text),
                };
                accounting.mark(ids, &mut self.marks, self.last, &mark);
            }
        }
        self.rings.iter().for_each(Ring::publish);
        self.drop_rings(counts);
    }

    /// Returns the time of the next mark by a probe, unless one before it may still come.
    fn next_forwarded(&self, settled: u64) -> Option<u64> {
        let mark = self.forwarded.front()?;
        (mark.number == self.expected || mark.time <= settled).then_some(mark.time)
    }

    /// Accounts the marks in lanes up to `until` (ns): those that were looked at, or all.
    fn account_rings(
        &mut self,
        until: u64,
        all: bool,
        counts: &mut MarkCounts,
        accounting: &mut Accounting<'_>,
    ) {
        let Self { tgid, tid, marks, rings, last, .. } = self;
        let ids = (*tgid, *tid);
        if let [ring] = &mut rings[..] {
            while (all || ring.is_seen())
                && let Some(head) = ring.peek(|text| accounting.site(text)).filter(|head| head.time <= until)
            {
                *last = head.time.max(*last);
                take(ids, marks, *last, ring, &head, accounting);
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
            take(ids, marks, *last, &mut rings[number], &head, accounting);
            counts.by_lane += 1;
        }
    }

    /// Drops damaged lanes, and those that the thread has closed and that are empty.
    fn drop_rings(&mut self, counts: &mut MarkCounts) {
        let broken = self.rings.extract_if(.., |ring| ring.is_broken()).count();
        if broken > 0 {
            counts.broken += broken as u64;
            self.marks.forget_open();
        }
        self.rings.retain(|ring| !ring.is_over());
    }

    /// Notes that the kernel programs have lost so many forwarded marks so far, the last of them from `from` (ns) on. A
    /// thread may go on in its lane for long before the gap is met in the numbers of others.
    pub(super) fn note_lost(&mut self, lost: u32, from: u64) {
        let count = lost.wrapping_sub(self.lost);
        if count != 0 {
            self.lost = lost;
            let known = self.gap.unwrap_or(Gap { time: u64::MAX, count: 0 });
            self.gap = Some(Gap { time: known.time.min(from), count: known.count.saturating_add(count) });
        }
    }

    /// Counts forwarded marks that are missing before the one with this number.
    fn note_gap(&mut self, number: u32, counts: &mut MarkCounts) {
        let missing = number.wrapping_sub(self.expected);
        let noted = std::mem::take(&mut self.noted);
        if missing > noted {
            self.lose(missing - noted, counts);
        }
    }

    fn lose(&mut self, count: u32, counts: &mut MarkCounts) {
        counts.lost += u64::from(count);
        // Which sections are open now is not known.
        self.marks.forget_open();
    }

    /// Counts what is missing before the record with this number would come.
    pub(super) fn check_number(&mut self, number: u32, counts: &mut MarkCounts) {
        self.note_gap(number, counts);
        self.expected = number;
    }

    /// Ends the thread, all of whose marks are accounted.
    pub(super) fn finish(&mut self, counts: &mut MarkCounts, accounting: &mut Accounting<'_>) {
        let Some(event) = self.ends else { return };
        if let Some(number) = event.number {
            self.note_gap(number, counts);
        }
        if event.is_end {
            for open in self.marks.open(self.tid) {
                accounting.diagnostics.add(DiagnosticKind::OpenAtEnd, open.begin, self.tid, b"");
            }
        }
    }
}

/// Accounts the mark that a ring has next.
#[inline]
fn take(
    ids: (u32, u32),
    marks: &mut ThreadMarks,
    time: u64,
    ring: &mut Ring,
    head: &Head,
    accounting: &mut Accounting<'_>,
) {
    match head.kind {
        Kind::End => accounting.mark(ids, marks, time, &Mark::End),
        Kind::Text => accounting.mark(ids, marks, time, &Mark::Text(ring.text(head))),
        _ => {
            if let Some(site) = ring.site(head) {
                accounting.mark(ids, marks, time, &Mark::Site(site));
            }
        }
    }
    ring.advance();
}
