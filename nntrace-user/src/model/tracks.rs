//! Counters, instants and asynchronous slices: kept one by one, for timelines.

use std::collections::BTreeMap;

use nntrace_common::track::TrackMark;

/// All of them, by process.
#[derive(Clone, Debug, Default)]
pub struct Tracks {
    /// Values with their time (ns), by process and counter.
    pub counters: BTreeMap<(u32, String), Vec<(u64, i64)>>,
    /// Instants, by process, track and name.
    pub instants: BTreeMap<(u32, String, String), Vec<Instant>>,
    /// Slices that ended, by process, track and name.
    pub slices: BTreeMap<(u32, String, String), Vec<Slice>>,
    /// Begins that have no end yet: track, cookie and, on no track of its own, name.
    open: BTreeMap<(u32, String, String, String), Vec<Open>>,
    /// Ends that had no begin.
    pub unmatched_ends: u64,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant {
    /// When, ns.
    pub time: u64,
    /// The thread that told.
    pub tid: u32,
    /// What followed the name from its first `#` on.
    pub attributes: Box<str>,
}

/// An asynchronous slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slice {
    /// When it began, ns.
    pub begin: u64,
    /// When it ended, ns; not before it began.
    pub end: u64,
    /// The thread that began it.
    pub tid: u32,
}

#[derive(Clone, Debug)]
struct Open {
    name: String,
    begin: u64,
    tid: u32,
}

impl Tracks {
    /// Takes a payload that a thread wrote at `time` (ns); returns whether it could be read.
    pub fn add(&mut self, pid: u32, tid: u32, time: u64, payload: &[u8]) -> bool {
        let Some(mark) = TrackMark::read(payload) else { return false };
        match mark {
            TrackMark::Counter { name, value } => {
                self.counters.entry((pid, text(name))).or_default().push((time, value));
            }
            TrackMark::Instant { track, name } => {
                let at = name.iter().position(|&byte| byte == b'#').unwrap_or(name.len());
                let (name, attributes) = name.split_at(at);
                let instants = self.instants.entry((pid, text(track), text(name))).or_default();
                instants.push(Instant { time, tid, attributes: text(attributes).into() });
            }
            TrackMark::SliceBegin { track, name, cookie } => {
                let key = Self::key(pid, track, name, cookie);
                self.open.entry(key).or_default().push(Open { name: text(name), begin: time, tid });
            }
            TrackMark::SliceEnd { track, name, cookie } => {
                let key = Self::key(pid, track, name, cookie);
                let Some(open) = self.open.get_mut(&key) else {
                    self.unmatched_ends += 1;
                    return true;
                };
                let Open { name, begin, tid } = open.remove(0);
                if open.is_empty() {
                    self.open.remove(&key);
                }
                let slices = self.slices.entry((pid, text(track), name)).or_default();
                slices.push(Slice { begin, end: time.max(begin), tid });
            }
        }
        true
    }

    /// On a track of its own a slice is known by its cookie, elsewhere by name and cookie.
    fn key(pid: u32, track: &[u8], name: &[u8], cookie: &[u8]) -> (u32, String, String, String) {
        let name = if track.is_empty() { text(name) } else { String::new() };
        (pid, text(track), text(cookie), name)
    }

    /// How many slices have not ended.
    #[must_use]
    pub fn open_slices(&self) -> u64 {
        self.open.values().map(|open| open.len() as u64).sum()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_paired_across_threads_by_name_and_cookie() {
        let mut tracks = Tracks::default();
        for (tid, time, payload) in [
            (1, 10, "S|9|load|1"),
            (1, 11, "S|9|load|2"),
            (2, 20, "F|9|load|2"),
            (2, 25, "G|9|dma|copy|2"),
            (2, 30, "F|9|load|1"),
            (2, 35, "H|9|dma|2"),
            (2, 40, "F|9|load|3"),
            (1, 50, "S|9|load|4"),
        ] {
            assert!(tracks.add(9, tid, time, payload.as_bytes()));
        }
        let loads = &tracks.slices[&(9, String::new(), "load".into())];
        assert_eq!(*loads, [Slice { begin: 11, end: 20, tid: 1 }, Slice { begin: 10, end: 30, tid: 1 }]);
        assert_eq!(tracks.slices[&(9, "dma".into(), "copy".into())].len(), 1);
        assert_eq!((tracks.unmatched_ends, tracks.open_slices()), (1, 1));
    }

    #[test]
    fn values_and_instants_are_kept_in_their_order() {
        let mut tracks = Tracks::default();
        for (time, payload) in
            [(1, "C|9|queue|3"), (2, "I|9|nn.send#h=4"), (3, "C|9|queue|-1"), (4, "I|9|nn.send#h=5")]
        {
            assert!(tracks.add(9, 1, time, payload.as_bytes()));
        }
        assert!(!tracks.add(9, 1, 5, b"C|9|queue|x"));
        assert_eq!(tracks.counters[&(9, "queue".into())], [(1, 3), (3, -1)]);
        let sends = &tracks.instants[&(9, String::new(), "nn.send".into())];
        assert_eq!(sends.iter().map(|send| &*send.attributes).collect::<Vec<_>>(), ["#h=4", "#h=5"]);
    }
}
