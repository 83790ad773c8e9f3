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

use super::{event_fields::value, sched::field_number};

/// Limit of a frequency, or state of a cooling device, without its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Limit of a policy.
    Policy(LimitRecord),
    /// State of a cooling device.
    Cooling(CoolingRecord),
}

impl Limit {
    /// Returns the record at a time, ns.
    pub(crate) fn at(self, time: u64) -> Record {
        match self {
            Self::Policy(limit) => Record::FrequencyLimit(LimitRecord { time, ..limit }),
            Self::Cooling(cooling) => Record::Cooling(CoolingRecord { time, ..cooling }),
        }
    }
}

/// Parses the fields of `cpu_frequency_limits`.
pub(crate) fn limit(fields: &[u8]) -> Option<Limit> {
    let of = |key: &[u8]| number_of(fields, key);
    Some(Limit::Policy(LimitRecord {
        kind: RecordKind::FrequencyLimit as u32,
        cpu: of(b"cpu_id")?,
        time: 0,
        min_khz: of(b"min").or_else(|| of(b"min_freq")).unwrap_or(0),
        max_khz: of(b"max").or_else(|| of(b"max_freq"))?,
    }))
}

/// Parses the fields of `cdev_update`.
pub(crate) fn cooling(fields: &[u8]) -> Option<Limit> {
    let state = number_of(fields, b"target")?.into();
    let device = device(value(fields, b"type")?);
    Some(Limit::Cooling(CoolingRecord { kind: RecordKind::Cooling as u32, device, time: 0, state }))
}

fn number_of(fields: &[u8], key: &[u8]) -> Option<u32> {
    field_number(value(fields, key)?).map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_policies_and_states_of_cooling_devices_are_read() {
        let read = |name: &str, fields: &str| match name {
            "cpu_frequency_limits" => limit(fields.as_bytes()).map(|limit| limit.at(7)),
            _ => cooling(fields.as_bytes()).map(|cooling| cooling.at(7)),
        };
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
        // With the kernel's option `fields`.
        let fields = "min_freq=0x927c0 (600000) max_freq=0x124f80 (1200000) cpu_id=0x4 (4)";
        assert_eq!(read("cpu_frequency_limits", fields), limit);
    }
}
