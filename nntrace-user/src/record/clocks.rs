//! Clocks of the host, by which times of a recording compare with those of others.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Clocks, read at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// `CLOCK_MONOTONIC`, the clock of all times, ns.
    pub monotonic_ns: u64,
    /// `CLOCK_BOOTTIME`, ns.
    pub boottime_ns: u64,
    /// `CLOCK_REALTIME`, ns since 1970.
    pub realtime_ns: u64,
}

impl ClockReading {
    /// Returns a time of `CLOCK_MONOTONIC` as time since 1970, ns; `None` before that.
    #[must_use]
    pub fn real_time(&self, monotonic_ns: u64) -> Option<u64> {
        let real = i128::from(self.realtime_ns) - i128::from(self.monotonic_ns) + i128::from(monotonic_ns);
        u64::try_from(real).ok()
    }

    /// Reads the clocks.
    #[must_use]
    pub fn now() -> Self {
        // Every kernel has these clocks; one that cannot be read counts as 0.
        let read = |clock| clock_gettime(clock).map_or(Duration::ZERO, Duration::from);
        let read = |clock| u64::try_from(read(clock).as_nanos()).unwrap_or(u64::MAX);
        Self {
            monotonic_ns: read(ClockId::CLOCK_MONOTONIC),
            boottime_ns: read(ClockId::CLOCK_BOOTTIME),
            realtime_ns: read(ClockId::CLOCK_REALTIME),
        }
    }
}
