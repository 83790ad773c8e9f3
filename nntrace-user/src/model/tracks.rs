//! Counters, instants and asynchronous slices: what those of one name add up to.

use std::{
    collections::VecDeque,
    hash::{Hash as _, Hasher as _},
};

use nntrace_common::track::TrackMark;
use rustc_hash::{FxHashMap, FxHasher};

use super::{
    capped_table::{Capped, Key, OTHERS, OTHERS_PID, Row},
    limits::Limits,
};

/// All counters, instants and asynchronous slices.
#[derive(Debug)]
pub(crate) struct Tracks {
    counters: Capped<TrackKey, Counter>,
    named: Capped<TrackKey, Track>,
    /// Begins that have no end yet, by track, cookie and, on no track of its own, name.
    open: FxHashMap<u64, VecDeque<Open>>,
    open_count: usize,
    most_open: usize,
    /// Begins and ends whose place in the order of time is not known yet.
    waiting: Vec<Waiting>,
    /// Ends that had no begin.
    pub(crate) unmatched_ends: u64,
    /// Time of the first of them, ns.
    pub(crate) first_unmatched: Option<u64>,
    /// Slices whose begin was forgotten, as too many were open.
    pub(crate) forgotten: u64,
}

/// A process, and the hash of a track and a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct TrackKey {
    pid: u32,
    id: u64,
}

/// Stands for all names.
const OTHERS_ID: u64 = u64::MAX;

impl Key for TrackKey {
    fn coarser(&self) -> Option<Self> {
        match *self {
            Self { pid: OTHERS_PID, id: OTHERS_ID } => None,
            Self { id: OTHERS_ID, .. } => Some(Self { pid: OTHERS_PID, ..*self }),
            _ => Some(Self { id: OTHERS_ID, ..*self }),
        }
    }

    fn is_others(&self) -> bool {
        self.id == OTHERS_ID
    }
}

/// A counter of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counter {
    /// Its name.
    pub name: Box<str>,
    /// How often it was set.
    pub count: u64,
    /// Smallest and largest value; `None` for several counters together.
    pub range: Option<(i64, i64)>,
    /// The value that was set last, and when (ns); `None` for several counters together.
    pub last: Option<(u64, i64)>,
}

impl Row<TrackKey> for Counter {
    fn weight(&self) -> u64 {
        self.count
    }

    fn add(&mut self, other: Self) {
        self.count += other.count;
    }

    fn into_others(self, _: TrackKey) -> Self {
        // Of values of different counters, nothing in common can be shown.
        Self { name: OTHERS.into(), range: None, last: None, ..self }
    }
}

/// Instants and asynchronous slices of one name in one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "a track, in a trace, is also what a name stands on")]
pub(crate) struct Track {
    /// Their track; empty when they have none of their own.
    pub track: Box<str>,
    /// Their name.
    pub name: Box<str>,
    /// Instants.
    pub instants: u64,
    /// Slices that ended.
    pub slices: u64,
    /// Slices that have not ended.
    pub open: u64,
    /// Time of those that ended, ns.
    pub slices_ns: u64,
}

impl Row<TrackKey> for Track {
    fn weight(&self) -> u64 {
        self.instants + self.slices + self.open
    }

    fn add(&mut self, other: Self) {
        self.instants += other.instants;
        self.slices += other.slices;
        self.open += other.open;
        self.slices_ns = self.slices_ns.saturating_add(other.slices_ns);
    }

    fn into_others(self, _: TrackKey) -> Self {
        Self { track: "".into(), name: OTHERS.into(), ..self }
    }
}

/// A slice that has not ended.
#[derive(Clone, Debug)]
struct Open {
    key: TrackKey,
    begin: u64,
}

/// Begin or end of a slice that waits for what may come before it: threads on several CPUs begin and end one.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    time: u64,
    /// Track, cookie and, on no track of its own, name.
    slice: u64,
    /// Its row; `None` for an end.
    begins: Option<TrackKey>,
}

impl Default for Tracks {
    fn default() -> Self {
        Self::new(&Limits::default())
    }
}

impl Tracks {
    /// Creates empty tables.
    #[must_use]
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            counters: Capped::new(limits.tracks),
            named: Capped::new(limits.tracks),
            open: FxHashMap::default(),
            open_count: 0,
            most_open: limits.open_slices,
            waiting: Vec::new(),
            unmatched_ends: 0,
            first_unmatched: None,
            forgotten: 0,
        }
    }

    /// Takes a mark that a process wrote at `time` (ns), in any order of time. Slices count from the next
    /// [`Tracks::advance`] on.
    pub(crate) fn add(&mut self, pid: u32, time: u64, mark: &TrackMark<'_>) {
        match *mark {
            TrackMark::Counter { name, value } => {
                let key = TrackKey { pid, id: id(&[name]) };
                let make = || Counter { name: text(name), count: 0, range: None, last: None };
                let counter = self.counters.row(key, make);
                counter.count += 1;
                let (least, most) = counter.range.unwrap_or((value, value));
                counter.range = Some((least.min(value), most.max(value)));
                if counter.last.is_none_or(|(last, _)| last <= time) {
                    counter.last = Some((time, value));
                }
            }
            TrackMark::Instant { track, name } => {
                let end = name.iter().position(|&byte| byte == b'#').unwrap_or(name.len());
                let (_, row) = self.track(pid, track, &name[..end]);
                row.instants += 1;
            }
            TrackMark::SliceBegin { track, name, cookie } => {
                let (key, _) = self.track(pid, track, name);
                let slice = slice(pid, track, name, cookie);
                self.waiting.push(Waiting { time, slice, begins: Some(key) });
            }
            TrackMark::SliceEnd { track, name, cookie } => {
                let slice = slice(pid, track, name, cookie);
                self.waiting.push(Waiting { time, slice, begins: None });
            }
        }
    }

    /// Takes the slices up to this moment (ns), of which all begins and ends have come.
    #[inline]
    pub(crate) fn advance(&mut self, until: u64) {
        if !self.waiting.is_empty() {
            self.take_waiting(until);
        }
    }

    fn take_waiting(&mut self, until: u64) {
        // Stable: of one instant, as they came.
        self.waiting.sort_by_key(|waiting| waiting.time);
        let ready = self.waiting.partition_point(|waiting| waiting.time <= until);
        for number in 0..ready {
            let Waiting { time, slice, begins } = self.waiting[number];
            match begins {
                Some(key) => self.begin(slice, key, time),
                None => self.end(slice, time),
            }
        }
        self.waiting.drain(..ready);
    }

    fn begin(&mut self, slice: u64, key: TrackKey, time: u64) {
        if let Some(row) = self.named.find(key) {
            row.open += 1;
        }
        self.open.entry(slice).or_default().push_back(Open { key, begin: time });
        self.open_count += 1;
        if self.open_count > self.most_open {
            self.forget_oldest();
        }
    }

    fn end(&mut self, slice: u64, time: u64) {
        let Some(Open { key, begin }) = self.open.get_mut(&slice).and_then(VecDeque::pop_front) else {
            self.unmatched_ends += 1;
            self.first_unmatched.get_or_insert(time);
            return;
        };
        self.open_count -= 1;
        if self.open.get(&slice).is_some_and(VecDeque::is_empty) {
            self.open.remove(&slice);
        }
        if let Some(row) = self.named.find(key) {
            row.open = row.open.saturating_sub(1);
            row.slices += 1;
            row.slices_ns = row.slices_ns.saturating_add(time.saturating_sub(begin));
        }
    }

    fn track(&mut self, pid: u32, track: &[u8], name: &[u8]) -> (TrackKey, &mut Track) {
        let key = TrackKey { pid, id: id(&[track, name]) };
        let make = || Track { track: text(track), name: text(name), ..Track::default() };
        (key, self.named.row(key, make))
    }

    /// Forgets the begins of the older half of what is open.
    #[cold]
    fn forget_oldest(&mut self) {
        let mut begins: Vec<u64> = self.open.values().flatten().map(|open| open.begin).collect();
        let half = begins.len() / 2;
        let (_, &mut middle, _) = begins.select_nth_unstable(half);
        self.open.retain(|_, open| {
            open.retain(|open| open.begin > middle);
            !open.is_empty()
        });
        let left = self.open.values().map(VecDeque::len).sum();
        self.forgotten += (self.open_count - left) as u64;
        self.open_count = left;
    }

    /// Counters with their process, in no order.
    pub(crate) fn counters(&self) -> impl Iterator<Item = (u32, &Counter)> {
        self.counters.iter().map(|(key, counter, _)| (key.pid, counter))
    }

    /// Instants and slices by name with their process, in no order.
    pub(crate) fn tracks(&self) -> impl Iterator<Item = (u32, &Track)> {
        self.named.iter().map(|(key, track, _)| (key.pid, track))
    }

    /// How many counters and names were summed as others.
    #[must_use]
    pub(crate) fn summed(&self) -> u64 {
        self.counters.summed() + self.named.summed()
    }

    /// How many slices have not ended.
    #[cfg(test)]
    pub(crate) fn open_slices(&self) -> u64 {
        self.tracks().map(|(_, track)| track.open).sum()
    }
}

/// On a track of its own a slice is known by its cookie, elsewhere by name and cookie.
/// Returns what distinguishes a slice of a process: its track and cookie, and, on no track of its own, its name.
pub(super) fn slice(pid: u32, track: &[u8], name: &[u8], cookie: &[u8]) -> u64 {
    id(&[&pid.to_ne_bytes(), track, cookie, if track.is_empty() { name } else { &[] }])
}

fn id(texts: &[&[u8]]) -> u64 {
    let mut hasher = FxHasher::default();
    texts.hash(&mut hasher);
    hasher.finish().min(OTHERS_ID - 1)
}

fn text(bytes: &[u8]) -> Box<str> {
    String::from_utf8_lossy(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(tracks: &mut Tracks, time: u64, payload: &[u8]) -> bool {
        let mark = TrackMark::read(payload);
        mark.inspect(|mark| tracks.add(9, time, mark)).is_some()
    }

    fn tracks(marks: &[(u64, &str)]) -> Tracks {
        let mut tracks = Tracks::default();
        for (time, payload) in marks {
            assert!(add(&mut tracks, *time, payload.as_bytes()));
        }
        tracks.advance(u64::MAX);
        tracks
    }

    fn named<'a>(tracks: &'a Tracks, name: &str) -> &'a Track {
        tracks.tracks().find(|(_, track)| &*track.name == name).unwrap().1
    }

    #[test]
    fn slices_are_paired_across_threads_by_name_and_cookie() {
        let mut marks = [
            (10, "S|9|load|1"),
            (11, "S|9|load|2"),
            (20, "F|9|load|2"),
            (25, "G|9|dma|copy|2"),
            (30, "F|9|load|1"),
            (35, "H|9|dma|2"),
            (40, "F|9|load|3"),
            (50, "S|9|load|4"),
        ];
        // The marks of one CPU come before those of another.
        let orders: [fn(u64) -> u64; 3] = [|time| time, |time| time % 3 * 100 + time, |time| 100 - time];
        for order in orders {
            marks.sort_by_key(|(time, _)| order(*time));
            let tracks = tracks(&marks);
            let loads = named(&tracks, "load");
            assert_eq!((loads.slices, loads.slices_ns, loads.open), (2, 29, 1), "{marks:?}");
            let copies = named(&tracks, "copy");
            assert_eq!((&*copies.track, copies.slices, copies.slices_ns, copies.open), ("dma", 1, 10, 0));
            assert_eq!((tracks.unmatched_ends, tracks.open_slices()), (1, 1));
        }
    }

    #[test]
    fn what_may_still_come_is_waited_for() {
        let mut tracks = Tracks::default();
        assert!(add(&mut tracks, 20, b"F|9|load|1"));
        tracks.advance(15);
        assert_eq!((tracks.unmatched_ends, tracks.open_slices()), (0, 0));
        assert!(add(&mut tracks, 16, b"S|9|load|1"));
        tracks.advance(18);
        assert_eq!((tracks.unmatched_ends, tracks.open_slices()), (0, 1));
        tracks.advance(20);
        let loads = named(&tracks, "load");
        assert_eq!((loads.slices, loads.slices_ns, loads.open), (1, 4, 0));
    }

    #[test]
    fn values_and_instants_add_up() {
        let marks = [(1, "C|9|queue|3"), (2, "I|9|nn.send#h=4"), (3, "C|9|queue|-1"), (4, "I|9|nn.send#h=5")];
        let mut tracks = tracks(&marks);
        assert!(!add(&mut tracks, 5, b"C|9|queue|x"));
        let (_, queue) = tracks.counters().next().unwrap();
        assert_eq!((queue.count, queue.range, queue.last), (2, Some((-1, 3)), Some((3, -1))));
        assert_eq!(named(&tracks, "nn.send").instants, 2);
    }

    #[test]
    fn memory_does_not_grow_with_names_and_with_slices_that_never_end() {
        let limits = Limits { tracks: 50, open_slices: 100, ..Limits::default() };
        let mut tracks = Tracks::new(&limits);
        for time in 0..20_000_u64 {
            assert!(add(&mut tracks, time, format!("C|9|counter{time}|3").as_bytes()));
            assert!(add(&mut tracks, time, format!("I|9|instant{time}").as_bytes()));
            assert!(add(&mut tracks, time, format!("S|9|load|{time}").as_bytes()));
            assert!(add(&mut tracks, time, b"C|9|queue|3"));
            tracks.advance(time);
        }
        assert!(tracks.counters().count() <= 51 && tracks.tracks().count() <= 51 && tracks.open_count <= 100);
        let queue = tracks.counters().find(|(_, counter)| &*counter.name == "queue").unwrap().1;
        assert_eq!((queue.count, queue.last), (20_000, Some((19_999, 3))));
        assert_eq!(tracks.counters().map(|(_, counter)| counter.count).sum::<u64>(), 40_000);
        assert_eq!((named(&tracks, "load").open, tracks.forgotten > 19_000), (20_000, true));
        assert!(tracks.summed() > 39_000);
    }
}
