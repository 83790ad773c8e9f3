//! What each CPU did in the window, from the exact tables by CPU.

use std::collections::BTreeMap;

use nntrace_common::{
    power::{Activity, CpuFrequency, CpuIdle, FrequencySlice, Residency},
    record::{FrequencyKey, FrequencyTotal},
};

/// The tables of one CPU at one instant.
#[derive(Clone, Debug)]
pub struct CpuReading {
    /// The CPU.
    pub cpu: u32,
    /// Idle or running.
    pub idle: CpuIdle,
    /// Requested frequency.
    pub frequency: CpuFrequency,
    /// Running time at earlier frequencies.
    pub slices: Vec<(FrequencyKey, FrequencyTotal)>,
}

/// What one CPU did. The times add up to the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuResidency {
    /// The CPU.
    pub cpu: u32,
    /// By idle state.
    pub idle: BTreeMap<u32, Residency>,
    /// The state that it is idle in at the end: the last of its stays there is still open.
    pub idle_at_end: Option<u32>,
    /// Running time (ns) and stretches by requested frequency, kHz; `None` where that is not known.
    pub running: BTreeMap<Option<u32>, (u64, u64)>,
    /// Idle in an unknown state, ns.
    pub idle_unknown_ns: u64,
    /// Offline, ns.
    pub offline_ns: u64,
    /// Nothing known, ns.
    pub unknown_ns: u64,
}

impl CpuReading {
    /// Closes what is open at `end` (ns).
    #[must_use]
    pub fn until(&self, end: u64) -> CpuResidency {
        let mut idle = self.idle;
        idle.finish(end);
        let open = self.frequency.slice(&idle, end);
        let earlier = self.slices.iter().map(|(key, total)| FrequencySlice {
            khz: key.khz,
            ns: total.ns,
            hits: total.hits,
            presumed: key.presumed != 0,
        });
        let mut running: BTreeMap<Option<u32>, (i64, i64)> = BTreeMap::new();
        for slice in earlier.chain([open]).filter(|slice| slice.holds(idle.start())) {
            let sum = running.entry((slice.khz != 0).then_some(slice.khz)).or_default();
            sum.0 += slice.ns;
            sum.1 += slice.hits;
        }
        let positive = |value: i64| u64::try_from(value).unwrap_or(0);
        CpuResidency {
            cpu: self.cpu,
            idle: (0..).zip(idle.idle).filter(|(_, stay)| stay.hits > 0).collect(),
            idle_at_end: match idle.activity() {
                // One of no length is none.
                Activity::Idle(state) if self.idle.since() < end => Some(state),
                _ => None,
            },
            running: running
                .into_iter()
                .filter(|&(_, (ns, _))| ns > 0)
                .map(|(khz, (ns, hits))| (khz, (positive(ns), positive(hits))))
                .collect(),
            idle_unknown_ns: idle.idle_unknown_ns,
            offline_ns: idle.offline_ns,
            unknown_ns: idle.unknown_ns,
        }
    }
}

impl CpuResidency {
    /// The sum of all times, ns: the window.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        let idle: u64 = self.idle.values().map(|stay| stay.ns).sum();
        let running: u64 = self.running.values().map(|(ns, _)| ns).sum();
        idle + running + self.idle_unknown_ns + self.offline_ns + self.unknown_ns
    }
}

#[cfg(test)]
mod tests {
    use nntrace_common::power::IDLE_EXIT;

    use super::*;

    #[test]
    fn everything_open_is_closed_at_the_end() {
        let mut idle = CpuIdle::starting_at(100);
        let mut frequency = CpuFrequency::requested(500);
        idle.event(150, 2);
        idle.event(250, IDLE_EXIT);
        let slice = frequency.event(&mut idle, 300, 800).unwrap();
        let key = FrequencyKey { cpu: 3, khz: slice.khz, presumed: 0, reserved: 0 };
        let slices = vec![(key, FrequencyTotal { ns: slice.ns, hits: slice.hits })];
        let residency = CpuReading { cpu: 3, idle, frequency, slices }.until(1_000);
        assert_eq!(residency.running, BTreeMap::from([(Some(500), (100, 2)), (Some(800), (700, 1))]));
        assert_eq!(residency.idle[&2].ns, 100);
        assert_eq!(residency.total_ns(), 900);
    }

    #[test]
    fn a_stay_that_begins_at_the_end_is_no_open_one() {
        let mut idle = CpuIdle::starting_at(0);
        idle.event(10, 1);
        let reading = CpuReading { cpu: 0, idle, frequency: CpuFrequency::UNKNOWN, slices: Vec::new() };
        assert_eq!(reading.until(10).idle_at_end, None);
        assert_eq!(reading.until(11).idle_at_end, Some(1));
    }
}
