//! Texts of marks, each kept once: the kind and what stands after the process id.

use nntrace_common::{emit::CAPACITY, mark};
use rustc_hash::FxHashMap;

/// Number of a text.
pub(super) type TextId = u32;

/// Texts by their numbers.
#[derive(Debug, Default)]
pub(super) struct Texts {
    texts: Vec<Box<[u8]>>,
    ids: FxHashMap<Box<[u8]>, TextId>,
}

impl Texts {
    /// Adds a text: `B[NN_LR_PE]run` for `B|1234|[NN_LR_PE]run`.
    pub(super) fn add(&mut self, text: &[u8]) -> TextId {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let id = self.texts.len() as TextId;
        self.texts.push(text.into());
        self.ids.insert(text.into(), id);
        id
    }

    /// Adds the text of a payload: `I|1234|nn.send#h=1`.
    pub(super) fn add_payload(&mut self, payload: &[u8]) -> Option<TextId> {
        let payload = payload.trim_ascii_end();
        mark::kind(payload)?;
        let at = payload.iter().enumerate().filter(|(_, byte)| **byte == b'|').nth(1)?.0;
        let text = [&payload[..1], &payload[at + 1..]].concat();
        Some(self.add(&text))
    }

    /// Returns a text.
    pub(super) fn text(&self, id: TextId) -> &[u8] {
        self.texts.get(id as usize).map_or(&[], |text| text)
    }

    /// Returns all texts, by their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.texts.iter().map(|text| &**text)
    }

    /// Returns the payload of a text, as a process writes it.
    pub(super) fn payload(&self, id: TextId, pid: u32) -> Line {
        let text = self.text(id);
        let (kind, rest) = text.split_at(text.len().min(1));
        let mut line = Line::default();
        line.push(kind);
        line.push(b"|");
        let pid = Digits::of(pid);
        // The id is informative; a name that would be cut is another name.
        if line.len + pid.bytes().len() + 1 + rest.len() < CAPACITY {
            line.push(pid.bytes());
        }
        line.push(b"|");
        line.push(rest);
        line
    }
}

/// Payload of a mark.
pub(super) struct Line {
    bytes: [u8; CAPACITY],
    len: usize,
}

impl Default for Line {
    fn default() -> Self {
        Self { bytes: [0; CAPACITY], len: 0 }
    }
}

impl Line {
    /// Returns the payload of an end.
    pub(super) fn end(pid: u32) -> Self {
        let mut line = Self::default();
        line.push(b"E|");
        line.push(Digits::of(pid).bytes());
        line
    }

    fn push(&mut self, piece: &[u8]) {
        let fitting = &piece[..piece.len().min(CAPACITY - 1 - self.len)];
        self.bytes[self.len..self.len + fitting.len()].copy_from_slice(fitting);
        self.len += fitting.len();
    }

    /// Returns its bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Decimal digits of a process id, without the heap: a mark may not wait for an allocator.
struct Digits {
    bytes: [u8; 10],
    from: usize,
}

impl Digits {
    fn of(mut number: u32) -> Self {
        let mut digits = Self { bytes: [0; 10], from: 10 };
        loop {
            digits.from -= 1;
            digits.bytes[digits.from] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return digits;
            }
        }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[self.from..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(texts: &Texts, id: TextId, pid: u32) -> String {
        String::from_utf8(texts.payload(id, pid).bytes().to_vec()).unwrap()
    }

    #[test]
    fn texts_are_kept_once_and_get_the_id_of_who_writes_them() {
        let mut texts = Texts::default();
        let run = texts.add(b"B[NN_LR_PE]run|now");
        let send = texts.add_payload(b"I|1234|nn.send#h=1\n").unwrap();
        assert_eq!(texts.add_payload(b"B|77|[NN_LR_PE]run|now"), Some(run));
        assert_eq!(payload(&texts, run, 7), "B|7|[NN_LR_PE]run|now");
        assert_eq!(payload(&texts, send, u32::MAX), "I|4294967295|nn.send#h=1");
        assert_eq!(Line::end(70).bytes(), b"E|70");
        for none in ["", "free text", "X|1|x", "I|1"] {
            assert_eq!(texts.add_payload(none.as_bytes()), None, "{none}");
        }
    }

    #[test]
    fn a_name_that_fills_a_mark_is_not_cut() {
        let name = "n".repeat(CAPACITY - 1 - "B|1|".len());
        let mut texts = Texts::default();
        let id = texts.add(format!("B{name}").as_bytes());
        assert_eq!(payload(&texts, id, 1), format!("B|1|{name}"));
        assert_eq!(payload(&texts, id, 12_345), format!("B||{name}"));
    }
}
