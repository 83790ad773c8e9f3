//! Attributes: the `#key=value` pairs that follow the name of a mark.
//!
//! Source: the mark contract, section 1. Parsed in user space only: the kernel programs pass on marks that have any.

use crate::mark::MARK_BYTES;

/// Name of an instant that hands work over.
pub const SEND: &[u8] = b"nn.send";
/// Name of an instant that takes over work handed over before.
pub const RECEIVE: &[u8] = b"nn.recv";
/// Name of an instant at which a thread that has taken work over stops waiting for the permission to begin it.
pub const GATE: &[u8] = b"nn.gate";

/// Pairs of a text, in their order. A key without `=` has an empty value.
#[derive(Clone, Debug)]
pub struct Attributes<'a> {
    rest: &'a [u8],
}

impl<'a> Attributes<'a> {
    /// Returns the attributes of a payload whose name starts at `name_at`.
    #[must_use]
    pub fn of(payload: &'a [u8], name_at: u16) -> Self {
        let rest = payload.get(usize::from(name_at)..).unwrap_or_default();
        let end = rest.iter().take(MARK_BYTES).position(|&byte| byte == 0 || byte == b'\n');
        let rest = &rest[..end.unwrap_or(rest.len())];
        let first = rest.iter().position(|&byte| byte == b'#').map_or(rest.len(), |at| at + 1);
        Self { rest: &rest[first..] }
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.rest.is_empty() {
                return None;
            }
            let end = self.rest.iter().position(|&byte| byte == b'#').unwrap_or(self.rest.len());
            let pair = &self.rest[..end];
            self.rest = self.rest.get(end + 1..).unwrap_or_default();
            if !pair.is_empty() {
                let equals = pair.iter().position(|&byte| byte == b'=').unwrap_or(pair.len());
                return Some((&pair[..equals], pair.get(equals + 1..).unwrap_or_default()));
            }
        }
    }
}

/// Name of a piece of work that is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Handle {
    /// Unique in its process.
    OfProcess(u64),
    /// Unique in the whole system: the number has the prefix `g.`.
    OfSystem(u64),
}

impl Handle {
    /// Parses a value of `h`; `None` when it is not a number.
    #[must_use]
    pub fn read(value: &[u8]) -> Option<Self> {
        match value.strip_prefix(b"g.") {
            Some(number) => number_of(number).map(Self::OfSystem),
            None => number_of(value).map(Self::OfProcess),
        }
    }
}

/// Values of the reserved keys of a mark. Of a key that occurs twice, the last value counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reserved<'a> {
    /// `iter`: the iteration of a loop.
    pub iteration: Option<u64>,
    /// `acct`: the account that the time is charged to. An empty one is none.
    pub account: Option<&'a [u8]>,
    /// `h`: the work that is handed over.
    pub handle: Option<Handle>,
}

impl<'a> Reserved<'a> {
    /// Parses the reserved keys. A value that cannot be parsed is left out.
    #[must_use]
    pub fn read(attributes: Attributes<'a>) -> Self {
        let mut reserved = Self::default();
        for (key, value) in attributes {
            match key {
                b"iter" => reserved.iteration = number_of(value),
                b"acct" => reserved.account = Some(value).filter(|value| !value.is_empty()),
                b"h" => reserved.handle = Handle::read(value),
                _ => {}
            }
        }
        reserved
    }
}

fn number_of(text: &[u8]) -> Option<u64> {
    core::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(&str, &str)> {
        let text_of = |bytes| core::str::from_utf8(bytes).unwrap();
        Attributes::of(text.as_bytes(), 0).map(|(key, value)| (text_of(key), text_of(value))).collect()
    }

    #[test]
    fn pairs_stand_behind_the_name() {
        assert_eq!(pairs("f|g#iter=4#img=a=b.jpg"), [("iter", "4"), ("img", "a=b.jpg")]);
        assert_eq!(pairs("f#flag##x="), [("flag", ""), ("x", "")]);
        assert_eq!(pairs("f#a=1\n#b=2"), [("a", "1")]);
        assert!(pairs("f").is_empty() && pairs("").is_empty() && pairs("f#").is_empty());
    }

    #[test]
    fn reserved_keys_are_read() {
        let read = |text: &'static str| Reserved::read(Attributes::of(text.as_bytes(), 0));
        let all = read("f#acct=foo#iter=18446744073709551615#h=7");
        assert_eq!((all.iteration, all.account), (Some(u64::MAX), Some(&b"foo"[..])));
        assert_eq!(all.handle, Some(Handle::OfProcess(7)));
        assert_eq!(read("f#h=g.7").handle, Some(Handle::OfSystem(7)));
        assert_eq!(read("f#iter=x#acct=#h=-1"), Reserved::default());
    }

    proptest::proptest! {
        #[test]
        fn anything_is_survived(text in proptest::collection::vec(proptest::num::u8::ANY, 0..64), at in 0..80_u16) {
            let _ = Reserved::read(Attributes::of(&text, at));
        }
    }
}
