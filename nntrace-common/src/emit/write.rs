//! The way that a mark takes: the thread's lane, or the probe.
//!
//! Cold code is kept out of the marking code, which mostly runs while nobody listens.

use super::lane;
use super::{Payload, Site, listens};

/// Way that the begin of a section took, which its end takes as well: [`Begun::NOT`], [`Begun::BY_PROBE`], or in the lane
/// of a number. One number, so that a guard needs one register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Begun(u32);

/// Number of a lane, 2 or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LaneNumber(pub(super) u32);

impl Begun {
    /// It was not written.
    pub(super) const NOT: Self = Self(0);
    /// By the probe.
    const BY_PROBE: Self = Self(1);

    const fn in_lane(LaneNumber(number): LaneNumber) -> Self {
        Self(number)
    }

    /// Whether it was written.
    #[inline]
    pub(super) const fn is_written(self) -> bool {
        self.0 != Self::NOT.0
    }

    fn lane(self) -> Option<LaneNumber> {
        (self.0 > Self::BY_PROBE.0).then_some(LaneNumber(self.0))
    }
}

/// Creates and writes a begin if anyone listens.
#[inline]
pub(super) fn begin_if_heard(make: impl FnOnce() -> Payload) -> Begun {
    if listens() { begin(make) } else { Begun::NOT }
}

/// Writes the begin of a section of a site if anyone listens.
#[inline]
pub(super) fn begin_site_if_heard(site: &'static Site) -> Begun {
    if listens() { begin_site(site) } else { Begun::NOT }
}

/// Creates and writes an event if anyone listens.
#[inline]
pub(super) fn event_if_heard(make: impl FnOnce() -> Payload) {
    if listens() {
        event(make);
    }
}

/// Ends a section, if its begin was written.
#[inline]
pub(super) fn end(begun: Begun) {
    if begun.is_written() {
        write_end(begun);
    }
}

#[cold]
#[inline(never)]
fn begin(make: impl FnOnce() -> Payload) -> Begun {
    if is_heard() { write_begin(&make()) } else { Begun::NOT }
}

#[cold]
#[inline(never)]
fn begin_site(site: &'static Site) -> Begun {
    if site.may_be_in_lane()
        && let Some(number) = lane::begin(site)
    {
        return Begun::in_lane(number);
    }
    begin(|| site.begin())
}

fn write_begin(payload: &Payload) -> Begun {
    if payload.begins_in_lane()
        && let Some(number) = lane::begin_text(payload.text())
    {
        return Begun::in_lane(number);
    }
    write_by_probe(payload);
    Begun::BY_PROBE
}

#[cold]
#[inline(never)]
fn event(make: impl FnOnce() -> Payload) {
    if is_heard() {
        let payload = make();
        if !lane::event(payload.text()) {
            write_by_probe(&payload);
        }
    }
}

#[cold]
#[inline(never)]
fn write_end(begun: Begun) {
    if !begun.lane().is_some_and(lane::end) {
        write_by_probe(&Payload::end());
    }
}

fn write_by_probe(payload: &Payload) {
    payload.write();
    lane::after_probe();
}

/// Whether anyone listens. The first mark determines whether marks go to ftrace.
fn is_heard() -> bool {
    #[cfg(feature = "std")]
    return super::sink::is_open() || super::probed::is_probed();
    #[cfg(not(feature = "std"))]
    true
}
