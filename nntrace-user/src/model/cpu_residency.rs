//! Residency of each CPU in the window, from the exact tables by CPU.

use std::collections::BTreeMap;

use nntrace_common::{
    power::{Activity, CpuFrequency, CpuIdle, FrequencySlice, Residency, Start},
    record::FrequencyKey,
    time_count::TimeCount,
};

use super::initial_state::{FrequencySource, IdleSource, InitialCpu};

/// The tables of one CPU at one instant.
#[derive(Clone, Debug)]
pub struct CpuReading {
    /// The CPU.
    pub cpu: u32,
    /// Idle or running.
    pub(crate) idle: CpuIdle,
    /// Requested frequency.
    pub(crate) frequency: CpuFrequency,
    /// Running time at earlier frequencies.
    pub slices: Vec<(FrequencyKey, TimeCount)>,
}

/// Residency of one CPU. The times add up to the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuResidency {
    /// The CPU.
    pub cpu: u32,
    /// By idle state.
    pub idle: BTreeMap<u32, Residency>,
    /// The state that it is idle in at the end: the last of its stays there is still open.
    pub idle_at_end: Option<u32>,
    /// Running time and stretches by requested frequency, kHz; `None` where that is not known.
    pub running: BTreeMap<Option<u32>, TimeCount>,
    /// Idle in an unknown state, ns.
    pub idle_unknown_ns: u64,
    /// Offline, ns.
    pub offline_ns: u64,
    /// Nothing known, ns.
    pub unknown_ns: u64,
    /// Where it is known from what it did at the begin.
    pub(crate) initial: (IdleSource, FrequencySource),
}

impl CpuReading {
    /// Closes what is open at `end` (ns).
    #[must_use]
    pub fn until(&self, end: u64) -> CpuResidency {
        self.since(&InitialCpu::default(), end)
    }

    /// Closes what is open at `end` (ns), for a CPU about which something is known from the start on.
    #[must_use]
    pub(crate) fn since(&self, initial: &InitialCpu, end: u64) -> CpuResidency {
        let mut idle = self.idle;
        let source = match (initial.idle, idle.start()) {
            (IdleSource::Unknown, Start::WasRunning | Start::Settled) => IdleSource::FirstEvent,
            (source, _) => source,
        };
        if let Some(activity) = initial.activity {
            idle.began_as(activity);
        }
        idle.finish(end);
        let open = self.frequency.slice(&idle, end);
        let earlier = self.slices.iter().map(|(key, total)| FrequencySlice {
            khz: key.khz,
            ns: total.ns.cast_signed(),
            hits: total.count.cast_signed(),
            presumed: key.presumed != 0,
        });
        let mut running: BTreeMap<Option<u32>, TimeCount> = BTreeMap::new();
        for slice in earlier.chain([open]).filter(|slice| slice.holds(idle.start())) {
            let sum = running.entry((slice.khz != 0).then_some(slice.khz)).or_default();
            sum.change(slice.ns, slice.hits);
        }
        let positive = |value: u64| u64::try_from(value.cast_signed()).unwrap_or(0);
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
                .map(|(khz, sum)| (khz, TimeCount::new(positive(sum.ns), positive(sum.count))))
                .filter(|(_, sum)| sum.ns > 0)
                .collect(),
            idle_unknown_ns: idle.idle_unknown_ns,
            offline_ns: idle.offline_ns,
            unknown_ns: idle.unknown_ns,
            initial: (source, initial.frequency),
        }
    }
}

impl CpuResidency {
    /// Returns the residency of a CPU in a window of no length.
    #[must_use]
    pub(crate) fn none(cpu: u32) -> Self {
        Self {
            cpu,
            idle: BTreeMap::new(),
            idle_at_end: None,
            running: BTreeMap::new(),
            idle_unknown_ns: 0,
            offline_ns: 0,
            unknown_ns: 0,
            initial: Default::default(),
        }
    }

    /// The sum of all times, ns: the window.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        let idle: u64 = self.idle.values().map(|stay| stay.ns).sum();
        let running: u64 = self.running.values().map(|sum| sum.ns).sum();
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
        let slices = vec![(key, TimeCount::new(slice.ns.cast_unsigned(), slice.hits.cast_unsigned()))];
        let residency = CpuReading { cpu: 3, idle, frequency, slices }.until(1_000);
        assert_eq!(
            residency.running,
            BTreeMap::from([(Some(500), TimeCount::new(100, 2)), (Some(800), TimeCount::new(700, 1))])
        );
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

    fn began(events: &[(u64, u32)], activity: Activity) -> CpuResidency {
        let mut idle = CpuIdle::starting_at(100);
        for &(at, state) in events {
            idle.event(at, state);
        }
        let initial =
            InitialCpu { activity: Some(activity), idle: IdleSource::Kernel, ..InitialCpu::default() };
        let reading =
            CpuReading { cpu: 0, idle, frequency: CpuFrequency::requested(500), slices: Vec::new() };
        let residency = reading.since(&initial, 200);
        assert_eq!(residency.total_ns(), 100);
        residency
    }

    #[test]
    fn what_was_read_at_the_begin_holds_until_the_first_event() {
        let silent = began(&[], Activity::Idle(2));
        assert_eq!((silent.idle[&2].ns, silent.idle[&2].hits, silent.idle_at_end), (100, 1, Some(2)));
        assert_eq!(silent.initial.0, IdleSource::Kernel);
        let busy = began(&[], Activity::Running);
        assert_eq!(busy.running, BTreeMap::from([(Some(500), TimeCount::new(100, 1))]));
        let woken = began(&[(130, IDLE_EXIT)], Activity::Idle(1));
        assert_eq!((woken.idle[&1].ns, woken.idle_unknown_ns), (30, 0));
        assert_eq!(woken.running, BTreeMap::from([(Some(500), TimeCount::new(70, 1))]));
        assert_eq!(began(&[], Activity::IdleUnknown).idle_unknown_ns, 100);
    }

    #[test]
    fn an_event_wins_over_what_was_read() {
        // It had just woken, and went to another state.
        let slept = began(&[(130, 3)], Activity::Idle(1));
        assert_eq!(slept.running, BTreeMap::from([(Some(500), TimeCount::new(30, 1))]));
        assert_eq!(slept.idle.keys().copied().collect::<Vec<_>>(), [3]);
        // How deep it was is not known.
        assert_eq!(began(&[(130, IDLE_EXIT)], Activity::Running).idle_unknown_ns, 30);
    }

    #[test]
    fn a_frequency_that_changes_before_anything_is_known_of_idle() {
        let mut idle = CpuIdle::starting_at(100);
        let mut frequency = CpuFrequency::requested(500);
        let slice = frequency.event(&mut idle, 140, 800).unwrap();
        let key = FrequencyKey { cpu: 0, khz: slice.khz, presumed: u32::from(slice.presumed), reserved: 0 };
        let slices = vec![(key, TimeCount::new(slice.ns.cast_unsigned(), slice.hits.cast_unsigned()))];
        let reading = CpuReading { cpu: 0, idle, frequency, slices };
        let after =
            |activity| reading.since(&InitialCpu { activity: Some(activity), ..InitialCpu::default() }, 200);
        let busy = after(Activity::Running).running;
        assert_eq!(
            busy,
            BTreeMap::from([(Some(500), TimeCount::new(40, 1)), (Some(800), TimeCount::new(60, 1))])
        );
        assert_eq!(after(Activity::Idle(1)).running, BTreeMap::new());
    }
}
