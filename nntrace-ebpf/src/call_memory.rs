//! Texts and blocks of recorded calls, read from the memory of their process.
//!
//! The first read takes no page fault. Where that fails, programs that may wait have the pages at its begin and end brought in,
//! and read again.

use aya_ebpf::helpers::{generated::bpf_probe_read_user, generated::bpf_probe_read_user_str};
use nntrace_common::{
    calls::{
        CALL_BYTES, CallItem, CallKey, CallRecord, Form, ITEM_BYTES, MAX_ITEMS, Memory, MemoryState, NO_ITEM,
    },
    verifier_bounds::masked,
};

use crate::{
    calls::is_in_memory,
    engines::{packed, unpacked},
    maps::{CALL_PROBES, OPEN_CALLS},
    mark_text::{
        self, PAGE_BYTES,
        Paging::{self, MayWait, Never},
    },
    task_ids::Ids,
};

/// Moment at which memory is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// When the call begins.
    Begin,
    /// When it ends.
    End,
}

/// Reads the memory of the items of an open call that are read at this moment.
#[inline(always)]
pub fn read_all(paging: Paging, moment: Moment, ids: Ids, now: u64, depth: u32, number: u32) {
    let Some(probe) = CALL_PROBES.get(number) else { return };
    let call = u64::from(depth) << 32 | u64::from(number);
    for place in 0..MAX_ITEMS {
        if place as u32 >= probe.count {
            break;
        }
        let item = &probe.items[place];
        if is_in_memory(item.form) && (item.is_at_return != 0) == (moment == Moment::End) {
            match paging {
                Never => read_now(packed(ids), now, call, place as u32),
                MayWait => read_waiting(packed(ids), now, call, place as u32),
            };
        }
    }
}

/// Reads the memory of one item. The number of the probe is in the lower half of `call`, that of open calls above.
///
/// A global function, as the next one: the verifier checks each once, for any arguments.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn read_now(who: u64, now: u64, call: u64, place: u32) -> u32 {
    read_item(Never, unpacked(who), now, call, place)
}

/// As [`read_now`], in programs that may wait for a page.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn read_waiting(who: u64, now: u64, call: u64, place: u32) -> u32 {
    read_item(MayWait, unpacked(who), now, call, place)
}

#[inline(always)]
fn read_item(paging: Paging, ids: Ids, now: u64, call: u64, place: u32) -> u32 {
    let Some(probe) = CALL_PROBES.get(call as u32) else { return 0 };
    let key = CallKey { tid: ids.tid, depth: (call >> 32) as u32 };
    let Some(call) = OPEN_CALLS.get_ptr_mut(key) else { return 0 };
    // SAFETY: the pointer comes from the map and is not null; only this thread writes its own entry.
    let call = unsafe { &mut *call };
    let place = masked(place as usize, MAX_ITEMS);
    let item = &probe.items[place];
    let address = call.words[place];
    let used = call.len;
    #[expect(clippy::implicit_saturating_sub, reason = "the verifier follows the comparison")]
    let room = if used < CALL_BYTES as u32 { CALL_BYTES as u32 - used } else { 0 };
    let most = if room < ITEM_BYTES as u32 { room } else { ITEM_BYTES as u32 };
    let memory = if address == 0 {
        Memory { at: used as u16, len: 0, state: MemoryState::Null }
    } else if item.form == Form::Text as u8 {
        text(paging, call, address, most, now, ids)
    } else {
        let wanted = length(probe.items[masked(usize::from(item.length_of), MAX_ITEMS)], item, call);
        bytes(paging, call, address, wanted, most, now, ids)
    };
    call.words[place] = memory.word();
    call.len = used.wrapping_add(u32::from(memory.len));
    0
}

/// Returns the length of an item; `of` is the one that its length is, if another one is.
#[inline(always)]
fn length(of: CallItem, item: &CallItem, call: &CallRecord) -> u64 {
    if item.length_of == NO_ITEM {
        return u64::from(item.length);
    }
    of.as_length(call.words[masked(usize::from(item.length_of), MAX_ITEMS)])
}

/// Reads a text up to its NUL.
#[inline(always)]
fn text(paging: Paging, call: &mut CallRecord, address: u64, most: u32, now: u64, ids: Ids) -> Memory {
    let at = call.len as u16;
    if most == 0 {
        return Memory { at, len: 0, state: MemoryState::Cut };
    }
    let mut read = read_text(call, address, most);
    if paging == MayWait && read < 0 && mark_text::wait_for(address as *const u8, now, ids) {
        read = read_text(call, address, most);
        // The text continues in the next page, then. If it ends before, that page does not matter.
        let next = address.wrapping_add(PAGE_BYTES as u64 - address % PAGE_BYTES as u64);
        if read < 0 && mark_text::wait_for(next as *const u8, now, ids) {
            read = read_text(call, address, most);
        }
    }
    if read <= 0 {
        return Memory { at, len: 0, state: MemoryState::Unreadable };
    }
    // With the NUL, and one more byte where the text is longer than there is room.
    let read = read.cast_unsigned() as u32;
    if read > most + 1 {
        Memory { at, len: most as u16, state: MemoryState::Cut }
    } else {
        Memory { at, len: (read - 1) as u16, state: MemoryState::Whole }
    }
}

#[inline(always)]
fn read_text(call: &mut CallRecord, address: u64, most: u32) -> i64 {
    let to = call.data.as_mut_ptr().wrapping_add(masked(call.len as usize, CALL_BYTES));
    let size = masked(most as usize + 2, CALL_BYTES);
    // SAFETY: the helper checks the address; the room is twice as large as either of the two.
    unsafe { bpf_probe_read_user_str(to.cast(), size as u32, address as *const _) }
}

/// Reads this many bytes.
#[inline(always)]
fn bytes(
    paging: Paging,
    call: &mut CallRecord,
    address: u64,
    wanted: u64,
    most: u32,
    now: u64,
    ids: Ids,
) -> Memory {
    let at = call.len as u16;
    let len = if wanted > u64::from(most) { most } else { wanted as u32 };
    let state = if wanted > u64::from(most) { MemoryState::Cut } else { MemoryState::Whole };
    if len == 0 {
        return Memory { at, len: 0, state };
    }
    let mut read = read_bytes(call, address, len);
    if paging == MayWait
        && read < 0
        && mark_text::wait_for(address as *const u8, now, ids)
        && mark_text::wait_for(address.wrapping_add(u64::from(len) - 1) as *const u8, now, ids)
    {
        read = read_bytes(call, address, len);
    }
    if read < 0 {
        return Memory { at, len: 0, state: MemoryState::Unreadable };
    }
    Memory { at, len: len as u16, state }
}

#[inline(always)]
fn read_bytes(call: &mut CallRecord, address: u64, len: u32) -> i64 {
    let to = call.data.as_mut_ptr().wrapping_add(masked(call.len as usize, CALL_BYTES));
    let size = masked(len as usize, CALL_BYTES);
    // SAFETY: the helper checks the address; the room is twice as large as either of the two.
    unsafe { bpf_probe_read_user(to.cast(), size as u32, address as *const _) }
}
