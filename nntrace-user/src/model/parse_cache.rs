//! Cache of parsed short texts: traces are repetitive, and comparing is less work than parsing.

use std::hint::cold_path;

/// Words of the longest text that is cached.
const WORDS: usize = 8;
/// Bytes of the shortest text that is cached.
const SHORTEST: usize = 8;

/// Parsed values of about the last `N` texts; `N` is a power of two.
pub(crate) struct ParseCache<T, const N: usize> {
    places: Box<[Place<T>]>,
}

/// Text with its value.
#[derive(Clone, Copy, Default)]
struct Place<T> {
    /// Whole words of the text.
    words: [u64; WORDS],
    /// Last eight bytes.
    last: u64,
    /// Length in bytes; 0 for an empty place.
    len: usize,
    value: T,
}

impl<T: Copy + Default, const N: usize> Default for ParseCache<T, N> {
    fn default() -> Self {
        const { assert!(N.is_power_of_two() && N > 1) };
        Self { places: vec![Place::default(); N].into_boxed_slice() }
    }
}

impl<T: Copy, const N: usize> ParseCache<T, N> {
    /// Returns the value of a text. On a miss, `read` parses it, from the text alone; `None` is not kept.
    #[inline]
    pub(crate) fn get(&mut self, text: &[u8], read: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
        let (chunks, _) = text.as_chunks();
        let Some(last) = text.last_chunk::<SHORTEST>().filter(|_| chunks.len() <= WORDS) else {
            cold_path();
            return read(text);
        };
        let last = u64::from_le_bytes(*last);
        let first = hash(chunks, last) as usize & (N - 1);
        // Two places each, so that two texts with the same first place do not evict each other.
        for place in [first, first ^ 1] {
            let place = &self.places[place];
            if place.len == text.len() && place.last == last && same(chunks, &place.words) {
                return Some(place.value);
            }
        }
        cold_path();
        let value = read(text)?;
        let mut words = [0; WORDS];
        for (word, chunk) in words.iter_mut().zip(chunks) {
            *word = u64::from_le_bytes(*chunk);
        }
        self.places[first ^ 1] = self.places[first];
        self.places[first] = Place { words, last, len: text.len(), value };
        Some(value)
    }
}

#[inline]
fn same(chunks: &[[u8; 8]], words: &[u64; WORDS]) -> bool {
    chunks.iter().zip(words).all(|(chunk, word)| u64::from_le_bytes(*chunk) == *word)
}

/// Hashes the whole words and the last eight bytes of a text.
#[inline]
fn hash(chunks: &[[u8; 8]], last: u64) -> u64 {
    /// Odd, and without a pattern; each word has its own factor, so that none waits for another.
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut sum = last.wrapping_mul(MIX);
    let mut factor = MIX;
    for chunk in chunks {
        factor = factor.rotate_left(7) | 1;
        sum = sum.wrapping_add(u64::from_le_bytes(*chunk).wrapping_mul(factor));
    }
    // The upper bits depend on every byte.
    sum >> 48
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_known_is_not_read_again() {
        let mut recall = ParseCache::<usize, 4>::default();
        for len in [8, 9, 16, 31, 64, 71] {
            let text = vec![b'x'; len];
            assert_eq!(recall.get(&text, |text| Some(text.len())), Some(len));
            assert_eq!(recall.get(&text, |_| panic!("{len} bytes are read twice")), Some(len));
        }
        assert_eq!(recall.get(&[b'x'; 7], |_| None), None);
        assert_eq!(recall.get(&[b'x'; 72], |_| Some(0)), Some(0));
        assert_eq!(recall.get(&[b'x'; 72], |_| Some(1)), Some(1));
        assert_eq!(recall.get(&[b'y'; 20], |_| None), None);
        assert_eq!(recall.get(&[b'y'; 20], |_| Some(2)), Some(2));
    }

    proptest! {
        #[test]
        fn no_text_is_taken_for_another(
            texts in prop::collection::vec(("[ab]{0,2}", 0..75_usize, "[ab]{0,2}"), 1..200),
        ) {
            let mut recall = ParseCache::<u64, 8>::default();
            let number = |text: &[u8]| text.iter().fold(7_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(*byte));
            for (start, len, end) in texts {
                let text = format!("{start}{}{end}", "-".repeat(len));
                prop_assert_eq!(recall.get(text.as_bytes(), |text| Some(number(text))), Some(number(text.as_bytes())));
            }
        }
    }
}
