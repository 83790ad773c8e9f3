//! Limits of frequencies over a run, as changes of policies and of cooling devices tell of them.

use nntrace_common::{
    frequency_limits::{CoolingRecord, LimitRecord, cools_cpus},
    record::Record,
};

/// Changes that are kept at most, of each kind; later ones are not.
const MOST: usize = 1 << 16;

/// Limits of frequencies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FrequencyLimits {
    /// Upper limits of policies.
    pub policies: Vec<PolicyLimit>,
    /// States of cooling devices that limit the frequency of CPUs.
    pub cooling: Vec<CoolingState>,
}

/// Upper limit of the frequency of a policy from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PolicyLimit {
    /// Time, ns.
    pub time: u64,
    /// A CPU of the policy.
    pub cpu: u32,
    /// Limit, kHz.
    pub khz: u32,
}

/// State of a cooling device from a time on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CoolingState {
    /// Time, ns.
    pub time: u64,
    /// Type of the device, such as `thermal-cpufreq-0`.
    pub device: String,
    /// State; 0 does not cool.
    pub state: u64,
}

impl FrequencyLimits {
    /// Takes a change of a limit; other records are none of its business.
    pub(crate) fn take(&mut self, record: &Record) {
        match record {
            &Record::FrequencyLimit(LimitRecord { cpu, time, max_khz: khz, .. })
                if self.policies.len() < MOST =>
            {
                self.policies.push(PolicyLimit { time, cpu, khz });
            }
            Record::Cooling(cooling) if self.cooling.len() < MOST && cools_cpus(cooling.device()) => {
                let &CoolingRecord { time, state, .. } = cooling;
                let device = String::from_utf8_lossy(cooling.device()).into_owned();
                self.cooling.push(CoolingState { time, device, state });
            }
            _ => {}
        }
    }

    /// Returns the limits in order of time: in a recording, changes may come in any order.
    #[must_use]
    pub(crate) fn in_order(&self) -> Self {
        let mut limits = self.clone();
        limits.policies.sort_by_key(|limit| limit.time);
        limits.cooling.sort_by_key(|cooling| cooling.time);
        limits
    }
}

#[cfg(test)]
mod tests {
    use nntrace_common::{frequency_limits::device, record::RecordKind};

    use super::*;

    fn limit(time: u64, max_khz: u32) -> Record {
        let kind = RecordKind::FrequencyLimit as u32;
        Record::FrequencyLimit(LimitRecord { kind, cpu: 4, time, min_khz: 0, max_khz })
    }

    fn cooling(time: u64, name: &str) -> Record {
        let kind = RecordKind::Cooling as u32;
        Record::Cooling(CoolingRecord { kind, device: device(name.as_bytes()), time, state: 3 })
    }

    #[test]
    fn limits_of_cpus_are_kept_in_order_of_time() {
        let mut limits = FrequencyLimits::default();
        for record in [
            limit(9, 2),
            limit(7, 1),
            cooling(8, "cpufreq-cpu4"),
            cooling(7, "Fan"),
            cooling(6, "thermal-cpufreq-0"),
        ] {
            limits.take(&record);
        }
        let limits = limits.in_order();
        let policy = |time, khz| PolicyLimit { time, cpu: 4, khz };
        assert_eq!(limits.policies, [policy(7, 1), policy(9, 2)]);
        let state = |time, device: &str| CoolingState { time, device: device.into(), state: 3 };
        assert_eq!(limits.cooling, [state(6, "thermal-cpufreq-0"), state(8, "cpufreq-cpu4")]);
    }

    #[test]
    fn there_are_no_more_than_are_kept() {
        let mut limits = FrequencyLimits::default();
        for time in 0..MOST as u64 + 2 {
            limits.take(&limit(time, 1));
            limits.take(&cooling(time, "cpufreq-cpu0"));
        }
        assert_eq!((limits.policies.len(), limits.cooling.len()), (MOST, MOST));
        assert_eq!(limits.policies.last().map(|limit| limit.time), Some(MOST as u64 - 1));
    }
}
