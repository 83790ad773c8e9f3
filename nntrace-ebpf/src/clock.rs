//! Clock of all programs, limited to the window that user space sets: tables and records then contain the same
//! events, and user space need not hurry between reading them.

use crate::{helpers::monotonic_ns, maps::WINDOW};

/// Returns the time (ns); `None` when the window is over. Power events and context switches before the window
/// determine the state at its begin.
#[inline(always)]
pub fn now() -> Option<u64> {
    let now = monotonic_ns();
    let is_over = WINDOW.get(0).is_some_and(|window| window.is_over(now));
    (!is_over).then_some(now)
}

/// Returns the time (ns); `None` outside of the window.
#[inline(always)]
pub fn now_inside() -> Option<u64> {
    let now = monotonic_ns();
    let is_inside = WINDOW.get(0).is_none_or(|window| window.contains(now));
    is_inside.then_some(now)
}
