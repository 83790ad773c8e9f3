//! Entries of turns of rivals in a block of events. `docs/format.md` describes them byte by byte.

use nntrace_common::rivals::{NAME_BYTES, RivalRecord};

use super::varint::{Cursor, put, put_bytes};

/// Returns the entry of a turn.
pub(super) fn bytes(turn: &RivalRecord) -> Vec<u8> {
    let RivalRecord { tid, tgid, cpu, begin, end, .. } = *turn;
    let mut bytes = Vec::new();
    put(&mut bytes, end);
    // 0 is before anything was traced; otherwise the length is shorter than the time.
    let length = if begin == 0 { 0 } else { end.saturating_sub(begin).saturating_add(1) };
    for number in [length, u64::from(cpu), u64::from(tgid), u64::from(tid)] {
        put(&mut bytes, number);
    }
    put_bytes(&mut bytes, turn.name());
    bytes
}

/// Reads the entry of a turn; `None` if it is none. More than is known may be after it.
pub(super) fn read(entry: &[u8]) -> Option<RivalRecord> {
    let mut cursor = Cursor::default();
    let end = cursor.number(entry)?;
    let begin = match cursor.number(entry)? {
        0 => 0,
        length => end.checked_sub(length - 1).filter(|begin| *begin > 0)?,
    };
    let (cpu, tgid, tid) = (cursor.small(entry)?, cursor.small(entry)?, cursor.small(entry)?);
    let mut name = [0; NAME_BYTES];
    let text = cursor.bytes(entry)?.iter().take_while(|byte| **byte != 0);
    for (byte, from) in name.iter_mut().zip(text) {
        *byte = *from;
    }
    Some(RivalRecord::new((tgid, tid), cpu, (begin, end), name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(text: &[u8]) -> [u8; NAME_BYTES] {
        let mut name = [0; NAME_BYTES];
        name[..text.len()].copy_from_slice(text);
        name
    }

    #[test]
    fn entries_are_as_they_are_described() {
        for (begin, length) in [(293, 8), (0, 0)] {
            let turn = RivalRecord::new((5, 6), 1, (begin, 300), name(b"hog"));
            let entry = bytes(&turn);
            assert_eq!(entry, [&[0xac, 0x02, length, 1, 5, 6, 3], &b"hog"[..]].concat());
            assert_eq!(read(&entry), Some(turn));
            assert_eq!(read(&[&entry[..], &[7]].concat()), Some(turn), "of a later version");
            for cut in 0..entry.len() {
                assert_eq!(read(&entry[..cut]), None, "cut at {cut}");
            }
        }
        // Longer than the time, and a name that is too long.
        assert_eq!(read(&[3, 5, 1, 5, 6, 0]), None);
        let long = [&[3, 0, 1, 5, 6, 20][..], &[b'a'; 20]].concat();
        assert_eq!(read(&long).map(|turn| turn.name), Some([b'a'; NAME_BYTES]));
    }

    proptest! {
        #[test]
        fn turns_are_read_back(
            end in any::<u64>(), back in any::<u64>(), ids in any::<[u32; 3]>(),
            text in proptest::collection::vec(1..=u8::MAX, 0..=NAME_BYTES),
        ) {
            let turn = RivalRecord::new((ids[0], ids[1]), ids[2], (end.saturating_sub(back), end), name(&text));
            prop_assert_eq!(read(&bytes(&turn)), Some(turn));
        }

        #[test]
        fn anything_is_survived(entry in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Some(turn) = read(&entry) {
                prop_assert_eq!(read(&bytes(&turn)), Some(turn));
            }
        }
    }
}
