//! A thread's side of its ring.

use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering, compiler_fence};

use super::offer::offer;
use super::system;
use crate::emit::{Payload, Site};
use crate::express::{
    DOORBELL, HEADER_BYTES, Head, Kind, MAGIC, MAX_RING_BYTES, MAX_SITES, UNIT, clocks, offsets, record_bytes,
};
use crate::{prefetch, ticks};

/// Readings of the clock at most, until it is another one than before: more only where it stands still.
const MOST_READINGS: usize = 1000;
/// Distance from a record to the line that is prefetched.
const AHEAD: u64 = 512;
/// Places in the table of sites: half of them at most are taken.
const PLACES: usize = MAX_SITES as usize;

/// Memory of a header and a ring.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Memory(NonNull<AtomicU64>);

impl Memory {
    /// Returns the word at an offset.
    ///
    /// # Safety
    /// The offset is a multiple of eight, and within the memory.
    #[inline]
    unsafe fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: by the promise of the caller, and that of `Ring::start`. The other side is a process, so the word is only
        // ever accessed atomically.
        unsafe { self.0.byte_add(offset).as_ref() }
    }

    /// Returns a word of the header.
    #[inline]
    fn header<const OFFSET: usize>(&self) -> &AtomicU64 {
        const { assert!(OFFSET.is_multiple_of(8) && OFFSET < HEADER_BYTES) }
        // SAFETY: as was just asserted.
        unsafe { self.word(OFFSET) }
    }
}

/// Effect of a record on the sections of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// A section opens.
    Opens,
    /// A section closes.
    Closes,
    /// Neither.
    None,
}

/// Ring that a thread writes, and all it knows of it.
///
/// All bytes may be zero, as they are in new memory and in a forked child: that is no ring.
pub(super) struct Ring {
    memory: AtomicPtr<AtomicU64>,
    /// Bytes of the ring.
    bytes: AtomicU64,
    key: u64,
    /// Bytes written so far.
    head: AtomicU64,
    /// Bytes read so far, as last seen.
    tail: u64,
    /// Sections begun in the ring that are open: there is room for their ends.
    open: u64,
    /// Whether a mark found no room, and a larger ring is possible.
    pub(super) is_full: bool,
    /// Whether the reader was called since it last was less than half a ring behind.
    is_rung: bool,
    /// Whether its times are in ticks.
    in_ticks: bool,
    sites_taken: usize,
    /// Sites that are defined in the ring, each at the place of its number.
    sites: [Option<&'static Site>; PLACES],
}

impl Ring {
    /// Starts a ring of this many bytes, a power of two, in place of none.
    ///
    /// # Safety
    /// The memory begins at a page, is all zeros, has this many bytes after [`HEADER_BYTES`], and stays mapped until
    /// [`Ring::close`] returns it.
    pub(super) unsafe fn start(&mut self, memory: NonNull<u8>, bytes: u64, key: u64) {
        let memory = Memory(memory.cast());
        memory.header::<{ offsets::MAGIC }>().store(MAGIC, Ordering::Relaxed);
        memory.header::<{ offsets::KEY }>().store(key, Ordering::Relaxed);
        memory.header::<{ offsets::RING_BYTES }>().store(bytes, Ordering::Relaxed);
        memory.header::<{ offsets::CLOCK }>().store(clocks::NS_OR_TICKS, Ordering::Relaxed);
        self.key = key;
        self.bytes.store(bytes, Ordering::Relaxed);
        self.head.store(0, Ordering::Relaxed);
        (self.tail, self.open) = (0, 0);
        (self.is_full, self.is_rung, self.in_ticks) = (false, false, false);
        self.sites_taken = 0;
        self.sites.fill(None);
        self.memory.store(memory.0.as_ptr(), Ordering::Relaxed);
    }

    /// Forgets a ring that is another process'.
    pub(super) fn forget(&mut self) {
        self.memory.store(ptr::null_mut(), Ordering::Relaxed);
        self.key = 0;
    }

    /// Returns the memory, if there is any. What is to be done with the same is to be done by one call.
    #[inline]
    fn memory(&self) -> Option<Memory> {
        NonNull::new(self.memory.load(Ordering::Relaxed)).map(Memory)
    }

    /// Returns the bytes that the collector grants to all lanes of the library; 0 if it does not say.
    pub(super) fn grant(&self) -> u64 {
        self.memory().map_or(0, |memory| memory.header::<{ offsets::GRANT }>().load(Ordering::Relaxed))
    }

    /// Tells the reader that nothing more will come, and returns the memory, if there is any, with the bytes of its ring.
    pub(super) fn close(&mut self) -> Option<(NonNull<u8>, u64)> {
        let memory = self.memory()?;
        memory.header::<{ offsets::CLOSED }>().store(1, Ordering::Release);
        self.forget();
        Some((memory.0.cast(), self.bytes()))
    }

    /// Whether there is one.
    pub(super) fn exists(&self) -> bool {
        self.memory().is_some()
    }

    /// Returns its bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the key that it is offered under; 0 if there is none.
    #[inline]
    pub(super) fn key(&self) -> u64 {
        self.key
    }

    /// Returns the number of sections begun in it that are open.
    pub(super) fn open(&self) -> u64 {
        self.open
    }

    /// Returns the time until which it is read, ns; 0 if it is not.
    #[inline]
    pub(super) fn lease(&self) -> u64 {
        self.memory().map_or(0, |memory| memory.header::<{ offsets::LEASE }>().load(Ordering::Acquire))
    }

    /// Returns the time, by the clock of the ring.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        self.memory().map_or(0, |memory| self.now_by(memory))
    }

    /// Returns the time, by the clock of the ring with this memory.
    #[inline]
    fn now_by(&self, memory: Memory) -> u64 {
        if memory.header::<{ offsets::DISTINCT }>().load(Ordering::Relaxed) != 0 {
            self.distinct_now()
        } else if self.in_ticks {
            ticks::now()
        } else {
            system::now()
        }
    }

    /// Returns the time, by the clock of the ring, later than any reading of the thread before.
    #[cold]
    fn distinct_now(&self) -> u64 {
        let read = || if self.in_ticks { ticks::ordered() } else { system::now() };
        let first = read();
        let mut readings = core::iter::repeat_with(read).take(MOST_READINGS);
        readings.find(|now| *now != first).unwrap_or(first)
    }

    /// Returns the time, by the clock of the ring, if it is read by then.
    #[inline]
    pub(super) fn now_if_read(&self) -> Option<u64> {
        let memory = self.memory()?;
        // The lease first, so that no mark is older than it.
        let lease = if self.in_ticks {
            memory.header::<{ offsets::TICK_LEASE }>().load(Ordering::Acquire)
        } else {
            memory.header::<{ offsets::LEASE }>().load(Ordering::Acquire)
        };
        let now = self.now_by(memory);
        (lease > now).then_some(now)
    }

    /// Chooses ticks for all records if the reader can convert them: before the first record, and after the reader has
    /// accepted the ring.
    pub(super) fn choose_clock(&mut self) {
        if let Some(memory) = self.memory()
            && memory.header::<{ offsets::TICK_LEASE }>().load(Ordering::Acquire) != 0
        {
            memory.header::<{ offsets::CLOCK }>().store(clocks::TICKS, Ordering::Relaxed);
            self.in_ticks = true;
        }
    }

    /// Writes the begin of a section of a site, which has a definition; returns whether it did.
    #[inline]
    pub(super) fn begin(&mut self, site: &'static Site, now: u64) -> bool {
        let hash = (ptr::from_ref(site).addr() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut place = (hash >> (u64::BITS - PLACES.ilog2())) as usize;
        while let Some(other) = self.sites[place]
            && !ptr::eq(other, site)
        {
            place = (place + 1) % PLACES;
        }
        (self.sites[place].is_some() || self.define(site, place))
            && self.write(Kind::Site, place as u32, now, &[], Effect::Opens)
    }

    /// Defines a site at a free place, unless too many are taken or there is no room for it; returns whether it did.
    #[cold]
    fn define(&mut self, site: &'static Site, place: usize) -> bool {
        let mut definition = Payload::empty();
        site.put(&mut definition);
        let text = definition.text();
        let is_defined = self.sites_taken < PLACES / 2
            && self.write(Kind::Define, place as u32, text.len() as u64, text, Effect::None);
        if is_defined {
            self.sites[place] = Some(site);
            self.sites_taken += 1;
        }
        is_defined
    }

    /// Writes a mark as its payload; returns whether it did.
    pub(super) fn text(&mut self, text: &[u8], effect: Effect, now: u64) -> bool {
        self.write(Kind::Text, text.len() as u32, now, text, effect)
    }

    /// Writes the end of a section that began in this ring.
    #[inline]
    pub(super) fn end(&mut self, now: u64) {
        // There is room, unless the reader's count is nonsense.
        self.write(Kind::End, 0, now, &[], Effect::Closes);
    }

    /// Writes a record if after it there is room for the ends of all open sections; returns whether it did.
    #[inline]
    fn write(&mut self, kind: Kind, value: u32, second: u64, text: &[u8], effect: Effect) -> bool {
        let Some(memory) = self.memory() else { return false };
        compiler_fence(Ordering::SeqCst);
        // 0 in a child that was forked since.
        let (bytes, head) = (self.bytes.load(Ordering::Relaxed), self.head.load(Ordering::Relaxed));
        let length = record_bytes(text.len());
        let mask = bytes.wrapping_sub(1);
        let to_end = bytes.wrapping_sub(head & mask);
        let skipped = if length as u64 > to_end { to_end } else { 0 };
        let open = match effect {
            Effect::Opens => self.open + 1,
            Effect::Closes => self.open.saturating_sub(1),
            Effect::None => self.open,
        };
        let needed = skipped + length as u64 + open * UNIT as u64;
        let mut used = head.wrapping_sub(self.tail);
        if used >= bytes / 2 || used + needed > bytes {
            if bytes == 0 {
                return false;
            }
            self.tail = memory.header::<{ offsets::TAIL }>().load(Ordering::Acquire);
            used = head.wrapping_sub(self.tail);
            if used > bytes || used + needed > bytes {
                self.is_full = bytes < MAX_RING_BYTES as u64;
                return false;
            }
        }
        let store = |position: u64, word: u64| {
            let offset = HEADER_BYTES + (position & mask) as usize;
            // SAFETY: within the ring, whose size is a power of two. Positions are multiples of eight, as records are.
            unsafe { memory.word(offset) }.store(word, Ordering::Relaxed);
        };
        if skipped > 0 {
            store(head, Head::word(Kind::Skip, skipped as usize, 0));
        }
        let begin = head + skipped;
        // SAFETY: as for `store`.
        prefetch::to_write(unsafe { memory.word(HEADER_BYTES + ((begin + AHEAD) & mask) as usize) });
        store(begin, Head::word(kind, length, value));
        store(begin + 8, second);
        for (number, eight) in (2..length / 8).zip(text.chunks(8).chain([&[][..]])) {
            let mut word = [0; 8];
            word[..eight.len()].copy_from_slice(eight);
            store(begin + 8 * number as u64, u64::from_le_bytes(word));
        }
        self.open = open;
        self.head.store(begin + length as u64, Ordering::Relaxed);
        memory.header::<{ offsets::HEAD }>().store(begin + length as u64, Ordering::Release);
        let is_late = used >= bytes / 2;
        if is_late && !self.is_rung {
            offer(DOORBELL, self.key);
        }
        self.is_rung = is_late;
        true
    }
}
