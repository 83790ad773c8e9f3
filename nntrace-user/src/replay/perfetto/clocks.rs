//! Clocks of a trace, and the times of its events on one of them.
//!
//! A snapshot has the readings of several clocks at one instant. A time is converted by the last snapshot before it that has
//! both clocks, or else by the first one after it; where none has both, by way of others. What no snapshot relates to
//! the clock of the trace stays without a time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::perfetto_schema::{BOOTTIME, ClockSnapshot, MONOTONIC, MONOTONIC_RAW, ftrace::FtraceEventBundle};

/// Ids of the clocks that are of one sequence only.
const OF_SEQUENCE: std::ops::RangeInclusive<u32> = 64..=127;
/// Pairs of readings that are kept at most.
const MOST_READINGS: usize = 1 << 18;
/// Clocks of a snapshot that are read at most.
const MOST_CLOCKS: usize = 32;
/// Last time on the kernel's clocks, which are signed, ns.
pub(super) const END_OF_TIME: u64 = i64::MAX.cast_unsigned();

/// Clock of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ClockId {
    /// Clock that all of the trace can name.
    Global(u32),
    /// Clock of a sequence.
    OfSequence(u32, u32),
    /// Clock of the kernel's tracing, as the schema numbers them.
    Ftrace(i32),
}

/// `mono_raw`, as the schema numbers the clocks of the kernel's tracing.
const FTRACE_MONO_RAW: i32 = 4;

impl ClockId {
    /// Returns the clock with an id, in packets of a sequence.
    pub(super) fn new(id: u32, sequence: u32) -> Self {
        if OF_SEQUENCE.contains(&id) { Self::OfSequence(sequence, id) } else { Self::Global(id) }
    }

    /// Returns the clock of a bundle's events.
    pub(super) fn of_bundle(bundle: &FtraceEventBundle) -> Self {
        match bundle.ftrace_clock.unwrap_or(0) {
            0 => Self::Global(BOOTTIME),
            FTRACE_MONO_RAW => Self::Global(MONOTONIC_RAW),
            other => Self::Ftrace(other),
        }
    }

    /// Returns its name, as the kernel's tracing and this program have it.
    pub(super) fn name(self) -> String {
        match self {
            Self::Global(BOOTTIME) => "boot".into(),
            Self::Global(MONOTONIC) => "mono".into(),
            Self::Global(MONOTONIC_RAW) => "mono_raw".into(),
            Self::Global(id) => format!("number {id}"),
            Self::OfSequence(sequence, id) => format!("number {id} of sequence {sequence}"),
            Self::Ftrace(id) => format!("of ftrace, number {id}"),
        }
    }
}

/// Readings of two clocks at the same instants, by the first one, ns.
type Readings = BTreeMap<u64, u64>;

/// Relations of the clocks of a trace.
#[derive(Clone, Debug, Default)]
pub(super) struct Clocks {
    primary: Option<u32>,
    pairs: BTreeMap<(ClockId, ClockId), Readings>,
    count: usize,
    /// Whether readings were left out.
    pub(super) is_full: bool,
}

impl Clocks {
    /// Takes a snapshot in a packet of a sequence.
    pub(super) fn snapshot(&mut self, snapshot: &ClockSnapshot, sequence: u32) {
        if let Some(primary) = snapshot.primary_trace_clock {
            self.primary.get_or_insert(primary);
        }
        let readings = snapshot.clocks.iter().take(MOST_CLOCKS).filter_map(|clock| {
            let ns = clock.timestamp?.checked_mul(clock.unit_multiplier_ns.unwrap_or(1).max(1))?;
            Some((ClockId::new(clock.id?, sequence), ns))
        });
        let readings: Vec<_> = readings.collect();
        for (from, at) in &readings {
            for (to, reading) in readings.iter().filter(|(to, _)| to != from) {
                self.add(*from, *at, *to, *reading);
            }
        }
    }

    /// Takes the reading of the kernel's clock that a bundle has.
    pub(super) fn bundle(&mut self, bundle: &FtraceEventBundle) {
        let clock = ClockId::of_bundle(bundle);
        let boot = ClockId::Global(BOOTTIME);
        if clock != boot
            && let (Some(at), Some(boot_at)) = (bundle.ftrace_timestamp, bundle.boot_timestamp)
            && let (Ok(at), Ok(boot_at)) = (u64::try_from(at), u64::try_from(boot_at))
        {
            self.add(clock, at, boot, boot_at);
            self.add(boot, boot_at, clock, at);
        }
    }

    fn add(&mut self, from: ClockId, at: u64, to: ClockId, reading: u64) {
        if self.count >= MOST_READINGS {
            self.is_full = true;
            return;
        }
        self.count += 1;
        self.pairs.entry((from, to)).or_default().entry(at).or_insert(reading);
    }

    /// Returns the clock that all times are brought to.
    pub(super) fn of_trace(&self) -> ClockId {
        ClockId::Global(self.primary.unwrap_or(BOOTTIME))
    }

    /// Returns the clocks on the way from one to the clock of the trace, that one first; `None` where there is no way.
    fn way(&self, from: ClockId) -> Option<Vec<ClockId>> {
        let goal = self.of_trace();
        let mut before: BTreeMap<ClockId, ClockId> = BTreeMap::new();
        let mut seen = BTreeSet::from([from]);
        let mut waiting = VecDeque::from([from]);
        while let Some(clock) = waiting.pop_front() {
            if clock == goal {
                let mut way: Vec<_> =
                    std::iter::successors(Some(goal), |at| before.get(at).copied()).collect();
                way.reverse();
                return Some(way);
            }
            let first = (clock, ClockId::Global(0));
            let next = self.pairs.range(first..).take_while(|((of, _), _)| *of == clock);
            for ((_, to), _) in next {
                if seen.insert(*to) {
                    before.insert(*to, clock);
                    waiting.push_back(*to);
                }
            }
        }
        None
    }

    fn step(&self, from: ClockId, to: ClockId, time: u64) -> Option<u64> {
        let readings = self.pairs.get(&(from, to))?;
        let before = readings.range(..=time).next_back();
        let (at, reading) = before.or_else(|| readings.first_key_value())?;
        let moved = i128::from(time) - i128::from(*at) + i128::from(*reading);
        u64::try_from(moved).ok()
    }
}

/// Converter of times to the clock of a trace, which remembers the ways.
#[derive(Debug)]
pub(super) struct Converter<'a> {
    clocks: &'a Clocks,
    ways: BTreeMap<ClockId, Option<Vec<ClockId>>>,
}

impl<'a> Converter<'a> {
    /// Creates a converter by the relations of all of a trace.
    pub(super) fn new(clocks: &'a Clocks) -> Self {
        Self { clocks, ways: BTreeMap::new() }
    }

    /// Returns the clock of the trace.
    pub(super) fn of_trace(&self) -> ClockId {
        self.clocks.of_trace()
    }

    /// Converts a time (ns); `None` where nothing relates the clocks, or the clock of the trace does not have this time.
    pub(super) fn convert(&mut self, clock: ClockId, time: u64) -> Option<u64> {
        let clocks = self.clocks;
        let converted = if clock == clocks.of_trace() {
            time
        } else {
            let way = self.ways.entry(clock).or_insert_with(|| clocks.way(clock)).as_deref()?;
            way.windows(2).try_fold(time, |time, step| clocks.step(step[0], step[1], time))?
        };
        (converted < END_OF_TIME).then_some(converted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perfetto_schema::{Clock, REALTIME};

    fn snapshot(readings: &[(u32, u64)]) -> ClockSnapshot {
        let clock =
            |&(id, time): &(u32, u64)| Clock { id: Some(id), timestamp: Some(time), ..Clock::default() };
        ClockSnapshot { clocks: readings.iter().map(clock).collect(), primary_trace_clock: None }
    }

    #[test]
    fn the_last_snapshot_before_a_time_counts() {
        let mut clocks = Clocks::default();
        clocks.snapshot(&snapshot(&[(MONOTONIC, 100), (BOOTTIME, 1_100)]), 1);
        clocks.snapshot(&snapshot(&[(MONOTONIC, 200), (BOOTTIME, 1_500)]), 1);
        let mut converter = Converter::new(&clocks);
        let mut mono = |time| converter.convert(ClockId::Global(MONOTONIC), time);
        assert_eq!([50, 100, 199, 200, 250].map(&mut mono), [1_050, 1_100, 1_199, 1_500, 1_550].map(Some));
        assert_eq!(converter.convert(ClockId::Global(BOOTTIME), 7), Some(7));
        assert_eq!(converter.convert(ClockId::Global(REALTIME), 7), None);
        assert_eq!(converter.convert(ClockId::Global(BOOTTIME), u64::MAX), None);
    }

    #[test]
    fn clocks_are_related_by_way_of_others_and_those_of_sequences_are_apart() {
        let mut clocks = Clocks::default();
        clocks.snapshot(&snapshot(&[(64, 10), (REALTIME, 1_000)]), 1);
        clocks.snapshot(&snapshot(&[(64, 20), (REALTIME, 1_000)]), 2);
        let mut other = snapshot(&[(REALTIME, 2_000), (MONOTONIC, 500)]);
        other.primary_trace_clock = Some(MONOTONIC);
        clocks.snapshot(&other, 3);
        assert_eq!(clocks.of_trace(), ClockId::Global(MONOTONIC));
        let mut converter = Converter::new(&clocks);
        assert_eq!(converter.convert(ClockId::new(64, 1), 1_015), Some(505));
        assert_eq!(converter.convert(ClockId::new(64, 2), 1_015), Some(495));
        assert_eq!(converter.convert(ClockId::new(64, 3), 1_015), None);
        // Before the clock of the trace began.
        assert_eq!(converter.convert(ClockId::new(64, 1), 10), None);
    }

    #[test]
    fn a_bundle_relates_its_own_clock() {
        let bundle = FtraceEventBundle {
            ftrace_clock: Some(2),
            ftrace_timestamp: Some(30),
            boot_timestamp: Some(90),
            ..FtraceEventBundle::default()
        };
        let mut clocks = Clocks::default();
        clocks.bundle(&bundle);
        let clock = ClockId::of_bundle(&bundle);
        assert_eq!(Converter::new(&clocks).convert(clock, 25), Some(85));
        assert_eq!(clock.name(), "of ftrace, number 2");
    }
}
