//! Entries of frequency limits and of cooling devices in a block of events. `docs/format.md` describes them byte by byte.

use nntrace_common::{
    frequency_limits::{CoolingRecord, LimitRecord, device},
    record::RecordKind,
};

use super::varint::{Cursor, put, put_bytes};

/// Returns the entry of a policy's limits.
pub(super) fn limit_bytes(limit: &LimitRecord) -> Vec<u8> {
    let LimitRecord { cpu, time, min_khz, max_khz, .. } = *limit;
    let mut bytes = Vec::new();
    put(&mut bytes, time);
    for number in [cpu, min_khz, max_khz] {
        put(&mut bytes, u64::from(number));
    }
    bytes
}

/// Reads the entry of a policy's limits; `None` if it is none. More than is known may be after it.
pub(super) fn limit(entry: &[u8]) -> Option<LimitRecord> {
    let mut cursor = Cursor::default();
    Some(LimitRecord {
        kind: RecordKind::FrequencyLimit as u32,
        time: cursor.number(entry)?,
        cpu: cursor.small(entry)?,
        min_khz: cursor.small(entry)?,
        max_khz: cursor.small(entry)?,
    })
}

/// Returns the entry of a cooling device's state.
pub(super) fn cooling_bytes(cooling: &CoolingRecord) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes, cooling.time);
    put(&mut bytes, cooling.state);
    put_bytes(&mut bytes, cooling.device());
    bytes
}

/// Reads the entry of a cooling device's state; `None` if it is none. More than is known may be after it.
pub(super) fn cooling(entry: &[u8]) -> Option<CoolingRecord> {
    let mut cursor = Cursor::default();
    Some(CoolingRecord {
        kind: RecordKind::Cooling as u32,
        time: cursor.number(entry)?,
        state: cursor.number(entry)?,
        device: device(cursor.bytes(entry)?),
    })
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use proptest::prelude::*;

    use super::*;

    /// Checks that an entry is read as what it was, with more after it as well, and not if it is cut.
    fn check<T: Copy + Debug + PartialEq>(value: T, entry: &[u8], read: impl Fn(&[u8]) -> Option<T>) {
        assert_eq!(read(entry), Some(value));
        assert_eq!(read(&[entry, &[7]].concat()), Some(value), "of a later version");
        for length in 0..entry.len() {
            assert_eq!(read(&entry[..length]), None, "cut at {length}");
        }
    }

    #[test]
    fn entries_are_as_they_are_described() {
        let kind = RecordKind::FrequencyLimit as u32;
        let limit_record = LimitRecord { kind, cpu: 4, time: 300, min_khz: 0, max_khz: 1_200_000 };
        let entry = limit_bytes(&limit_record);
        assert_eq!(entry, [0xac, 0x02, 4, 0, 0x80, 0x9f, 0x49]);
        check(limit_record, &entry, limit);
        let kind = RecordKind::Cooling as u32;
        let cooling_record = CoolingRecord { kind, device: device(b"cpufreq-cpu4"), time: 300, state: 3 };
        let entry = cooling_bytes(&cooling_record);
        assert_eq!(entry, [&[0xac, 0x02, 3, 12], &b"cpufreq-cpu4"[..]].concat());
        check(cooling_record, &entry, cooling);
    }

    proptest! {
        #[test]
        fn entries_are_read_back(
            time in any::<u64>(), numbers in any::<[u32; 3]>(), state in any::<u64>(),
            name in proptest::collection::vec(1..=u8::MAX, 0..30),
        ) {
            let [cpu, min_khz, max_khz] = numbers;
            let record = LimitRecord { kind: RecordKind::FrequencyLimit as u32, cpu, time, min_khz, max_khz };
            prop_assert_eq!(limit(&limit_bytes(&record)), Some(record));
            let record = CoolingRecord { kind: RecordKind::Cooling as u32, device: device(&name), time, state };
            prop_assert_eq!(cooling(&cooling_bytes(&record)), Some(record));
        }

        #[test]
        fn anything_is_survived(entry in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Some(record) = limit(&entry) {
                prop_assert_eq!(limit(&limit_bytes(&record)), Some(record));
            }
            if let Some(record) = cooling(&entry) {
                prop_assert_eq!(cooling(&cooling_bytes(&record)), Some(record));
            }
        }
    }
}
