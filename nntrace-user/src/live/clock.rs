//! The clock of every record.

use std::{thread, time::Duration};

use nix::time::{ClockId, clock_gettime};

/// `CLOCK_MONOTONIC`, ns: what `bpf_ktime_get_ns` shows. It stands still in suspend.
#[must_use]
pub fn now() -> u64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// `CLOCK_BOOTTIME`, ns: like [`now`], but goes on in suspend.
#[must_use]
pub(crate) fn since_boot() -> u64 {
    read(ClockId::CLOCK_BOOTTIME)
}

/// CPU time of this process, ns.
#[must_use]
pub(crate) fn own_cpu_time() -> u64 {
    read(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

/// A duration in ns; the longest there is, when it is longer.
pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Sleeps until this moment (ns).
pub(super) fn wait_until(moment: u64) {
    thread::sleep(Duration::from_nanos(moment.saturating_sub(now())));
}

fn read(clock: ClockId) -> u64 {
    // Both clocks are in every kernel; one that cannot be read would be 0, as at its start.
    let time = clock_gettime(clock).map_or(Duration::ZERO, Duration::from);
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
