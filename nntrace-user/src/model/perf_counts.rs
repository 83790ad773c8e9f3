//! Counts of performance events by function, as the kernel programs keep them.

use nntrace_common::{
    layer::{Layer, Phase, Tag},
    perf_counters::Reading,
};
use serde::{Deserialize, Serialize};

/// Counts of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PerfCounts {
    /// Events, in the order of the readings.
    pub(crate) events: Vec<PerfEventFacts>,
    /// Time that reading all events takes, ns, as measured when the run began; `None` where it could not be.
    pub(crate) ns_per_read: Option<u64>,
    /// Marks at which not all events could be read.
    pub(crate) uncounted_marks: u64,
    /// Sections whose counts found no room.
    pub(crate) uncounted_sections: u64,
    /// Sections that ended, by function.
    pub(crate) functions: Vec<FunctionCounts>,
}

/// Event that is counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PerfEventFacts {
    /// Name.
    pub(crate) name: String,
    /// Count of the event during a reading of all events; `None` where it could not be measured.
    pub(crate) counted_by_read: Option<u64>,
}

/// Counts of the sections of a function by themselves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FunctionCounts {
    /// Process.
    pub(crate) pid: u32,
    /// Layer.
    pub(crate) layer: Layer,
    /// Phase.
    pub(crate) phase: Phase,
    /// Hash of the name.
    pub(crate) name: u64,
    /// Number of sections.
    pub(crate) sections: u64,
    /// Reading of each event.
    pub(crate) readings: Vec<Reading>,
}

impl FunctionCounts {
    /// Returns layer and phase.
    pub(crate) fn tag(&self) -> Tag {
        Tag::new(self.layer, self.phase)
    }
}

/// Count that an event would have had if it had counted all the time, rounded; `None` where it never did.
///
/// Events take turns where there are more of them than counters: the rest of the time is taken to be like that.
pub(crate) fn scaled(reading: &Reading) -> Option<u64> {
    let Reading { count, enabled, running } = *reading;
    if enabled == running {
        return Some(count);
    }
    let (count, enabled, running) = (u128::from(count), u128::from(enabled), u128::from(running));
    let scaled = (count * enabled + running / 2).checked_div(running)?;
    Some(u64::try_from(scaled).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_scaled_to_the_time_in_which_they_were_to_count() {
        let of = |count, enabled, running| scaled(&Reading { count, enabled, running });
        assert_eq!(of(700, 50, 50), Some(700));
        assert_eq!(of(700, 100, 50), Some(1_400));
        assert_eq!(of(2, 100, 300), Some(1), "rounded");
        assert_eq!(of(0, 100, 0), None, "it never counted");
        assert_eq!(of(0, 0, 0), Some(0), "no time, and nothing in it");
        assert_eq!(of(u64::MAX, u64::MAX, 1), Some(u64::MAX));
    }
}
