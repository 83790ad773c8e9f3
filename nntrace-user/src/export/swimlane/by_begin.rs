//! Sections of one thread after the other, in the order of their begins.
//!
//! The importer closes the innermost open slice of a track at each end, and takes events of one instant in the order of the
//! file. So ends are written, innermost first, before the begin of the next section that is not in them.

use std::{
    collections::{BTreeMap, VecDeque},
    io::Write,
};

use nntrace_common::{stack::ON_NO_STACK, stamp::Stamp};

use super::{
    encoder::{Encode, ThreadTrack},
    hand_overs::{Arrival, HandOvers},
    slices,
};
use crate::model::{
    section::{Mark, Section},
    section_filter::Hidden,
    unfinished_sections::UnfinishedSection,
};

/// Writer of sections that come by thread and begin, and of the setup bars before those that do work that was handed over.
pub(super) struct SectionsByBegin {
    threads: Threads,
    hand_overs: HandOvers,
    /// Duration below which a section is hidden, ns.
    least_ns: u64,
    hidden: Hidden,
}

type Threads = BTreeMap<(u32, u32), Thread>;

/// Thread with sections.
#[derive(Default)]
struct Thread {
    /// Number among threads, which may have had these ids one after the other.
    place: Option<u32>,
    /// Its tracks. The first one, its own, has all its sections, if they nest.
    lanes: Vec<Lane>,
    /// Sections that had not ended, in the order of their begins.
    unfinished: VecDeque<UnfinishedSection>,
    /// Work that arrives, in the order in which it does.
    arrivals: VecDeque<Arrival>,
    /// When the work of the last setup bar begins.
    set_up: Option<Stamp>,
}

/// Track of a thread.
struct Lane {
    track: ThreadTrack,
    /// Ends of the open slices, and their levels, the outermost first.
    open: Vec<(Stamp, u16)>,
}

/// Returns the level of a section. There is one between any two for a setup bar.
fn level(section: &Section<'_>) -> u16 {
    2 * u16::from(section.depth) + 1
}

/// Whether a level is that of a setup bar. A bar makes room for sections: it never moves one to another track.
const fn is_bar(level: u16) -> bool {
    level.is_multiple_of(2)
}

impl Lane {
    /// Whether a slice of this level may begin here, after all before it that are over.
    fn accepts<W: Write>(
        &mut self,
        begin: Stamp,
        end: Stamp,
        level: u16,
        encoder: &mut impl Encode<W>,
    ) -> bool {
        while let Some((open_until, around)) = self.open.last() {
            // Sections may have no length: what has as many around it is beside it, whatever the times.
            if *around < level && end <= *open_until {
                return true;
            }
            if *open_until <= begin {
                self.end_innermost(encoder);
            } else if is_bar(*around) && !is_bar(level) {
                self.cut_innermost(begin, encoder);
            } else {
                return false;
            }
        }
        true
    }

    /// Ends what is over by then; returns the level of a bar that begins there, in what is open.
    fn level_at<W: Write>(&mut self, at: Stamp, encoder: &mut impl Encode<W>) -> u16 {
        while self.open.last().is_some_and(|(end, _)| *end <= at) {
            self.end_innermost(encoder);
        }
        self.open.last().map_or(0, |(_, level)| level + 1)
    }

    /// Ends the innermost slice before its time.
    fn cut_innermost<W: Write>(&mut self, at: Stamp, encoder: &mut impl Encode<W>) {
        if self.open.pop().is_some() {
            encoder.end(at.time, self.track);
        }
    }

    fn end_innermost<W: Write>(&mut self, encoder: &mut impl Encode<W>) {
        if let Some((end, _)) = self.open.pop() {
            encoder.end(end.time, self.track);
        }
    }
}

impl SectionsByBegin {
    /// Creates a writer that also writes the sections that had not ended, which are in the order of their begins. It hides
    /// sections shorter than `least_ns`, but for those that hand work over, or do such.
    pub(super) fn new(unfinished: Vec<UnfinishedSection>, hand_overs: HandOvers, least_ns: u64) -> Self {
        let threads = Threads::default();
        let mut all = Self { threads, hand_overs, least_ns, hidden: Hidden::default() };
        for section in unfinished {
            if let Some(pid) = section.pid {
                thread(&mut all.threads, &mut all.hand_overs, (pid, section.tid))
                    .unfinished
                    .push_back(section);
            }
        }
        all
    }

    /// Takes the next section, of a thread with this number.
    pub(super) fn take<W: Write>(
        &mut self,
        section: &Section<'_>,
        place: Option<u32>,
        encoder: &mut impl Encode<W>,
    ) {
        let (pid, tid) = (section.pid, section.tid);
        let Self { threads, hand_overs, .. } = self;
        let thread = thread(threads, hand_overs, (pid, tid));
        thread.become_place(place, encoder);
        thread.begin_unfinished(section.begin_stamp(), encoder);
        thread.begin_setups(section.begin_stamp(), encoder);
        let (begin, end, level) = (section.begin_stamp(), section.end_stamp(), level(section));
        let arrivals = thread.take_arrivals(begin, end);
        let duration = section.duration_ns();
        let does_work = !arrivals.is_empty() || thread.set_up == Some(begin);
        if duration < self.least_ns && !does_work && !hand_overs.departs((pid, tid), begin) {
            self.hidden.add(duration);
            return;
        }
        let lanes = &mut thread.lanes;
        let accepts = |lane: &mut Lane| lane.accepts(begin, end, level, encoder);
        // A thread's own lane is for what was on its stack.
        let first = usize::from(section.depth == ON_NO_STACK);
        if lanes.len() < first {
            lanes.push(Lane { track: ThreadTrack::own(pid, tid), open: Vec::new() });
        }
        let place = lanes[first..].iter_mut().position(accepts).map_or(lanes.len(), |place| first + place);
        if place == lanes.len() {
            let number = place as u32;
            let track = ThreadTrack { pid, tid, lane: number };
            if number > 0 {
                encoder.further_track(track);
            }
            lanes.push(Lane { track, open: Vec::new() });
        }
        let lane = &mut lanes[place];
        let categories = slices::categories(section);
        let mut label = slices::label(section, &categories);
        hand_overs.depart((pid, tid), begin, &mut label);
        for arrival in arrivals {
            arrival.arrive(&mut label);
        }
        encoder.begin(section.begin_ns, lane.track, &label);
        lane.open.push((end, level));
    }

    /// Takes the next mark, which is among the sections by its time, of a thread with this number.
    pub(super) fn mark<W: Write>(
        &mut self,
        mark: &Mark<'_>,
        place: Option<u32>,
        encoder: &mut impl Encode<W>,
    ) {
        let Mark { pid, tid, time, sequence, depth, ref payload } = *mark;
        let thread = thread(&mut self.threads, &mut self.hand_overs, (pid, tid));
        thread.become_place(place, encoder);
        let at = Stamp::new(time, sequence);
        thread.begin_unfinished(at, encoder);
        let around = 2 * u16::from(depth);
        let is_over = |(end, level): &(Stamp, u16)| {
            let is_numbered = sequence > 0 && end.sequence > 0;
            end.time < time || (end.time == time && if is_numbered { *end < at } else { *level >= around })
        };
        for lane in &mut thread.lanes {
            while lane.open.last().is_some_and(is_over) {
                lane.end_innermost(encoder);
            }
        }
        encoder.instant(time, ThreadTrack::own(pid, tid), &slices::mark(payload));
    }

    /// Writes what is left; returns what was hidden.
    pub(super) fn finish<W: Write>(self, encoder: &mut impl Encode<W>) -> Hidden {
        for mut thread in self.threads.into_values() {
            thread.begin_unfinished(Stamp::new(u64::MAX, u32::MAX), encoder);
            thread.end(encoder);
        }
        self.hand_overs.finish(encoder);
        self.hidden
    }
}

/// Returns the thread with these ids; a new one has all the work that arrives at it.
fn thread<'a>(
    threads: &'a mut Threads,
    hand_overs: &mut HandOvers,
    (pid, tid): (u32, u32),
) -> &'a mut Thread {
    let new = || Thread { arrivals: hand_overs.arrivals(pid, tid), ..Thread::default() };
    threads.entry((pid, tid)).or_insert_with(new)
}

impl Thread {
    /// Ends what is open of another thread that had these ids before.
    fn become_place<W: Write>(&mut self, place: Option<u32>, encoder: &mut impl Encode<W>) {
        if self.place != place {
            self.end(encoder);
            self.place = place;
        }
    }

    /// Writes the sections that begin up to there, and never end: all that follow are in them.
    fn begin_unfinished<W: Write>(&mut self, until: Stamp, encoder: &mut impl Encode<W>) {
        while let Some(section) = self.unfinished.pop_front_if(|section| section.begin <= until) {
            if let Some(own) = self.lanes.first_mut() {
                while own.open.last().is_some_and(|(end, _)| *end <= section.begin) {
                    own.end_innermost(encoder);
                }
                // In one that ends it would have ended, too: the ends that follow would be taken for its own.
                if !own.open.is_empty() {
                    continue;
                }
            }
            if let Some(pid) = section.pid {
                let track = ThreadTrack::own(pid, section.tid);
                encoder.begin(section.begin_ns(), track, &slices::unfinished_label(&section));
            }
        }
    }

    /// Writes the setup bars that begin before then, on the thread's own track.
    fn begin_setups<W: Write>(&mut self, until: Stamp, encoder: &mut impl Encode<W>) {
        while let Some(arrival) = self.arrivals.front_mut()
            && let Some(begin) = arrival.setup.filter(|begin| *begin < until)
        {
            if self.lanes.is_empty() {
                self.lanes.push(Lane { track: arrival.track, open: Vec::new() });
            }
            let own = &mut self.lanes[0];
            let (start, around) = (arrival.start, own.level_at(begin, encoder));
            if own.accepts(begin, start, around, encoder) {
                encoder.begin(begin.time, own.track, &arrival.bar(begin.time));
                own.open.push((start, around));
                self.set_up = Some(start);
                self.arrivals.pop_front();
            } else {
                // It would end in another section: the flow goes to its start.
                arrival.setup = None;
            }
        }
    }

    /// Takes out the work that a section does that begins and ends then; others may begin in the same instant.
    fn take_arrivals(&mut self, begin: Stamp, end: Stamp) -> Vec<Arrival> {
        while self.arrivals.pop_front_if(|arrival| arrival.start < begin).is_some() {}
        let due = self.arrivals.iter().take_while(|arrival| arrival.start == begin).count();
        if due == 0 {
            return Vec::new();
        }
        let (taken, others): (Vec<_>, Vec<_>) =
            self.arrivals.drain(..due).partition(|arrival| arrival.end() == Some(end));
        for other in others.into_iter().rev() {
            self.arrivals.push_front(other);
        }
        taken
    }

    /// Writes the ends of all that is open.
    fn end<W: Write>(&mut self, encoder: &mut impl Encode<W>) {
        for lane in &mut self.lanes {
            while !lane.open.is_empty() {
                lane.end_innermost(encoder);
            }
        }
    }
}
