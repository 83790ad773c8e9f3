//! Events at a point in time: hand-overs, instants, values of counters.

use core::sync::atomic::{AtomicU64, Ordering};

use super::{Payload, write::event_if_heard};

/// Returns a new handle for work that is handed over: unique in this process, whichever library creates it.
///
/// The upper part is the page of this library's counter. The lower 28 bits count by odd numbers: those of `nntrace.h`,
/// whose counter may be in the same page, are even.
#[must_use]
pub fn handle() -> u64 {
    static HANDLES: AtomicU64 = AtomicU64::new(0);
    let page = core::ptr::from_ref(&HANDLES).addr() as u64 >> 12;
    let count = HANDLES.fetch_add(1, Ordering::Relaxed) << 1 | 1;
    page << 28 | count & ((1 << 28) - 1)
}

/// Marks that this thread hands work over, under a handle from [`handle`].
#[inline]
pub fn send(handle: u64) {
    event_if_heard(|| Payload::instant("nn.send").with("h", handle));
}

/// Marks that this thread continues with that work. A section that is all about it has an attribute instead:
/// `mark!(LC, PE, "work", h = handle)`.
#[inline]
pub fn recv(handle: u64) {
    event_if_heard(|| Payload::instant("nn.recv").with("h", handle));
}

/// Marks an instant on this thread.
#[inline]
pub fn instant(name: &str) {
    event_if_heard(|| Payload::instant(name));
}

/// Marks the value of a counter from now on.
#[inline]
pub fn counter(name: &str, value: i64) {
    event_if_heard(|| Payload::counter(name, value));
}

/// Marks any event at a point in time, by a payload that is only created when anyone listens.
#[inline]
pub fn event(payload: impl FnOnce() -> Payload) {
    event_if_heard(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_handles_are_the_same() {
        let (first, second) = (handle(), handle());
        assert_ne!(first, second);
        assert_eq!((first >> 28, first & 1), (second >> 28, second & 1));
    }
}
