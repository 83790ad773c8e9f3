//! Counts of performance events by section: what the hardware counts, and what the kernel counts itself.
//!
//! An event counts on a CPU, whichever thread runs there. What a thread has counted itself is the reading of the event
//! less what the event counted while the thread was off the CPU: that grows at each switch to the thread, by what lies
//! between the reading there and that at the switch before. At each mark, what the thread has counted since the mark
//! before is charged to the innermost section: so the counts of a section are without those of the sections in it, as
//! exclusive time is.

use core::ptr;

use crate::stack::MAX_DEPTH;
use crate::verifier_bounds::masked;

/// Events that are counted at once at most.
pub const MAX_COUNTERS: usize = 6;
/// Readings of all events at a mark, at most: one that a switch of the thread interrupts is repeated.
const ATTEMPTS: usize = 4;

/// Reading of an event, or a difference of two; laid out as the kernel's `bpf_perf_event_value`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(C)]
pub struct Reading {
    /// Count.
    pub count: u64,
    /// Time in which the event was to count, ns.
    pub enabled: u64,
    /// Time of that in which it did, ns: less where events take turns, as there are fewer counters.
    pub running: u64,
}

impl Reading {
    /// Returns the sum; wraps.
    #[must_use]
    #[inline(always)]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            count: self.count.wrapping_add(other.count),
            enabled: self.enabled.wrapping_add(other.enabled),
            running: self.running.wrapping_add(other.running),
        }
    }

    /// Returns the difference; wraps.
    #[must_use]
    #[inline(always)]
    pub const fn since(self, before: Self) -> Self {
        Self {
            count: self.count.wrapping_sub(before.count),
            enabled: self.enabled.wrapping_sub(before.enabled),
            running: self.running.wrapping_sub(before.running),
        }
    }

    /// Whether it can be a difference of readings in their order.
    #[inline(always)]
    const fn is_forward(self) -> bool {
        (self.count | self.enabled | self.running) >> 63 == 0
    }
}

/// Counts of a thread. Its marks write them, and the program on context switches, which interrupts these.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ThreadCounters {
    /// Number of switches: odd while the thread is off the CPU.
    switches: u64,
    /// 1 once `charged` is set.
    is_begun: u64,
    /// Events that could not be read at the current mark, a bit each.
    unread: u64,
    /// Reading at a switch.
    at_switch: Reading,
    /// Readings at the last switch from the thread.
    left: [Reading; MAX_COUNTERS],
    /// Counts of the CPUs that are not the thread's.
    away: [Reading; MAX_COUNTERS],
    /// Counts of the thread at the current mark.
    now: [Reading; MAX_COUNTERS],
    /// Counts of the thread that sections were charged with, or none.
    charged: [Reading; MAX_COUNTERS],
    /// Counts of the open sections, by their place on the stack of the thread.
    sections: [[Reading; MAX_COUNTERS]; MAX_DEPTH],
}

impl ThreadCounters {
    /// Counts of a thread that runs, and has none yet.
    pub const NEW: Self = {
        const NONE: Reading = Reading { count: 0, enabled: 0, running: 0 };
        Self {
            switches: 0,
            is_begun: 0,
            unread: 0,
            at_switch: NONE,
            left: [NONE; MAX_COUNTERS],
            away: [NONE; MAX_COUNTERS],
            now: [NONE; MAX_COUNTERS],
            charged: [NONE; MAX_COUNTERS],
            sections: [[NONE; MAX_COUNTERS]; MAX_DEPTH],
        }
    };

    /// Takes a switch from the thread, with the first `counters` events, which `read` reads where it can. A switch to the
    /// thread that was not seen leaves it off the CPU.
    #[inline(always)]
    pub fn leave(&mut self, counters: u32, mut read: impl FnMut(u32, &mut Reading) -> bool) {
        if self.switches & 1 != 0 {
            return;
        }
        for number in 0..MAX_COUNTERS {
            if number as u32 >= counters {
                break;
            }
            if read(number as u32, &mut self.at_switch) {
                self.left[number] = self.at_switch;
            }
        }
        self.switches = self.switches.wrapping_add(1);
    }

    /// Takes a switch to the thread, as [`ThreadCounters::leave`]. A switch from the thread that was not seen leaves it
    /// on the CPU.
    #[inline(always)]
    pub fn arrive(&mut self, counters: u32, mut read: impl FnMut(u32, &mut Reading) -> bool) {
        if self.switches & 1 == 0 {
            return;
        }
        for number in 0..MAX_COUNTERS {
            if number as u32 >= counters {
                break;
            }
            // On a CPU where the event cannot be read nothing is charged; the difference is taken on the next one.
            if read(number as u32, &mut self.at_switch) {
                self.away[number] = self.away[number].plus(self.at_switch.since(self.left[number]));
            }
        }
        self.switches = self.switches.wrapping_add(1);
    }

    /// Charges what the thread has counted since its last mark to a section: its place on the thread's stack plus one; 0
    /// for none. Returns whether every event could be read.
    #[inline(always)]
    pub fn charge(
        &mut self,
        counters: u32,
        section: u32,
        mut read: impl FnMut(u32, &mut Reading) -> bool,
    ) -> bool {
        for _ in 0..ATTEMPTS {
            let switches = volatile(&raw const self.switches);
            if switches & 1 != 0 {
                return false;
            }
            self.unread = 0;
            for number in 0..MAX_COUNTERS {
                if number as u32 >= counters {
                    break;
                }
                if !read(number as u32, &mut self.now[number]) {
                    self.unread |= 1 << number;
                }
                let away = volatile(&raw const self.away[number]);
                self.now[number] = self.now[number].since(away);
            }
            if volatile(&raw const self.switches) == switches {
                return self.settle(counters, section);
            }
        }
        false
    }

    /// Charges the counts that were read.
    #[inline(always)]
    fn settle(&mut self, counters: u32, section: u32) -> bool {
        let mut is_whole = self.unread == 0;
        let place = masked(section.wrapping_sub(1) as usize, MAX_DEPTH);
        for number in 0..MAX_COUNTERS {
            if number as u32 >= counters {
                break;
            }
            if self.unread >> number & 1 != 0 {
                continue;
            }
            let now = self.now[number];
            let new = now.since(self.charged[number]);
            self.charged[number] = now;
            if self.is_begun == 0 || section == 0 {
                continue;
            }
            if new.is_forward() {
                let sum = &mut self.sections[place][number];
                *sum = sum.plus(new);
            } else {
                is_whole = false;
            }
        }
        self.is_begun = 1;
        is_whole
    }

    /// Takes the counts of a section that ends, by its place on the thread's stack: passes each to `add`, with its
    /// number.
    #[inline(always)]
    pub fn close(&mut self, counters: u32, place: u32, mut add: impl FnMut(usize, Reading)) {
        let place = masked(place as usize, MAX_DEPTH);
        for number in 0..MAX_COUNTERS {
            if number as u32 >= counters {
                break;
            }
            let counted = &mut self.sections[place][number];
            add(number, *counted);
            *counted = Reading { count: 0, enabled: 0, running: 0 };
        }
    }
}

/// Reads what the program on context switches may write at any moment.
#[inline(always)]
fn volatile<T: Copy>(value: *const T) -> T {
    // SAFETY: every caller passes a field of a valid reference; the writer runs on the same CPU, and to its end.
    unsafe { ptr::read_volatile(value) }
}

/// Key of the counts of sections that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct CountsKey {
    /// Hash of the name.
    pub name: u64,
    /// Process id.
    pub tgid: u32,
    /// 0; for sections of a thread with interface calls only so far, that thread: they count once it takes part.
    pub tid: u32,
    /// [`Tag::index`](crate::layer::Tag::index) of layer and phase.
    pub tag: u32,
    /// Always 0.
    pub reserved: u32,
}

/// Counts of sections that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SectionCounts {
    /// Number of sections.
    pub sections: u64,
    /// Count of each event.
    pub readings: [Reading; MAX_COUNTERS],
}

/// Measurement of what reading the events costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CounterTrial {
    /// Time of all readings, ns.
    pub ns: u64,
    /// Number of readings of all events.
    pub count: u64,
    /// Counts of each event between the first reading and the last.
    pub counted: [u64; MAX_COUNTERS],
}

#[cfg(feature = "user")]
mod user {
    use aya::Pod;

    use super::{CounterTrial, CountsKey, SectionCounts};

    // SAFETY: `repr(C)` without padding, and the maps hold only what this crate's own code wrote as that type.
    unsafe impl Pod for CountsKey {}
    // SAFETY: as above.
    unsafe impl Pod for SectionCounts {}
    // SAFETY: as above.
    unsafe impl Pod for CounterTrial {}
}

#[cfg(test)]
mod tests;
