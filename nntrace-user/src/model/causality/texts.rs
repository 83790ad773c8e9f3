//! Texts that come again and again, by number.

use rustc_hash::FxHashMap;

/// More different texts than that are told as one.
const MOST: usize = 1 << 16;
/// What all texts beyond are called.
const OTHERS: &str = "(others)";

/// Texts by number.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    numbers: FxHashMap<Box<[u8]>, u32>,
    all: Vec<String>,
}

impl Texts {
    /// The number of a text.
    pub fn number(&mut self, text: &[u8]) -> u32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let is_last = self.all.len() + 1 >= MOST;
        if is_last && self.all.len() == MOST {
            return MOST as u32 - 1;
        }
        self.all.push(if is_last { OTHERS.into() } else { String::from_utf8_lossy(text).into_owned() });
        let number = self.all.len() as u32 - 1;
        if !is_last {
            self.numbers.insert(text.into(), number);
        }
        number
    }

    /// The text of a number.
    #[must_use]
    pub fn text(&self, number: u32) -> &str {
        self.all.get(number as usize).map_or(OTHERS, String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_keeps_its_number_and_too_many_are_one() {
        let mut texts = Texts::default();
        assert_eq!((texts.number(b"foo"), texts.number(b"bar"), texts.number(b"foo")), (0, 1, 0));
        assert_eq!(texts.text(1), "bar");
        for number in 0..MOST {
            texts.number(&number.to_ne_bytes());
        }
        let others = texts.number(b"one more");
        assert_eq!(texts.text(others), OTHERS);
        assert_eq!(texts.number(b"one more"), texts.number(b"and another"));
        assert_eq!(texts.number(b"bar"), 1);
    }
}
