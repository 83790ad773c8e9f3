//! Emitting of records to user space through the ring of the current CPU.

use core::{mem::MaybeUninit, ptr};

use aya_ebpf::{
    bindings::{BPF_RB_AVAIL_DATA, BPF_RB_FORCE_WAKEUP, BPF_RB_NO_WAKEUP},
    helpers::bpf_ringbuf_query,
};

use crate::{
    atomic,
    helpers::current_cpu,
    log,
    maps::{RING_BYTES, RING_COUNTS, RINGS},
};

/// Condition for waking user space.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// When the ring is half full; otherwise the record waits for the next timed drain.
    WhenHalfFull,
    /// At once.
    Now,
}

/// Puts a record into this CPU's ring; `false`, and counted, when there is no room.
#[inline(always)]
pub fn emit<T: Copy + 'static>(record: T, wake: Wake) -> bool {
    emit_with(|| record, wake)
}

/// Like [`emit`], with a record that is created in the ring: the program's stack may have no room for it.
#[inline(always)]
pub fn emit_with<T: Copy + 'static>(record: impl FnOnce() -> T, wake: Wake) -> bool {
    let counts = RING_COUNTS.get_ptr_mut(0);
    if let Some(counts) = counts {
        // SAFETY: the pointer comes from the map and is not null; marks can be preempted, hence atomic.
        unsafe { atomic::add(&raw mut (*counts).produced, 1) };
    }
    let Some(ring) = RINGS.get(current_cpu()) else {
        return drop_record(counts);
    };
    let Some(mut entry) = ring.reserve_untyped::<T>(0) else {
        return drop_record(counts);
    };
    let room: &mut MaybeUninit<T> = &mut entry;
    room.write(record());
    let flags = if wake == Wake::Now || half_full(ptr::from_ref(ring)) {
        BPF_RB_FORCE_WAKEUP
    } else {
        BPF_RB_NO_WAKEUP
    };
    entry.submit(u64::from(flags));
    true
}

#[inline(always)]
fn half_full<R>(ring: *const R) -> bool {
    // SAFETY: `ring` is the map that the verifier has just seen looked up.
    let waiting = unsafe { bpf_ringbuf_query(ring.cast_mut().cast(), u64::from(BPF_RB_AVAIL_DATA)) };
    waiting >= u64::from(RING_BYTES.load() / 2)
}

#[inline(always)]
fn drop_record(counts: Option<*mut nntrace_common::record::RingCount>) -> bool {
    log::ring_full(current_cpu());
    if let Some(counts) = counts {
        // SAFETY: the pointer comes from the map and is not null.
        unsafe { atomic::add(&raw mut (*counts).dropped, 1) };
    }
    false
}
