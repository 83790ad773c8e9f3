//! Emitting of records to user space through the ring of the current CPU.

use core::{mem::MaybeUninit, ptr};

use aya_ebpf::{
    bindings::{BPF_RB_AVAIL_DATA, BPF_RB_FORCE_WAKEUP, BPF_RB_NO_WAKEUP},
    helpers::bpf_ringbuf_query,
};

use nntrace_common::record::RingCount;

use crate::{
    atomic,
    helpers::current_cpu,
    maps::{RING_BYTES, RING_COUNTS, RINGS},
};

/// Condition for waking user space.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// When the ring is half full; otherwise the record waits for the next timed drain.
    WhenHalfFull,
    /// No condition: user space is woken at once.
    Now,
}

/// Records between two questions whether a ring is half full.
const RECORDS_BETWEEN: u64 = 4;

/// Puts a record into this CPU's ring; `false`, and counted, when there is no room.
#[inline(always)]
pub fn emit<T: Copy + 'static>(record: T, wake: Wake) -> bool {
    emit_with(|| record, wake)
}

/// Like [`emit`], with a record that is created in the ring: the program's stack may have no room for it.
#[inline(always)]
pub fn emit_with<T: Copy + 'static>(record: impl FnOnce() -> T, wake: Wake) -> bool {
    emit_entry(
        |room: &mut MaybeUninit<T>| {
            room.write(record());
        },
        wake,
    )
}

/// Reserves room for a record, which `write` fills, and submits it.
#[inline(always)]
fn emit_entry<T: 'static>(write: impl FnOnce(&mut MaybeUninit<T>), wake: Wake) -> bool {
    let (counts, produced) = produce();
    let Some(ring) = RINGS.get(current_cpu()) else {
        return drop_record(counts);
    };
    let Some(mut entry) = ring.reserve_untyped::<T>(0) else {
        return drop_record(counts);
    };
    write(&mut entry);
    // Asking costs a call, and half a ring is room for more than the records between.
    let asks = produced.is_multiple_of(RECORDS_BETWEEN);
    let flags = if wake == Wake::Now || asks && half_full(ptr::from_ref(ring), RING_BYTES.load()) {
        BPF_RB_FORCE_WAKEUP
    } else {
        BPF_RB_NO_WAKEUP
    };
    entry.submit(u64::from(flags));
    true
}

/// Copies a record of any length into this CPU's ring; `false`, and counted, when there is no room. User space is woken
/// when the ring is half full.
#[inline(always)]
pub fn emit_bytes(record: &[u8]) -> bool {
    let (counts, _) = produce();
    let Some(ring) = RINGS.get(current_cpu()) else {
        return drop_record(counts);
    };
    let flags = if half_full(ptr::from_ref(ring), RING_BYTES.load()) {
        BPF_RB_FORCE_WAKEUP
    } else {
        BPF_RB_NO_WAKEUP
    };
    ring.output_untyped::<[u8]>(record, u64::from(flags)).is_ok() || drop_record(counts)
}

/// Counts a record; returns the counters of this CPU and the number of records.
#[inline(always)]
fn produce() -> (Option<*mut RingCount>, u64) {
    let counts = RING_COUNTS.get_ptr_mut(0);
    let mut produced = 0;
    if let Some(counts) = counts {
        // SAFETY: the pointer comes from the map and is not null; marks can be preempted, hence atomic.
        unsafe {
            atomic::add(&raw mut (*counts).produced, 1);
            produced = (*counts).produced;
        }
    }
    (counts, produced)
}

/// Like [`emit`], with a record that is too large for the program's stack, and is written in the ring by `write`, all
/// of it.
#[inline(always)]
pub fn emit_in_place<T: 'static>(write: impl FnOnce(*mut T), wake: Wake) -> bool {
    emit_entry(|room: &mut MaybeUninit<T>| write(room.as_mut_ptr()), wake)
}

/// Whether a ring of this size, bytes, is half full.
#[inline(always)]
pub fn half_full<R>(ring: *const R, bytes: u32) -> bool {
    // SAFETY: `ring` is the map that the verifier has just seen looked up.
    let waiting = unsafe { bpf_ringbuf_query(ring.cast_mut().cast(), u64::from(BPF_RB_AVAIL_DATA)) };
    waiting >= u64::from(bytes / 2)
}

#[inline(always)]
fn drop_record(counts: Option<*mut RingCount>) -> bool {
    if let Some(counts) = counts {
        // SAFETY: the pointer comes from the map and is not null.
        unsafe { atomic::add(&raw mut (*counts).dropped, 1) };
    }
    false
}
