//! Entry of a call in a block of events. `docs/calls.md` describes it byte by byte.

use nntrace_common::calls::{CallEnd, MAX_ITEMS, MemoryState};

use super::varint::{Cursor, put, put_bytes, put_difference};
use crate::model::calls::{Call, Captured};

/// Code of a value that is a word; those of values in memory are their states and this.
const WORD: u8 = 0;
/// Code of the first state of memory.
const MEMORY: u8 = 1;

/// Returns the entry of a call. It begins with the time of the call's begin.
pub(super) fn bytes(call: &Call<'_>) -> Vec<u8> {
    let Call { definition, pid, tid, begin, end, ended, values } = call;
    let mut bytes = Vec::with_capacity(64);
    put(&mut bytes, *begin);
    put_difference(&mut bytes, *end, *begin);
    for number in [*definition, *pid, *tid] {
        put(&mut bytes, u64::from(number));
    }
    bytes.push(*ended as u8);
    put(&mut bytes, values.len() as u64);
    for value in values {
        match value {
            Captured::Word(word) => {
                bytes.push(WORD);
                put(&mut bytes, *word);
            }
            Captured::Memory { state, bytes: memory } => {
                bytes.push(MEMORY + *state as u8);
                put_bytes(&mut bytes, memory);
            }
        }
    }
    bytes
}

/// Returns the begin of a call (ns) by its entry.
pub(super) fn begin(entry: &[u8]) -> Option<u64> {
    Cursor::default().number(entry)
}

/// Reads an entry; `None` if it is none.
pub(super) fn read(entry: &[u8]) -> Option<Call<'_>> {
    let mut cursor = Cursor::default();
    let begin = cursor.number(entry)?;
    let end = cursor.difference(entry, begin)?;
    let (definition, pid, tid) = (cursor.small(entry)?, cursor.small(entry)?, cursor.small(entry)?);
    let ended = CallEnd::from_number(cursor.byte(entry)?.into())?;
    let count = cursor.number(entry).filter(|count| *count <= MAX_ITEMS as u64)?;
    let values = (0..count).map(|_| match cursor.byte(entry)? {
        WORD => Some(Captured::Word(cursor.number(entry)?)),
        code => Some(Captured::Memory { state: state(code)?, bytes: cursor.bytes(entry)? }),
    });
    let values = values.collect::<Option<Vec<_>>>()?;
    (cursor.offset() == entry.len()).then_some(Call { definition, pid, tid, begin, end, ended, values })
}

fn state(code: u8) -> Option<MemoryState> {
    const STATES: [MemoryState; 5] = [
        MemoryState::Unread,
        MemoryState::Whole,
        MemoryState::Cut,
        MemoryState::Unreadable,
        MemoryState::Null,
    ];
    let number = code.checked_sub(MEMORY)?;
    STATES.into_iter().find(|state| *state as u8 == number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_entry_is_as_it_is_described() {
        let values = vec![
            Captured::Word(300),
            Captured::Memory { state: MemoryState::Cut, bytes: b"ab" },
            Captured::Memory { state: MemoryState::Null, bytes: b"" },
        ];
        let call = Call { definition: 1, pid: 2, tid: 3, begin: 5, end: 8, ended: CallEnd::Returned, values };
        let entry = bytes(&call);
        assert_eq!(entry, [5, 6, 1, 2, 3, 1, 3, 0, 0xac, 2, 3, 2, b'a', b'b', 5, 0]);
        assert_eq!(begin(&entry), Some(5));
        for length in 0..entry.len() {
            assert_eq!(read(&entry[..length]), None, "cut at {length}");
        }
        assert_eq!(read(&[&entry[..], &[0]].concat()), None, "longer");
    }

    proptest! {
        #[test]
        fn entries_are_read_back(
            numbers in any::<[u32; 3]>(),
            times in any::<[u64; 2]>(),
            ended in 0..4_u32,
            values in proptest::collection::vec((0..6_u8, any::<u64>(), proptest::collection::vec(any::<u8>(), 0..20)), 0..=MAX_ITEMS),
        ) {
            let values = values.iter().map(|(kind, word, bytes)| match state(*kind) {
                Some(state) => Captured::Memory { state, bytes },
                None => Captured::Word(*word),
            });
            let [definition, pid, tid] = numbers;
            let call = Call {
                definition, pid, tid,
                begin: times[0],
                end: times[1],
                ended: CallEnd::from_number(ended).unwrap(),
                values: values.collect(),
            };
            let entry = bytes(&call);
            prop_assert_eq!(read(&entry), Some(call));
        }

        #[test]
        fn anything_is_survived(entry in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Some(call) = read(&entry) {
                let again = bytes(&call);
                prop_assert_eq!(read(&again), Some(call));
            }
        }
    }
}
