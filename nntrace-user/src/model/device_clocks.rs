//! Clocks of devices other than CPUs, such as NPUs, GPUs and memory: time by frequency.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Devices at most, and frequencies of one.
const MOST: usize = 256;

/// Clock of a device in the window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceClock {
    /// Name of the device in the kernel.
    pub device: String,
    /// Source of the times.
    pub source: ClockSource,
    /// Changes of the frequency.
    pub transitions: u64,
    /// Time by frequency, the highest first; the time of an unknown frequency last.
    pub frequencies: Vec<ClockTime>,
}

/// Time at a frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockTime {
    /// Frequency, Hz; null where it is not known.
    pub hz: Option<u64>,
    /// Time, ns.
    pub ns: u64,
}

/// Source of the times of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClockSource {
    /// `devfreq_frequency` events.
    Events,
    /// `trans_stat` of devfreq, in ms.
    Counter,
}

/// Clocks by the events of a trace.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceClocks {
    since: u64,
    clocks: BTreeMap<Box<str>, Clock>,
    /// Events of devices and frequencies for which there was no room.
    pub(crate) left_out: u64,
}

#[derive(Clone, Debug)]
struct Clock {
    /// Time of the first event in the window, and the frequency before it.
    first: u64,
    before: Option<u64>,
    /// Frequency from a time on.
    hz: u64,
    at: u64,
    times: BTreeMap<u64, u64>,
    transitions: u64,
}

impl DeviceClocks {
    /// Returns the clocks of a window that starts at `since` (ns).
    #[must_use]
    pub(crate) fn since(self, since: u64) -> Self {
        Self { since, ..self }
    }

    /// A device has a frequency (Hz) from a time (ns) on, and had another one before, as far as the event has it.
    pub(crate) fn take(&mut self, device: &[u8], hz: u64, before: Option<u64>, time: u64) {
        let now = time.max(self.since);
        let counts = u64::from(time >= self.since);
        let device = String::from_utf8_lossy(device);
        if let Some(clock) = self.clocks.get_mut(&*device) {
            self.left_out += u64::from(!clock.add(now));
            clock.transitions += counts * u64::from(clock.hz != hz);
            (clock.hz, clock.at) = (hz, now);
        } else if self.clocks.len() < MOST {
            let transitions = counts * u64::from(before != Some(hz));
            let before = before.filter(|_| counts > 0);
            let clock = Clock { first: now, before, hz, at: now, times: BTreeMap::new(), transitions };
            self.clocks.insert(device.into(), clock);
        } else {
            self.left_out += 1;
        }
    }

    /// Returns the clocks of a window (ns), by the names of their devices.
    #[must_use]
    pub(crate) fn until(&self, (begin, end): (u64, u64)) -> Vec<DeviceClock> {
        let clocks = self.clocks.iter().map(|(device, clock)| {
            let mut clock = clock.clone();
            clock.add(end);
            let mut times: BTreeMap<Option<u64>, u64> =
                clock.times.iter().map(|(hz, ns)| (Some(*hz), *ns)).collect();
            *times.entry(clock.before).or_default() += clock.first.saturating_sub(begin);
            DeviceClock::new(device.to_string(), ClockSource::Events, clock.transitions, times)
        });
        clocks.collect()
    }
}

impl Clock {
    /// Adds the time until now (ns) to that of the present frequency; returns whether there is room for it.
    fn add(&mut self, now: u64) -> bool {
        let has_room = self.times.len() < MOST || self.times.contains_key(&self.hz);
        if has_room {
            *self.times.entry(self.hz).or_default() += now.saturating_sub(self.at);
        }
        has_room
    }
}

impl DeviceClock {
    /// Creates a row of times by frequency, where `None` is an unknown one.
    #[must_use]
    pub(crate) fn new(
        device: String,
        source: ClockSource,
        transitions: u64,
        times: BTreeMap<Option<u64>, u64>,
    ) -> Self {
        let all = times.into_iter().rev().filter(|(_, ns)| *ns > 0);
        let frequencies = all.map(|(hz, ns)| ClockTime { hz, ns }).collect();
        Self { device, source, transitions, frequencies }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name, changes, and times by frequency.
    type Row<'a> = (&'a str, u64, Vec<(Option<u64>, u64)>);

    fn times(clocks: &[DeviceClock]) -> Vec<Row<'_>> {
        let of = |clock: &DeviceClock| clock.frequencies.iter().map(|time| (time.hz, time.ns)).collect();
        clocks.iter().map(|clock| (&*clock.device, clock.transitions, of(clock))).collect()
    }

    #[test]
    fn time_is_divided_by_frequency() {
        let mut clocks = DeviceClocks::default();
        clocks.take(b"npu", 800, Some(300), 20);
        clocks.take(b"gpu", 500, None, 30);
        clocks.take(b"npu", 300, Some(800), 50);
        clocks.take(b"npu", 300, Some(300), 60);
        assert_eq!(
            times(&clocks.until((10, 100))),
            [
                ("gpu", 1, vec![(Some(500), 70), (None, 20)]),
                ("npu", 2, vec![(Some(800), 30), (Some(300), 60)]),
            ]
        );
    }

    #[test]
    fn events_before_the_window_set_the_frequency_that_it_begins_with() {
        let mut clocks = DeviceClocks::default().since(40);
        clocks.take(b"npu", 800, Some(300), 20);
        clocks.take(b"npu", 300, Some(800), 50);
        assert_eq!(times(&clocks.until((40, 60))), [("npu", 1, vec![(Some(800), 10), (Some(300), 10)])]);
    }

    #[test]
    fn tables_are_bounded() {
        let mut clocks = DeviceClocks::default();
        for number in 0..1_000_u64 {
            clocks.take(format!("device {number}").as_bytes(), 1, None, number);
            clocks.take(b"device 0", number, None, number);
        }
        let rows = clocks.until((0, 2_000));
        assert_eq!(rows.len(), MOST);
        assert!(rows[0].frequencies.len() <= MOST && clocks.left_out > 1_000);
    }
}
