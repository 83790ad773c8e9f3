//! Clock of all records.

use std::{thread, time::Duration};

use nix::time::{ClockId, clock_gettime};

/// Returns `CLOCK_MONOTONIC`, ns: the clock of `bpf_ktime_get_ns`, which stands still in suspend.
#[must_use]
pub fn now() -> u64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// Returns `CLOCK_BOOTTIME`, ns: like [`now`], but including suspend.
#[must_use]
pub(crate) fn since_boot() -> u64 {
    read(ClockId::CLOCK_BOOTTIME)
}

/// Returns the CPU time of this process, ns.
#[must_use]
pub(crate) fn own_cpu_time() -> u64 {
    read(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

/// Converts a duration to ns, saturating.
pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Sleeps until a point in time (ns).
pub(super) fn wait_until(moment: u64) {
    thread::sleep(Duration::from_nanos(moment.saturating_sub(now())));
}

fn read(clock: ClockId) -> u64 {
    // Every kernel has these clocks; one that cannot be read counts as 0.
    let time = clock_gettime(clock).map_or(Duration::ZERO, Duration::from);
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
