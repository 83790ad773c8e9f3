//! Limits of frequencies, from the events of their policies and of cooling devices.
//!
//! Source: `cpu_frequency_limits` (include/trace/events/power.h), `cdev_update` (`drivers/thermal/thermal_trace.h`).
//!
//! ```text
//! cpu_frequency_limits: min=600000 max=1200000 cpu_id=4
//! cdev_update: type=thermal-cpufreq-1 target=3
//! ```

use nntrace_common::{
    frequency_limits::{CoolingRecord, LimitRecord, device},
    record::{Record, RecordKind},
};

use super::{event_fields::value, ftrace::number};

/// Returns the record of an event at a time (ns), if it is one of these and can be read.
pub(crate) fn read(name: &[u8], fields: &[u8], time: u64) -> Option<Record> {
    let of = |key: &[u8]| number(value(fields, key)?).map(|(value, _)| value);
    match name {
        b"cpu_frequency_limits" => Some(Record::FrequencyLimit(LimitRecord {
            kind: RecordKind::FrequencyLimit as u32,
            cpu: of(b"cpu_id")?,
            time,
            min_khz: of(b"min").or_else(|| of(b"min_freq")).unwrap_or(0),
            max_khz: of(b"max").or_else(|| of(b"max_freq"))?,
        })),
        b"cdev_update" => Some(Record::Cooling(CoolingRecord {
            kind: RecordKind::Cooling as u32,
            device: device(value(fields, b"type")?),
            time,
            state: of(b"target")?.into(),
        })),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_policies_and_states_of_cooling_devices_are_read() {
        let read = |name: &str, fields: &str| read(name.as_bytes(), fields.as_bytes(), 7);
        let kind = RecordKind::FrequencyLimit as u32;
        let limit = LimitRecord { kind, cpu: 4, time: 7, min_khz: 600_000, max_khz: 1_200_000 };
        let limit = Some(Record::FrequencyLimit(limit));
        assert_eq!(read("cpu_frequency_limits", "min=600000 max=1200000 cpu_id=4"), limit);
        assert_eq!(read("cpu_frequency_limits", "min_freq=600000 max_freq=1200000 cpu_id=4"), limit);
        assert_eq!(read("cpu_frequency_limits", "min=600000 max=much cpu_id=4"), None);
        let kind = RecordKind::Cooling as u32;
        let cooling = CoolingRecord { kind, device: device(b"thermal-cpufreq-1"), time: 7, state: 3 };
        assert_eq!(read("cdev_update", "type=thermal-cpufreq-1 target=3"), Some(Record::Cooling(cooling)));
        assert_eq!(read("cdev_update", "type=thermal-cpufreq-1"), None);
        assert_eq!(read("cpu_frequency", "state=1 cpu_id=0"), None);
    }
}
