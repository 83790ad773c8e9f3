//! Texts that come again and again, by number.

use rustc_hash::FxHashMap;

use crate::model::capped_table::OTHERS;

/// Texts by number.
#[derive(Clone, Debug)]
pub(crate) struct Texts {
    numbers: FxHashMap<Box<[u8]>, u32>,
    all: Vec<String>,
    /// More different texts than that are kept as one.
    most: usize,
    /// How often one of these came.
    pub(crate) beyond: u64,
}

impl Texts {
    pub(super) fn new(most: usize) -> Self {
        Self { numbers: FxHashMap::default(), all: Vec::new(), most, beyond: 0 }
    }

    /// The number of a text.
    pub(crate) fn number(&mut self, text: &[u8]) -> u32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        if self.all.len() >= self.most {
            self.beyond += 1;
            return u32::MAX;
        }
        let number = self.all.len() as u32;
        self.all.push(String::from_utf8_lossy(text).into_owned());
        self.numbers.insert(text.into(), number);
        number
    }

    /// The text of a number.
    #[must_use]
    pub(crate) fn text(&self, number: u32) -> &str {
        self.all.get(number as usize).map_or(OTHERS, String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_keeps_its_number_and_too_many_are_one() {
        let mut texts = Texts::new(100);
        assert_eq!((texts.number(b"foo"), texts.number(b"bar"), texts.number(b"foo")), (0, 1, 0));
        assert_eq!(texts.text(1), "bar");
        for number in 0..200_u32 {
            texts.number(&number.to_ne_bytes());
        }
        let others = texts.number(b"one more");
        assert_eq!(texts.text(others), OTHERS);
        assert_eq!(texts.number(b"one more"), texts.number(b"and another"));
        assert_eq!((texts.number(b"bar"), texts.beyond > 100), (1, true));
    }
}
