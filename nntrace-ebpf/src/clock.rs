//! The clock of all programs, which goes by the window that user space sets: tables and records then hold the same
//! events, and user space has no need to hurry between reading the ones and the others.

use crate::{helpers::monotonic_ns, maps::WINDOW};

/// The time (ns); `None` when the window is over. Power events and context switches that come before it set the state
/// that it begins with.
#[inline(always)]
pub fn now() -> Option<u64> {
    let now = monotonic_ns();
    let is_over = WINDOW.get(0).is_some_and(|window| window.is_over(now));
    (!is_over).then_some(now)
}

/// The time (ns); `None` outside of the window.
#[inline(always)]
pub fn now_inside() -> Option<u64> {
    let now = monotonic_ns();
    let is_inside = WINDOW.get(0).is_none_or(|window| window.contains(now));
    is_inside.then_some(now)
}
