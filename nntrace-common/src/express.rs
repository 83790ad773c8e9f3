//! The express lane: a ring in memory that a thread of a traced program shares with the collector, and writes its marks
//! to instead of calling the probed function.
//!
//! A lane is a sealed memfd: a page with the [header](offsets), and after it the ring. Everything is in the byte order of the
//! host, which is little-endian. One thread writes, one collector reads. Records are multiples of [`UNIT`] bytes,
//! are never split at the ring's end, and begin with a word of kind, length and a value, and a word with the time. That is
//! in ns of `CLOCK_MONOTONIC`, or in [ticks](crate::ticks) where both sides agree on it.
//!
//! How a thread and a collector agree on a lane is described in `docs/express.md` of the profiler.

/// Name of the memfd.
pub const LANE_NAME: &str = "nntrace-lane";
/// First word of a lane: the format and its version.
pub const MAGIC: u64 = u64::from_le_bytes(*b"nnlane\0\x01");
/// Bytes in front of the ring.
pub const HEADER_BYTES: usize = 4096;
/// Bytes of the smallest ring.
pub const MIN_RING_BYTES: usize = 16 * 1024;
/// Bytes of the largest ring.
pub const MAX_RING_BYTES: usize = 4 * 1024 * 1024;
/// Bytes that the length of every record is a multiple of: a record without text.
pub const UNIT: usize = 16;
/// Bytes of the longest text in a record.
pub const MAX_TEXT_BYTES: usize = 255;
/// Sites that a ring can define.
pub const MAX_SITES: u32 = 1024;
/// First value of [`offsets::LEASE`]: a collector has accepted the lane, and its lease follows.
pub const ACCEPTED: u64 = 1;
/// Time for which a collector promises to read a lane from the last renewal on, ns.
pub const LEASE_NS: u64 = 2_000_000_000;
/// First argument of the offering function in place of a file: the ring is half full.
pub const DOORBELL: i64 = -1;
/// First argument of the offering function in place of a file: the second is the number of sections that hooks have left out
/// in the process so far, reported each time it has doubled.
pub const SECTIONS_LEFT_OUT: i64 = -2;
/// First argument of the offering function in place of a file: the second is a number of words that lead to functions, and
/// could not be changed.
pub const WORDS_REFUSED: i64 = -3;
/// First argument of the offering function in place of a file: the second is a number of files that the process has loaded, and
/// that were not examined while it waited.
pub const FILES_UNANSWERED: i64 = -4;

/// Offsets of the words of the header, each written by one side.
pub mod offsets {
    /// [`MAGIC`](super::MAGIC), by the thread.
    pub const MAGIC: usize = 0;
    /// Number of the lane in its process, by the thread: the one that it is offered under.
    pub const KEY: usize = 8;
    /// Bytes of the ring, by the thread.
    pub const RING_BYTES: usize = 16;
    /// One of [`clocks`](super::clocks), by the thread. The last one is set before the first record is written.
    pub const CLOCK: usize = 24;
    /// One of [`sections`](super::sections), by the thread.
    pub const SECTIONS: usize = 32;
    /// Bytes written so far, by the thread.
    pub const HEAD: usize = 64;
    /// 1 once the thread writes no more to it, by the thread.
    pub const CLOSED: usize = 72;
    /// Bytes read so far, by the collector.
    pub const TAIL: usize = 128;
    /// Time until which the collector reads the lane, ns of `CLOCK_MONOTONIC`; 0 before it does. By the collector.
    pub const LEASE: usize = 192;
    /// Time until which the collector reads the lane, in ticks; 0 where it cannot convert them. Set before [`LEASE`].
    /// By the collector.
    pub const TICK_LEASE: usize = 200;
    /// 1 where no two marks of the thread may have the same time, as it has another lane, whose marks have to be put in order
    /// with these; set in all its lanes before the [`LEASE`] of the last one. By the collector.
    pub const DISTINCT: usize = 208;
    /// Bytes that all lanes of the library that has made this one may take; 0 where the collector does not say. Set before the
    /// first [`LEASE`]. By the collector.
    pub const GRANT: usize = 216;
}

/// Clocks of the times in a lane.
pub mod clocks {
    /// ns of `CLOCK_MONOTONIC`.
    pub const NS: u64 = 0;
    /// ns of `CLOCK_MONOTONIC`, by a thread that could write ticks.
    pub const NS_OR_TICKS: u64 = 1;
    /// [Ticks](crate::ticks).
    pub const TICKS: u64 = 2;
}

/// Kinds of the sections in a lane.
pub mod sections {
    /// Sections that a program marks.
    pub const MARKED: u64 = 0;
    /// Calls of an engine's functions: as those that are probed, they are a part of the section around them while the engine
    /// prepares a model.
    pub const CALLS: u64 = 1;
}

/// Kind of a record: the lowest byte of its first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// The innermost section of the thread ends.
    End = 1,
    /// A section begins: the value is the number of its site.
    Site = 2,
    /// A mark as its payload: the value is the length of the text, which follows.
    Text = 3,
    /// The text of a site, of this number: prefix, tag and name. The second word is its length.
    Define = 4,
    /// Nothing up to the end of the ring.
    Skip = 5,
}

impl Kind {
    const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::End,
            2 => Self::Site,
            3 => Self::Text,
            4 => Self::Define,
            5 => Self::Skip,
            _ => return None,
        })
    }
}

/// First words of a record, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Kind.
    pub kind: Kind,
    /// Bytes of the record; a multiple of [`UNIT`].
    pub length: usize,
    /// Number of a site.
    pub site: u32,
    /// Bytes of the text that follows; 0 where there is none.
    pub text: usize,
    /// Time by the lane's clock; 0 for a definition and a skip.
    pub time: u64,
}

impl Head {
    /// Reads the two words that a record begins with, at the offset `at` of a ring of `ring_bytes`, of which `written` bytes
    /// from there on are written. `None` for anything that no version of this format writes.
    #[must_use]
    #[inline]
    pub const fn read(words: [u64; 2], at: usize, ring_bytes: usize, written: u64) -> Option<Self> {
        let [first, second] = words;
        let Some(kind) = Kind::from_byte(first as u8) else { return None };
        let length = (first >> 8 & 0xffff) as usize;
        let value = (first >> 32) as u32;
        let to_end = ring_bytes - at;
        if length == 0 || !length.is_multiple_of(UNIT) || length > to_end || length as u64 > written {
            return None;
        }
        let (text, site, time) = match kind {
            Kind::End => (0, 0, second),
            Kind::Site => (0, value, second),
            Kind::Text => (value as usize, 0, second),
            Kind::Define => (second as usize, value, 0),
            Kind::Skip => {
                return if length == to_end {
                    Some(Self { kind, length, site: 0, text: 0, time: 0 })
                } else {
                    None
                };
            }
        };
        let has_text = matches!(kind, Kind::Text | Kind::Define);
        if site >= MAX_SITES
            || text > MAX_TEXT_BYTES
            || length != record_bytes(text)
            || (has_text && text == 0)
        {
            return None;
        }
        Some(Self { kind, length, site, text, time })
    }

    /// Returns the first word of a record.
    #[must_use]
    #[inline]
    pub const fn word(kind: Kind, length: usize, value: u32) -> u64 {
        kind as u64 | (length as u64) << 8 | (value as u64) << 32
    }
}

/// Returns the length of a record with a text of this many bytes.
#[must_use]
#[inline]
pub const fn record_bytes(text: usize) -> usize {
    UNIT + text.next_multiple_of(UNIT)
}

/// Whether a ring may have this size: a power of two within the bounds.
#[must_use]
pub const fn is_ring_size(bytes: u64) -> bool {
    bytes.is_power_of_two() && bytes >= MIN_RING_BYTES as u64 && bytes <= MAX_RING_BYTES as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const RING: usize = MIN_RING_BYTES;

    fn head(kind: Kind, length: usize, value: u32, second: u64) -> Option<Head> {
        Head::read([Head::word(kind, length, value), second], 0, RING, RING as u64)
    }

    #[test]
    fn records_are_read_as_they_are_written() {
        let plain = Head { kind: Kind::End, length: 16, site: 0, text: 0, time: 7 };
        assert_eq!(head(Kind::End, 16, 0, 7), Some(plain));
        assert_eq!(head(Kind::Site, 16, 3, 7), Some(Head { kind: Kind::Site, site: 3, ..plain }));
        let text = Head { kind: Kind::Text, length: 48, text: 17, ..plain };
        assert_eq!(head(Kind::Text, 48, 17, 7), Some(text));
        let site = Head { kind: Kind::Define, length: 32, site: 9, text: 16, time: 0 };
        assert_eq!(head(Kind::Define, 32, 9, 16), Some(site));
    }

    #[test]
    fn what_no_thread_writes_is_refused() {
        for (kind, length, value, second) in [
            (Kind::End, 0, 0, 1),
            (Kind::End, 8, 0, 1),
            (Kind::End, 32, 0, 1),
            (Kind::Site, 16, MAX_SITES, 1),
            (Kind::Text, 16, 0, 1),
            (Kind::Text, 16, 1, 1),
            (Kind::Text, 16 + 256, 256, 1),
            (Kind::Define, 16, 0, u64::MAX),
            (Kind::Skip, 16, 0, 0),
        ] {
            assert_eq!(head(kind, length, value, second), None, "{kind:?} {length} {value} {second}");
        }
        assert_eq!(Head::read([6 | 16 << 8, 0], 0, RING, 16), None);
        let end = [Head::word(Kind::End, 16, 0), 1];
        assert_eq!(Head::read(end, 0, RING, 0), None, "not written yet");
        assert!(Head::read(end, RING - 16, RING, 16).is_some());
        assert_eq!(Head::read([Head::word(Kind::Text, 32, 1), 1], RING - 16, RING, 32), None, "split");
        assert!(Head::read([Head::word(Kind::Skip, 16, 0), 0], RING - 16, RING, 16).is_some());
    }

    #[test]
    fn sizes_of_rings_are_powers_of_two() {
        assert!(is_ring_size(16 * 1024) && is_ring_size(4 * 1024 * 1024));
        assert!(
            !is_ring_size(0) && !is_ring_size(8 * 1024) && !is_ring_size(24 * 1024) && !is_ring_size(1 << 23)
        );
    }
}
