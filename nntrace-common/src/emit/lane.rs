//! The express lane: a ring in memory that a thread shares with the profiler, and writes its marks to instead of entering
//! the kernel for them.
//!
//! While the profiler wants it, a thread makes the memory and offers it, and goes on with the probe until the profiler has
//! answered by a lease, which is the time until which it will read. All of this happens only while somebody listens. The
//! format and the rules of both sides are in [`crate::express`] and in the profiler's `docs/express.md`; `nntrace.h` has
//! the same for C.
//!
//! Nothing here allocates on the heap, takes a lock, or changes `errno`, so a mark may stand in a signal handler and in an
//! allocator. A handler that interrupts a thread in here finds its lane busy, and takes the probe. For the same reason
//! nothing runs at the end of a thread: to register a destructor allocates. What a thread leaves is given up by the next ones
//! that need a lane, or when the library is unloaded.
//!
//! A handler may fork, and the child return into the middle of a mark. It finds zeros in the control block, and memory of
//! its own where the ring is: so what is to be consistent is loaded once.

mod control;
mod offer;
mod ring;
mod stage;
mod system;

use core::cell::Cell;
use core::sync::atomic::{Ordering, compiler_fence};

use self::control::{Block, Busy, Lane};
use self::ring::Effect;
use self::system::SavedErrno;
use super::write::LaneNumber;
use super::{Site, sink};
use crate::express::{ACCEPTED, MAX_RING_BYTES, MIN_RING_BYTES};

/// Marks by the probe before a thread gets a lane, and after which one that could not be made is tried again.
const MARKS_BEFORE: i32 = 64;
const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
/// Factor by which a ring grows that was full.
const GROWTH: u64 = 16;

const _: () = assert!(MIN_RING_BYTES as u64 * GROWTH * GROWTH == MAX_RING_BYTES as u64);

thread_local! {
    // Without destructors, so that they may be used at any time, and cost no more than variables.
    /// Control block of this thread.
    static OWN: Cell<Option<&'static Block>> = const { Cell::new(None) };
    /// Marks by the probe of this thread without a lane.
    static MARKS: Cell<i32> = const { Cell::new(0) };
}

/// Number of a lane: no other lane of this library in this process or in a child has it.
#[inline]
fn number_of(lane: &Lane) -> LaneNumber {
    // The lower bits of a key count by odd numbers from 1 on; the upper ones are the same in a library.
    LaneNumber((lane.ring.key() as u32 & 0x0fff_ffff) + 1)
}

/// Begins a section of a site in the thread's lane, if it may be there.
#[inline]
pub(super) fn begin(site: &'static Site) -> Option<LaneNumber> {
    let (mut lane, now) = enter()?;
    lane.ring.begin(site, now).then(|| number_of(&lane))
}

/// Writes a payload that begins a section to the thread's lane, if it may be there.
#[inline]
pub(super) fn begin_text(text: &[u8]) -> Option<LaneNumber> {
    let (mut lane, now) = enter()?;
    lane.ring.text(text, Effect::Opens, now).then(|| number_of(&lane))
}

/// Writes a payload to the thread's lane, if it may be there; returns whether it did.
#[inline]
pub(super) fn event(text: &[u8]) -> bool {
    enter().is_some_and(|(mut lane, now)| lane.ring.text(text, Effect::None, now))
}

/// Ends a section that began in the lane of this number: not at all if that is no longer the thread's. Returns whether the
/// end is not to take the probe.
#[inline]
pub(super) fn end(number: LaneNumber) -> bool {
    let Some(block) = OWN.get() else { return true };
    // SAFETY: it is this thread's.
    let Some(mut lane) = (unsafe { block.enter() }) else { return false };
    if number_of(&lane) == number {
        let now = lane.ring.now();
        lane.ring.end(now);
    }
    true
}

/// Returns the lane of this thread, and the time, if a mark may be written there.
#[inline]
fn enter() -> Option<(Busy<'static>, u64)> {
    if !offer::is_wanted() {
        return None;
    }
    // SAFETY: it is this thread's.
    let mut lane = unsafe { OWN.get()?.enter() }?;
    if (lane.is_new | lane.ring.is_full) && !settle(&mut lane) {
        return None;
    }
    let now = lane.ring.now_if_read()?;
    Some((lane, now))
}

/// Prepares a ring that is new or was full; returns whether a mark is to be written there if it is read.
#[cold]
fn settle(lane: &mut Lane) -> bool {
    let _errno = SavedErrno::new();
    if lane.is_new {
        // Before it has a lease the clock is not read either.
        if lane.ring.lease() <= ACCEPTED {
            return false;
        }
        // The profiler has opened it.
        lane.close_file();
        if !system::is_confined() && system::is_barred() {
            lane.is_barred = true;
            lane.drop_ring();
            return false;
        }
        lane.ring.choose_clock();
        lane.note_grant();
        lane.is_new = false;
        (lane.retry, lane.wait) = (0, 0);
    }
    // Without open sections a larger one can be made, after a mark by the probe.
    !lane.ring.is_full || lane.ring.open() > 0
}

/// Gets the thread a lane, or a better one, after a mark that took the probe, if lanes are wanted.
#[inline]
pub(super) fn after_probe() {
    if offer::is_wanted() && !sink::may_be_open() {
        seek();
    }
}

#[cold]
fn seek() {
    let _errno = SavedErrno::new();
    let mut own = OWN.get();
    if !own.is_some_and(Block::has_owner) {
        MARKS.set(MARKS.get() + 1);
        if MARKS.get() < MARKS_BEFORE {
            return;
        }
        // A signal handler does not get here meanwhile.
        MARKS.set(i32::MIN);
        compiler_fence(Ordering::SeqCst);
        let found = Block::find(own);
        OWN.set(found.or(own));
        own = found;
        compiler_fence(Ordering::SeqCst);
        MARKS.set(0);
    }
    // SAFETY: it is this thread's.
    if let Some(mut lane) = own.and_then(|block| unsafe { block.enter() }).filter(|lane| !lane.is_barred) {
        improve(&mut lane, system::now());
    }
}

/// Makes a ring if there is none, or a better one.
fn improve(lane: &mut Busy<'_>, now: u64) {
    let mut bytes = MIN_RING_BYTES as u64;
    if lane.ring.exists() {
        bytes = lane.ring.bytes();
        let lease = lane.ring.lease();
        let open = lane.ring.open() > 0;
        if lease > now && lane.ring.is_full && !open {
            bytes *= GROWTH;
            // If that fails the ring there is has to do.
            lane.ring.is_full = false;
        } else if lease > now || (lease != 0 && open && now - lease < SECOND) {
            // It is in use, or the profiler might still come back to it.
            return;
        }
    }
    if now < lane.retry {
        return;
    }
    // For a slow reader another one would come too late as well.
    if lane.ring.lease() != 0 || !lane.offer_again() {
        lane.make_ring(bytes);
    }
    // If it could not be made, or nobody has seen the offer: a forked child may be early.
    lane.wait = (2 * lane.wait).clamp(10 * MILLISECOND, SECOND);
    lane.retry = now + lane.wait;
}
