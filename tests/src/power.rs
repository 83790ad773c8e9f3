//! Second implementation of the rules of power states: sweeps over a list of events, independent of the project's own
//! accounting. Here those of one CPU.

pub mod cluster;
pub mod recording;

use std::collections::BTreeMap;

/// Value of `state` in a `cpu_idle` event that leaves idle.
pub const EXIT: u32 = u32::MAX;

/// Event of one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A `cpu_idle` event: the state that is entered, or [`EXIT`].
    Idle(u32),
    /// A `cpu_frequency` event, kHz.
    Frequency(u32),
    /// The CPU went offline, or came back.
    Online(bool),
    /// Events of the CPU are missing from here on.
    Lost,
}

/// Total time and number of stays, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stays {
    /// Total.
    pub ns: u64,
    /// Number of stays.
    pub hits: u64,
    /// Shortest; 0 without any.
    pub min_ns: u64,
    /// Longest.
    pub max_ns: u64,
}

/// Residency of a CPU in a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Residency {
    /// By idle state.
    pub idle: BTreeMap<u32, Stays>,
    /// Running, by frequency in kHz; `None` where that is not known.
    pub running: BTreeMap<Option<u32>, Stays>,
    /// Idle in an unknown state, ns.
    pub idle_unknown_ns: u64,
    /// Offline, ns.
    pub offline_ns: u64,
    /// Unknown, ns.
    pub unknown_ns: u64,
    /// Number of idle states entered from idle.
    pub enter_while_idle: u64,
    /// Number of times that idle was left while running.
    pub exit_while_running: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    Idle(u32),
    IdleUnknown,
    Offline,
    Unknown,
}

impl Residency {
    /// Sweeps the events between `begin` and `end` (ns), which are in order of time. `khz` is the frequency at the
    /// begin, if it is known.
    #[must_use]
    pub fn sweep(events: &[(u64, Event)], begin: u64, end: u64, khz: Option<u32>) -> Self {
        let mut result = Self::default();
        let (mut state, mut khz) = (before_all(events), khz);
        let mut since = begin;
        let mut is_first = true;
        for &(at, event) in events {
            let before = (state, khz);
            match event {
                Event::Idle(EXIT) => {
                    result.exit_while_running += u64::from(state == State::Running);
                    state = State::Running;
                }
                Event::Idle(entered) => {
                    result.enter_while_idle += u64::from(matches!(state, State::Idle(_)));
                    state = State::Idle(entered);
                    if before == (state, khz) && !is_first {
                        // Entered once more: that ends one stay and begins another.
                        result.add(before, at - since);
                        since = at;
                    }
                }
                Event::Frequency(value) => khz = Some(value),
                Event::Online(false) => state = State::Offline,
                Event::Online(true) if state == State::Offline => state = State::Running,
                Event::Online(true) => {}
                Event::Lost => state = State::Unknown,
            }
            is_first &= !matches!(event, Event::Idle(_));
            let splits = if before.0 == State::Running { before.1 != khz } else { false };
            if before.0 != state || splits {
                result.add(before, at - since);
                since = at;
            }
        }
        result.add((state, khz), end - since);
        result
    }

    fn add(&mut self, (state, khz): (State, Option<u32>), ns: u64) {
        match state {
            State::Running => self.running.entry(khz).or_default().add(ns),
            State::Idle(state) => self.idle.entry(state).or_default().add(ns),
            State::IdleUnknown => self.idle_unknown_ns += ns,
            State::Offline => self.offline_ns += ns,
            State::Unknown => self.unknown_ns += ns,
        }
        self.idle.retain(|_, stays| stays.hits > 0);
        self.running.retain(|_, stays| stays.hits > 0);
    }
}

/// Returns the state before the first event, by the first idle event.
fn before_all(events: &[(u64, Event)]) -> State {
    let first = events.iter().find_map(|(_, event)| match event {
        Event::Idle(EXIT) => Some(State::IdleUnknown),
        // It was running to be taken down.
        Event::Idle(_) | Event::Online(false) => Some(State::Running),
        Event::Lost => Some(State::Unknown),
        Event::Frequency(_) | Event::Online(true) => None,
    });
    first.unwrap_or(State::Unknown)
}

/// Returns the state of the CPU from each instant on.
fn states(events: &[(u64, Event)], begin: u64, khz: Option<u32>) -> Vec<(u64, (State, Option<u32>))> {
    let mut now = (before_all(events), khz);
    let mut all = vec![(begin, now)];
    for &(at, event) in events {
        match event {
            Event::Idle(EXIT) => now.0 = State::Running,
            Event::Idle(entered) => now.0 = State::Idle(entered),
            Event::Frequency(value) => now.1 = Some(value),
            Event::Online(false) => now.0 = State::Offline,
            Event::Online(true) if now.0 == State::Offline => now.0 = State::Running,
            Event::Online(true) => {}
            Event::Lost => now.0 = State::Unknown,
        }
        all.push((at, now));
    }
    all
}

impl Stays {
    fn add(&mut self, ns: u64) {
        if ns == 0 {
            return;
        }
        self.min_ns = if self.hits == 0 { ns } else { self.min_ns.min(ns) };
        self.max_ns = self.max_ns.max(ns);
        self.ns += ns;
        self.hits += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_by_hand() {
        let events = [
            (10, Event::Idle(1)),
            (30, Event::Idle(EXIT)),
            (40, Event::Frequency(500)),
            (45, Event::Frequency(500)),
            (50, Event::Idle(1)),
            (55, Event::Idle(1)),
            (60, Event::Frequency(800)),
            (70, Event::Idle(EXIT)),
            (80, Event::Idle(EXIT)),
        ];
        let swept = Residency::sweep(&events, 0, 100, None);
        let stays = |ns, hits, min_ns, max_ns| Stays { ns, hits, min_ns, max_ns };
        assert_eq!(swept.idle, BTreeMap::from([(1, stays(40, 3, 5, 20))]));
        let running = [
            (None, stays(20, 2, 10, 10)),
            (Some(500), stays(10, 1, 10, 10)),
            (Some(800), stays(30, 1, 30, 30)),
        ];
        assert_eq!(swept.running, BTreeMap::from(running));
        assert_eq!((swept.enter_while_idle, swept.exit_while_running), (1, 1));
    }

    #[test]
    fn what_was_before_the_first_event() {
        let left = Residency::sweep(&[(10, Event::Idle(EXIT))], 0, 30, Some(1));
        assert_eq!((left.idle_unknown_ns, left.running[&Some(1)].ns), (10, 20));
        let silent = Residency::sweep(&[(10, Event::Frequency(2))], 0, 30, Some(1));
        assert_eq!(silent, Residency { unknown_ns: 30, ..Residency::default() });
        let lost = [(5, Event::Lost), (10, Event::Idle(1)), (20, Event::Lost), (30, Event::Idle(EXIT))];
        let lost = Residency::sweep(&lost, 0, 35, Some(1));
        assert_eq!((lost.unknown_ns, lost.idle[&1].ns, lost.running[&Some(1)].ns), (20, 10, 5));
    }
}
