//! Marks beside the stacks of sections: counters, instants, asynchronous slices.
//!
//! Source: the mark contract, section 1, and the payloads in the reference notes (section 8). Parsed in user space
//! only: the kernel programs pass on the payload unchanged.

use crate::mark::{Kind, kind};

/// Parsed payload. Its process id is left out: pairs are matched by the ids from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrackMark<'a> {
    /// A counter gets a value.
    Counter {
        /// Name.
        name: &'a [u8],
        /// Value.
        value: i64,
    },
    /// A slice begins, and ends elsewhere, matched by track, name and cookie.
    SliceBegin {
        /// Track; empty when it has none of its own.
        track: &'a [u8],
        /// Name.
        name: &'a [u8],
        /// Distinguishes slices of one name.
        cookie: &'a [u8],
    },
    /// A slice ends.
    SliceEnd {
        /// Track; empty when it has none of its own.
        track: &'a [u8],
        /// Name; empty where track and cookie are enough.
        name: &'a [u8],
        /// Distinguishes slices of one name.
        cookie: &'a [u8],
    },
    /// An instant.
    Instant {
        /// Track; empty for the thread's own.
        track: &'a [u8],
        /// Name.
        name: &'a [u8],
    },
}

impl<'a> TrackMark<'a> {
    /// Parses a payload; `None` when it is no such mark, or incomplete.
    #[must_use]
    pub fn read(payload: &'a [u8]) -> Option<Self> {
        let kind = kind(payload)?;
        let end = payload.iter().position(|&byte| byte == 0 || byte == b'\n').unwrap_or(payload.len());
        // The letter, the process id, and the rest.
        let rest = payload[..end].splitn(3, |&byte| byte == b'|').nth(2)?;
        match kind {
            Kind::Counter => {
                let (name, value) = split_first_value(rest)?;
                Some(Self::Counter { name, value })
            }
            Kind::AsyncBegin => {
                let (name, cookie) = split_cookie(rest)?;
                Some(Self::SliceBegin { track: b"", name, cookie })
            }
            Kind::AsyncEnd => {
                let (name, cookie) = split_cookie(rest)?;
                Some(Self::SliceEnd { track: b"", name, cookie })
            }
            Kind::Instant => Some(Self::Instant { track: b"", name: rest }),
            Kind::TrackInstant => {
                let at = rest.iter().position(|&byte| byte == b'|')?;
                Some(Self::Instant { track: &rest[..at], name: &rest[at + 1..] })
            }
            Kind::TrackBegin => {
                let (left, cookie) = split_at_last_bar(rest)?;
                let at = left.iter().position(|&byte| byte == b'|')?;
                Some(Self::SliceBegin { track: &left[..at], name: &left[at + 1..], cookie })
            }
            Kind::TrackEnd => {
                let (left, cookie) = split_at_last_bar(rest)?;
                // Older writers put the name in between.
                let at = left.iter().position(|&byte| byte == b'|');
                let track = at.map_or(left, |at| &left[..at]);
                Some(Self::SliceEnd { track, name: b"", cookie })
            }
            Kind::Begin | Kind::End => None,
        }
    }
}

fn split_at_last_bar(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = text.iter().rposition(|&byte| byte == b'|')?;
    Some((&text[..at], &text[at + 1..]))
}

/// Splits at the last bar; some writers (`OpenHarmony`) use a blank instead.
fn split_last(text: &[u8]) -> Option<(&[u8], &[u8])> {
    split_at_last_bar(text).or_else(|| {
        let at = text.iter().rposition(|&byte| byte == b' ')?;
        Some((&text[..at], &text[at + 1..]))
    })
}

/// Splits a name and the cookie after it. `HiTrace`, whose names begin with `H:`, writes a level, a category and arguments after
/// the cookie, which is the first number there, and a signed one.
fn split_cookie(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if text.starts_with(b"H:") {
        let bars = text.iter().enumerate().filter(|(_, byte)| **byte == b'|').map(|(at, _)| at);
        for bar in bars {
            let field = &text[bar + 1..];
            let end = field.iter().position(|&byte| byte == b'|').unwrap_or(field.len());
            let digits = field[..end].strip_prefix(b"-").unwrap_or(&field[..end]);
            if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) {
                return Some((&text[..bar], &field[..end]));
            }
        }
    }
    split_last(text)
}

/// Splits a name and the number after it; a further field, as Chromium writes, is left out.
fn split_first_value(text: &[u8]) -> Option<(&[u8], i64)> {
    let (left, last) = split_last(text)?;
    let before = split_at_last_bar(left).and_then(|(name, value)| Some((name, number(value)?)));
    match (before, number(last)) {
        // Two numbers in a row: the second is the further field.
        (Some(found), _) => Some(found),
        (None, Some(value)) => Some((left, value)),
        (None, None) => None,
    }
}

fn number(text: &[u8]) -> Option<i64> {
    core::str::from_utf8(text).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_read() {
        let read = |text: &'static str| TrackMark::read(text.as_bytes());
        let counter = |name: &'static str, value| Some(TrackMark::Counter { name: name.as_bytes(), value });
        assert_eq!(read("C|12|queue|5"), counter("queue", 5));
        assert_eq!(read("C|12|queue|-5\n"), counter("queue", -5));
        assert_eq!(read("C|12|queue|5|1f"), counter("queue", 5));
        assert_eq!(read("C|12|queue|5|7"), counter("queue", 5));
        assert_eq!(read("C|12|H:queue 5"), counter("H:queue", 5));
        let begin = |name: &'static str, cookie: &'static str| {
            Some(TrackMark::SliceBegin { track: b"", name: name.as_bytes(), cookie: cookie.as_bytes() })
        };
        assert_eq!(read("S|12|H:job|1001|M62|aiCategory|model=a|7"), begin("H:job", "1001"));
        assert_eq!(read("S|12|H:job|1001|M62"), begin("H:job", "1001"));
        assert_eq!(read("S|12|H:job|-1|M62|cat"), begin("H:job", "-1"));
        assert_eq!(read("S|12|H:a|-b|7|M62"), begin("H:a|-b", "7"));
        assert_eq!(read("S|12|H:job 1001"), begin("H:job", "1001"));
        assert_eq!(read("S|12|job|M62|5"), begin("job|M62", "5"));
        assert_eq!(read("C|12|queue|many"), None);
        assert_eq!(
            read("S|12|load|77"),
            Some(TrackMark::SliceBegin { track: b"", name: b"load", cookie: b"77" })
        );
        assert_eq!(
            read("F|12|H:load 77"),
            Some(TrackMark::SliceEnd { track: b"", name: b"H:load", cookie: b"77" })
        );
        assert_eq!(
            read("G|12|dma|copy|77"),
            Some(TrackMark::SliceBegin { track: b"dma", name: b"copy", cookie: b"77" })
        );
        for end in ["H|12|dma|77", "H|12|dma|copy|77"] {
            assert_eq!(read(end), Some(TrackMark::SliceEnd { track: b"dma", name: b"", cookie: b"77" }));
        }
        assert_eq!(read("I|12|nn.send#h=1"), Some(TrackMark::Instant { track: b"", name: b"nn.send#h=1" }));
        assert_eq!(read("N|12|dma|done"), Some(TrackMark::Instant { track: b"dma", name: b"done" }));
        for none in ["", "C|", "C|12", "S|12|x", "B|12|x", "E", "N|12|x", "free text"] {
            assert_eq!(read(none), None, "{none}");
        }
    }

    proptest::proptest! {
        #[test]
        fn anything_is_survived(text in proptest::collection::vec(proptest::num::u8::ANY, 0..64), kind in 0..7_usize) {
            let _ = TrackMark::read(&text);
            let mut text = text;
            text.splice(0..0, [b"CSFINGH"[kind], b'|', b'1', b'|']);
            let _ = TrackMark::read(&text);
        }
    }
}
