//! Points of threads, from sections, hand-overs, wake-ups and context switches in the order of each thread.

use nntrace_common::{stack::ON_NO_STACK, stamp::Stamp};
use rustc_hash::FxHashMap;

use super::{
    collect::{Events, Span},
    graph::{Point, UNMARKED},
};
use crate::model::scheduling::Activity;

/// Something on a thread that becomes a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Happening {
    /// When it happened; activities and what follows from other threads have no number, and come first.
    at: Stamp,
    /// Place among those of one instant that have no number.
    rank: (Rank, u8),
    /// Number, by which edges refer to it.
    id: u32,
}

/// Order within an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Activity,
    End,
    Anchor,
    Begin,
    /// End of a section without length.
    EndAtOnce,
}

/// Meaning of a happening.
#[derive(Clone, Copy, Debug)]
enum Meaning {
    Begin(u32),
    End(u32),
    Activity(Activity),
    /// Place of an edge; whether a mark shows it.
    Anchor(bool),
}

/// A thread by its id, and the number of its life among those that had the id.
pub(in crate::analyze) type Life = (u32, u32);

/// Happenings of all threads.
pub(in crate::analyze) struct Drafts<'a> {
    events: &'a Events,
    /// Times (ns) at which threads with an id were created.
    lives: FxHashMap<u32, Vec<u64>>,
    numbers: FxHashMap<Life, u32>,
    threads: Vec<(Life, Vec<Happening>)>,
    meanings: Vec<Meaning>,
}

/// Points of all threads.
pub(in crate::analyze) struct Points {
    /// Points, one thread after the other.
    pub(in crate::analyze) all: Vec<Point>,
    /// Numbers of points by those of happenings.
    of: Vec<u32>,
    /// Whether the thread slept until a point.
    pub(in crate::analyze) slept: Vec<bool>,
    /// Whether context switches of each thread are known.
    pub(in crate::analyze) has_switches: Vec<bool>,
    /// Threads by number.
    pub(in crate::analyze) threads: Vec<Life>,
    /// Time in sections or between them of which the state of a thread is not known although context switches are, ns.
    pub(in crate::analyze) unknown: u64,
}

impl<'a> Drafts<'a> {
    /// Takes the sections.
    pub(in crate::analyze) fn new(events: &'a Events) -> Self {
        let mut lives: FxHashMap<u32, Vec<u64>> = FxHashMap::default();
        for (time, _, child) in &events.created {
            lives.entry(*child).or_default().push(*time);
        }
        for times in lives.values_mut() {
            times.sort_unstable();
        }
        let mut drafts =
            Self { events, lives, numbers: FxHashMap::default(), threads: Vec::new(), meanings: Vec::new() };
        for (number, span) in (0..).zip(&events.spans) {
            let Span { tid, begin, end, depth, .. } = *span;
            // An asynchronous execution may have been started before the thread was that waited for it.
            let lives_at = if depth == ON_NO_STACK { end } else { begin };
            let life = drafts.life(tid, lives_at.time);
            drafts.add(life, begin, (Rank::Begin, depth), Meaning::Begin(number));
            let rank = if begin == end { Rank::EndAtOnce } else { Rank::End };
            drafts.add(life, end.max(begin), (rank, u8::MAX - depth), Meaning::End(number));
        }
        drafts
    }

    /// Returns the life that has an id at a time (ns).
    pub(in crate::analyze) fn life(&self, tid: u32, time: u64) -> Life {
        let born = self.lives.get(&tid).map_or(0, |times| times.partition_point(|born| *born <= time));
        (tid, born as u32)
    }

    /// Returns the numbers of the begin and the end of a section.
    pub(in crate::analyze) const fn of_span(span: u32) -> (u32, u32) {
        (span * 2, span * 2 + 1)
    }

    /// Adds a place for edges, which a mark shows or not; returns its number.
    pub(in crate::analyze) fn anchor(&mut self, tid: u32, at: Stamp, is_marked: bool) -> u32 {
        let life = self.life(tid, at.time);
        self.add(life, at, (Rank::Anchor, 0), Meaning::Anchor(is_marked))
    }

    /// Whether a thread has anything at all.
    pub(in crate::analyze) fn has(&self, tid: u32, time: u64) -> bool {
        self.numbers.contains_key(&self.life(tid, time))
    }

    fn add(&mut self, life: Life, at: Stamp, rank: (Rank, u8), meaning: Meaning) -> u32 {
        let next = self.threads.len() as u32;
        let thread = *self.numbers.entry(life).or_insert(next);
        if thread == next {
            self.threads.push((life, Vec::new()));
        }
        let id = self.meanings.len() as u32;
        self.meanings.push(meaning);
        self.threads[thread as usize].1.push(Happening { at, rank, id });
        id
    }

    /// Returns the times (ns) of the first thing that a mark shows, and of the last one.
    pub(in crate::analyze) fn extent(&self) -> Option<(u64, u64)> {
        let is_marked = |happening: &&Happening| {
            matches!(
                self.meanings[happening.id as usize],
                Meaning::Begin(_) | Meaning::End(_) | Meaning::Anchor(true)
            )
        };
        let times = || self.threads.iter().flat_map(|(_, all)| all).filter(is_marked).map(|it| it.at.time);
        times().min().zip(times().max())
    }

    /// Adds what threads did between two times (ns): those that are there already, and others of their processes.
    pub(in crate::analyze) fn add_activities(&mut self, begin: u64, end: u64) {
        let events = self.events;
        let Some(scheduling) = &events.scheduling else { return };
        let processes: rustc_hash::FxHashSet<u32> = events.processes.values().copied().collect();
        let mut tids: Vec<u32> = scheduling
            .ids()
            .filter_map(|(tid, process)| {
                let is_ours = process.is_some_and(|process| processes.contains(&process));
                (is_ours || events.processes.contains_key(&tid)).then_some(tid)
            })
            .collect();
        tids.sort_unstable();
        tids.dedup();
        for tid in tids {
            let mut before = None;
            for (time, activity) in scheduling.activities(tid) {
                if time < begin {
                    before = Some(activity);
                    continue;
                }
                if let Some(activity) = before.take().filter(|_| time > begin) {
                    self.activity(tid, begin, activity);
                }
                if time <= end {
                    self.activity(tid, time, activity);
                }
            }
            if let Some(activity) = before {
                self.activity(tid, begin, activity);
            }
        }
    }

    fn activity(&mut self, tid: u32, time: u64, activity: Activity) {
        let life = self.life(tid, time);
        self.add(life, time.into(), (Rank::Activity, 0), Meaning::Activity(activity));
    }

    /// Makes points of everything.
    pub(in crate::analyze) fn finish(mut self) -> Points {
        // By id, whatever the order of files was.
        self.threads.sort_unstable_by_key(|(life, _)| *life);
        let mut points = Points {
            all: Vec::with_capacity(self.meanings.len()),
            of: vec![0; self.meanings.len()],
            slept: Vec::with_capacity(self.meanings.len()),
            has_switches: Vec::new(),
            threads: Vec::new(),
            unknown: 0,
        };
        for (life, mut happenings) in std::mem::take(&mut self.threads) {
            happenings.sort_unstable();
            self.points_of(&happenings, &mut points);
            points.threads.push(life);
        }
        points
    }

    fn points_of(&self, happenings: &[Happening], points: &mut Points) {
        let thread = points.threads.len() as u32;
        let meaning = |happening: &Happening| self.meanings[happening.id as usize];
        let has_switches = happenings.iter().any(|it| matches!(meaning(it), Meaning::Activity(_)));
        points.has_switches.push(has_switches);
        let mut open: Vec<u32> = Vec::new();
        let mut activity = has_switches.then_some(Activity::Unknown);
        let mut last: Option<u64> = None;
        let mut has_run = false;
        for happening in happenings {
            let time = happening.at.time;
            let length = last.map_or(0, |last| time - last);
            let component = open.last().map_or(UNMARKED, |span| self.events.spans[*span as usize].component);
            let mut point =
                Point { time, sequence: happening.at.sequence, thread, component, ..Point::default() };
            match activity {
                Some(Activity::Runnable) => (point.queued, point.is_interruption) = (length, has_run),
                Some(Activity::Asleep) => point.fixed = length,
                Some(Activity::OnCpu(cpu)) => (point.run, point.cpu) = (length, Some(cpu)),
                Some(Activity::Unknown) => {
                    point.run = length;
                    points.unknown += length;
                }
                None => point.run = length,
            }
            points.slept.push(activity == Some(Activity::Asleep) && length > 0);
            match meaning(happening) {
                Meaning::Begin(span) => {
                    // The innermost one began last, or in the same instant and is deeper. An asynchronous execution is not what
                    // the thread does.
                    if self.events.spans[span as usize].depth != ON_NO_STACK {
                        open.push(span);
                    }
                    point.is_marked = true;
                }
                Meaning::End(span) => {
                    open.retain(|other| *other != span);
                    point.is_marked = true;
                }
                Meaning::Activity(now) => {
                    has_run = matches!(activity, Some(Activity::OnCpu(_)));
                    activity = Some(now);
                }
                Meaning::Anchor(is_marked) => point.is_marked = is_marked,
            }
            points.of[happening.id as usize] = points.all.len() as u32;
            points.all.push(point);
            last = Some(time);
        }
    }
}

impl Points {
    /// Returns the point of a happening.
    pub(in crate::analyze) fn of(&self, happening: u32) -> u32 {
        self.of[happening as usize]
    }

    /// Returns the recorded time of a point, ns.
    pub(in crate::analyze) fn time(&self, point: u32) -> u64 {
        self.all[point as usize].time
    }

    /// Returns the place of a point in the order of events.
    pub(in crate::analyze) fn stamp(&self, point: u32) -> Stamp {
        self.all[point as usize].stamp()
    }

    /// Returns the point before this one on its thread.
    pub(in crate::analyze) fn before(&self, point: u32) -> Option<u32> {
        let before = point.checked_sub(1)?;
        (self.all[before as usize].thread == self.all[point as usize].thread).then_some(before)
    }

    /// Returns the point after this one on its thread.
    pub(in crate::analyze) fn after(&self, point: u32) -> Option<u32> {
        let after = self.all.get(point as usize + 1)?;
        (after.thread == self.all[point as usize].thread).then_some(point + 1)
    }

    /// Returns the next point on the thread that a mark shows.
    pub(in crate::analyze) fn next_mark(&self, point: u32) -> Option<u32> {
        std::iter::successors(self.after(point), |next| self.after(*next))
            .find(|next| self.all[*next as usize].is_marked)
    }

    /// Returns the last point before this one on the thread that a mark shows.
    pub(in crate::analyze) fn last_mark(&self, point: u32) -> Option<u32> {
        std::iter::successors(self.before(point), |last| self.before(*last))
            .find(|last| self.all[*last as usize].is_marked)
    }
}
