//! Memory that the processes of a run share: which gates are open, and what came of it.

use std::{
    fs::File,
    io, slice,
    sync::atomic::{AtomicU64, Ordering},
};

use memmap2::MmapMut;
use nix::sys::memfd::{MFdFlags, memfd_create};

use super::steps::{GateId, NO_GATE};

/// Bits of a time after its highest one that are kept of it.
const PLACES: u32 = 4;
/// Counts of times by their highest bits.
const BUCKETS: usize = 64 << PLACES;
/// Words of the counters.
const COUNTERS: usize = 5;

/// Counter that the processes share.
#[derive(Clone, Copy, Debug)]
pub(super) enum Counter {
    /// Marks that were written.
    Marks = 0,
    /// The largest delay of one, ns.
    Latest = 1,
    /// Marks that `trace_marker` refused.
    Refused = 2,
    /// Threads that could not be started.
    ThreadsMissing = 3,
    /// Marks that did not wait any longer for those that they come after.
    OutOfOrder = 4,
}

/// Shared memory.
pub(super) struct Shared {
    map: MmapMut,
    words: usize,
}

impl Shared {
    /// Makes it, with this many gates, all of them closed.
    ///
    /// # Errors
    /// When there is no memory.
    pub(super) fn new(gates: u32) -> io::Result<Self> {
        let words = COUNTERS + BUCKETS + (gates as usize).div_ceil(64);
        let file = File::from(memfd_create("nntrace-emit", MFdFlags::MFD_CLOEXEC)?);
        file.set_len(words as u64 * 8)?;
        // SAFETY: nobody else knows the file, so that nobody makes it shorter.
        let map = unsafe { MmapMut::map_mut(&file)? };
        Ok(Self { map, words })
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        #[expect(clippy::cast_ptr_alignment, reason = "a map begins at a page")]
        let first = self.map.as_ptr().cast::<AtomicU64>();
        // SAFETY: the map begins at a page and has this many words; whoever has it uses them as atomic ones only.
        let words = unsafe { slice::from_raw_parts(first, self.words) };
        &words[at]
    }

    /// Adds to a counter.
    pub(super) fn add(&self, counter: Counter, number: u64) {
        self.word(counter as usize).fetch_add(number, Ordering::Relaxed);
    }

    /// Returns a counter.
    pub(super) fn count(&self, counter: Counter) -> u64 {
        self.word(counter as usize).load(Ordering::Relaxed)
    }

    /// Counts the delay of a mark, ns.
    pub(super) fn add_delay(&self, ns: u64) {
        self.word(COUNTERS + bucket(ns)).fetch_add(1, Ordering::Relaxed);
        self.word(Counter::Latest as usize).fetch_max(ns, Ordering::Relaxed);
    }

    /// Returns a delay that this share of the marks has at most, ns, to one part in sixteen; `None` without any.
    pub(super) fn delay(&self, share: f64) -> Option<u64> {
        let counts: Vec<u64> =
            (0..BUCKETS).map(|at| self.word(COUNTERS + at).load(Ordering::Relaxed)).collect();
        let all: u64 = counts.iter().sum();
        #[expect(clippy::cast_sign_loss, reason = "shares are positive")]
        let rank = ((all as f64 * share).ceil() as u64).max(1);
        let mut below = 0;
        let reached = counts.iter().position(|count| {
            below += count;
            below >= rank
        });
        reached.map(|bucket| largest_in(bucket).min(self.count(Counter::Latest)))
    }

    /// Opens a gate.
    pub(super) fn open(&self, gate: GateId) {
        if gate != NO_GATE {
            self.gate(gate).fetch_or(1 << (gate % 64), Ordering::Release);
        }
    }

    /// Whether a gate is open.
    pub(super) fn is_open(&self, gate: GateId) -> bool {
        gate == NO_GATE || self.gate(gate).load(Ordering::Acquire) >> (gate % 64) & 1 != 0
    }

    fn gate(&self, gate: GateId) -> &AtomicU64 {
        self.word(COUNTERS + BUCKETS + gate as usize / 64)
    }
}

/// Returns the bucket of a time: by the place of its highest bit, and the four bits after it.
fn bucket(ns: u64) -> usize {
    let highest = ns.checked_ilog2().unwrap_or(0);
    if highest < PLACES {
        return ns as usize;
    }
    let shift = highest - PLACES;
    ((shift as usize + 1) << PLACES) + (ns >> shift) as usize - (1 << PLACES)
}

/// Returns the largest time of a bucket, ns.
fn largest_in(bucket: usize) -> u64 {
    let (row, place) = (bucket >> PLACES, bucket as u64 & ((1 << PLACES) - 1));
    if row == 0 {
        return place;
    }
    let shift = row as u32 - 1;
    let smallest = (1_u64 << PLACES | place) << shift;
    smallest + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_in_its_bucket() {
        let around = (3..64).map(|bit| 1_u64 << bit).flat_map(|ns| [ns - 1, ns, ns + 1]);
        for ns in (0..200).chain(around).chain([u64::MAX]) {
            let bucket = bucket(ns);
            assert!(bucket < BUCKETS && largest_in(bucket) >= ns, "{ns}");
            assert!(largest_in(bucket) - ns <= ns / 16, "{ns} in {}", largest_in(bucket));
        }
        assert!((0..200).map(bucket).is_sorted());
    }

    #[test]
    fn delays_are_shared_out_by_rank() {
        let shared = Shared::new(0).unwrap();
        assert_eq!(shared.delay(0.5), None);
        for ns in 1..=100 {
            shared.add_delay(ns * 1_000);
        }
        let within = |share: f64, ns: u64| {
            let delay = shared.delay(share).unwrap();
            assert!((ns..=ns + ns / 16).contains(&delay), "{share}: {delay}");
        };
        within(0.5, 50_000);
        within(0.99, 99_000);
        assert_eq!(shared.delay(1.0), Some(100_000));
        assert_eq!(shared.count(Counter::Latest), 100_000);
    }

    #[test]
    fn gates_open_one_by_one() {
        let shared = Shared::new(130).unwrap();
        for gate in [0, 63, 64, 129] {
            assert!(!shared.is_open(gate));
            shared.open(gate);
            assert!(shared.is_open(gate));
        }
        assert!(!shared.is_open(1) && shared.is_open(NO_GATE));
        shared.open(NO_GATE);
        shared.add(Counter::Marks, 3);
        assert_eq!((shared.count(Counter::Marks), shared.count(Counter::OutOfOrder)), (3, 0));
    }
}
