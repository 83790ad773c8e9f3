//! Events whose time is not known, as nothing relates their clock to that of the trace.

use std::collections::BTreeMap;

use super::clocks::ClockId;
use crate::model::plurals::one_or_many;

/// Clocks that are named at most.
const MOST_CLOCKS: usize = 64;

/// Counts of these events, by clock.
#[derive(Debug, Default)]
pub(super) struct Unplaced {
    clocks: BTreeMap<ClockId, u64>,
    total: u64,
}

impl Unplaced {
    /// Counts an event of a clock.
    pub(super) fn add(&mut self, clock: ClockId) {
        self.total += 1;
        if self.clocks.len() < MOST_CLOCKS || self.clocks.contains_key(&clock) {
            *self.clocks.entry(clock).or_default() += 1;
        }
    }

    /// Returns the number of all of them.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Returns a note for each clock.
    pub(super) fn notes(&self, trace: ClockId) -> impl Iterator<Item = String> {
        self.clocks.iter().map(move |(clock, count)| {
            format!(
                "{count} {} of clock {} that no clock snapshot relates to the trace's clock, {}: {} left out",
                one_or_many(*count, "event has a time", "events have times"),
                clock.name(),
                trace.name(),
                one_or_many(*count, "it is", "they are")
            )
        })
    }
}
