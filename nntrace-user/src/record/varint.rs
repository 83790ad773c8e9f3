//! Integers of variable length: LEB128, and zigzag for differences, as in protocol buffers.

/// Bytes of the longest integer.
const LONGEST: usize = 10;

/// Appends an integer: seven bits a byte, the lowest first, the highest bit set in all bytes but the last.
#[inline]
pub(super) fn put(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Appends the difference between two integers, modulo 2^64: small ones of either sign are short.
#[inline]
pub(super) fn put_difference(bytes: &mut Vec<u8>, value: u64, base: u64) {
    let difference = value.wrapping_sub(base).cast_signed();
    put(bytes, ((difference << 1) ^ (difference >> 63)).cast_unsigned());
}

/// Reader of a block's content. Everything is `None` after its end, and for integers of no such form.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor {
    at: usize,
}

impl Cursor {
    /// Returns the offset of the next byte.
    #[must_use]
    pub(super) fn offset(self) -> usize {
        self.at
    }

    /// Reads a byte.
    #[inline]
    pub(super) fn byte(&mut self, bytes: &[u8]) -> Option<u8> {
        let byte = *bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// Reads an integer.
    #[inline]
    pub(super) fn number(&mut self, bytes: &[u8]) -> Option<u64> {
        let first = self.byte(bytes)?;
        if first < 0x80 {
            return Some(u64::from(first));
        }
        let mut value = u64::from(first & 0x7f);
        for place in 1..LONGEST {
            let byte = self.byte(bytes)?;
            let bits = u64::from(byte & 0x7f);
            if place == LONGEST - 1 && bits > 1 {
                return None;
            }
            value |= bits << (7 * place);
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// Reads an integer of 32 bits.
    #[inline]
    pub(super) fn small(&mut self, bytes: &[u8]) -> Option<u32> {
        self.number(bytes)?.try_into().ok()
    }

    /// Reads a difference, and returns its sum with `base`.
    #[inline]
    pub(super) fn difference(&mut self, bytes: &[u8], base: u64) -> Option<u64> {
        let coded = self.number(bytes)?;
        Some(base.wrapping_add((coded >> 1) ^ (coded & 1).wrapping_neg()))
    }

    /// Reads eight bytes, the lowest first.
    #[inline]
    pub(super) fn word(&mut self, bytes: &[u8]) -> Option<u64> {
        let word = bytes.get(self.at..)?.first_chunk()?;
        self.at += size_of::<u64>();
        Some(u64::from_le_bytes(*word))
    }

    /// Reads a length and this many bytes.
    #[inline]
    pub(super) fn bytes<'a>(&mut self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number(bytes)?).ok()?;
        let end = self.at.checked_add(length)?;
        let found = bytes.get(self.at..end)?;
        self.at = end;
        Some(found)
    }
}

/// Appends a length and this many bytes.
pub(super) fn put_bytes(bytes: &mut Vec<u8>, value: &[u8]) {
    put(bytes, value.len() as u64);
    bytes.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn forms_are_those_of_protocol_buffers() {
        let mut bytes = Vec::new();
        put(&mut bytes, 300);
        assert_eq!(bytes, [0xac, 0x02]);
        bytes.clear();
        put_difference(&mut bytes, 7, 8);
        assert_eq!(bytes, [1]);
    }

    #[test]
    fn what_is_too_long_or_cut_is_refused() {
        assert_eq!(Cursor::default().number(&[0x80; 11]), None);
        assert_eq!(
            Cursor::default().number(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]),
            None
        );
        assert_eq!(Cursor::default().number(&[0x80]), None);
        assert_eq!(Cursor::default().bytes(&[5, 1, 2]), None);
        assert_eq!(
            Cursor::default().bytes(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
            None
        );
    }

    proptest! {
        #[test]
        fn what_is_put_is_read(values in proptest::collection::vec((any::<u64>(), any::<u64>(), 0..64_u32), 0..20)) {
            let mut bytes = Vec::new();
            for &(value, base, shift) in &values {
                put(&mut bytes, value >> shift);
                put_difference(&mut bytes, value, base);
                put_bytes(&mut bytes, &base.to_le_bytes()[..shift as usize % 9]);
            }
            let mut cursor = Cursor::default();
            for &(value, base, shift) in &values {
                prop_assert_eq!(cursor.number(&bytes), Some(value >> shift));
                prop_assert_eq!(cursor.difference(&bytes, base), Some(value));
                prop_assert_eq!(cursor.bytes(&bytes), Some(&base.to_le_bytes()[..shift as usize % 9]));
            }
            prop_assert_eq!(cursor.offset(), bytes.len());
        }
    }
}
