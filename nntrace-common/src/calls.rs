//! Calls of functions that are recorded with their arguments: what the kernel programs read of each, as user space
//! describes it, and the records that they make of it.
//!
//! A probe has a number, which the kernel hands to the programs as a part of its cookie. An open call is kept as the
//! record that it will be, and goes to a ring when it ends: with as many bytes of texts and blocks as it has.

/// Functions that are probed for their calls at most.
pub const MAX_CALL_PROBES: usize = 256;
/// Items of one call at most: arguments, what is read of them at the return, and the result. A power of two.
pub const MAX_ITEMS: usize = 16;
/// Bytes of one text or block at most; the rest is cut off.
pub const ITEM_BYTES: usize = 512;
/// Bytes of all texts and blocks of one call at most. A power of two.
pub const CALL_BYTES: usize = 1024;
/// Room for them: what the verifier sees is a read of up to [`CALL_BYTES`] that begins below [`CALL_BYTES`].
pub const ROOM: usize = 2 * CALL_BYTES;
/// Registers with arguments at most.
pub const MAX_REGISTERS: usize = 8;

/// Place of the word that an item is, or is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Place {
    /// Register for arguments, by its number from 0.
    Register = 0,
    /// Word of the stack after what a call puts there, by its number from 0.
    Stack = 1,
    /// Register for results, at the return.
    Result = 2,
}

/// Form of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Form {
    /// The word itself.
    Word = 0,
    /// Text behind it, up to a NUL.
    Text = 1,
    /// Bytes behind it.
    Bytes = 2,
}

/// Stands for no other item.
pub const NO_ITEM: u8 = u8::MAX;
/// Set in [`CallItem::width`] of an integer that may be negative.
pub const SIGNED: u8 = 0x80;

/// Item of a call: an argument, a part of memory, the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct CallItem {
    /// [`Place`] of its word.
    pub place: u8,
    /// Number of that place.
    pub number: u8,
    /// [`Form`].
    pub form: u8,
    /// 1 when its memory is read at the return, else 0.
    pub is_at_return: u8,
    /// Number of the item that is its length in bytes, or [`NO_ITEM`].
    pub length_of: u8,
    /// Bytes of its word that count, with [`SIGNED`].
    pub width: u8,
    /// Length in bytes, where no other item is.
    pub length: u16,
}

impl CallItem {
    /// No item.
    pub const NONE: Self =
        Self { place: 0, number: 0, form: 0, is_at_return: 0, length_of: NO_ITEM, width: 8, length: 0 };

    /// Returns the length, in bytes, that this item's word stands for; none if that is negative.
    #[must_use]
    #[inline(always)]
    pub const fn as_length(&self, word: u64) -> u64 {
        let bits = (self.width & 0xf) as u32 * 8;
        if bits == 0 || bits > 64 {
            return 0;
        }
        let value = word & (u64::MAX >> (64 - bits));
        if self.width & SIGNED != 0 && value >> (bits - 1) != 0 { 0 } else { value }
    }
}

/// Function whose calls are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct CallProbe {
    /// Bytes that the function has pushed on the stack before the probed instruction.
    pub pushed: u32,
    /// Number of items.
    pub count: u32,
    /// Items; those of the arguments come first.
    pub items: [CallItem; MAX_ITEMS],
}

/// Key of an open call: a thread, and how many calls are open with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct CallKey {
    /// Thread id.
    pub tid: u32,
    /// Number of calls that are open on the thread, this one included.
    pub depth: u32,
}

/// End of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CallEnd {
    /// No end yet: the call is open.
    Open = 0,
    /// A return.
    Returned = 1,
    /// A jump to another function, which returns in its place.
    Jumped = 2,
    /// Anything else, such as an exception, `longjmp` or the end of the thread. The time is that of the thread's next event.
    Left = 3,
}

impl CallEnd {
    /// Returns the end with a number.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::Open,
            1 => Self::Returned,
            2 => Self::Jumped,
            3 => Self::Left,
            _ => return None,
        })
    }
}

/// State of the memory of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MemoryState {
    /// Not read, as the call did not return.
    Unread = 0,
    /// Read in full.
    Whole = 1,
    /// The rest is cut off.
    Cut = 2,
    /// It could not be read.
    Unreadable = 3,
    /// There is none: the pointer is null.
    Null = 4,
}

/// Memory of an item, as it stands in the item's word once it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Offset in [`CallRecord::data`].
    pub at: u16,
    /// Length in bytes.
    pub len: u16,
    /// State.
    pub state: MemoryState,
}

impl Memory {
    /// Returns the word.
    #[must_use]
    #[inline(always)]
    pub const fn word(self) -> u64 {
        self.len as u64 | (self.at as u64) << 16 | (self.state as u64) << 32
    }

    /// Reads a word; `None` if it is none.
    #[must_use]
    pub const fn from_word(word: u64) -> Option<Self> {
        let state = match word >> 32 {
            0 => MemoryState::Unread,
            1 => MemoryState::Whole,
            2 => MemoryState::Cut,
            3 => MemoryState::Unreadable,
            4 => MemoryState::Null,
            _ => return None,
        };
        Some(Self { at: (word >> 16) as u16, len: word as u16, state })
    }
}

/// Call of a function. In a ring it ends after the bytes of `data` that are in use.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    feature = "user",
    derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout)
)]
#[repr(C)]
pub struct CallRecord {
    /// [`RecordKind::Call`](crate::record::RecordKind::Call).
    pub kind: u32,
    /// Thread id.
    pub tid: u32,
    /// Process id.
    pub tgid: u32,
    /// Number of the probe.
    pub probe: u32,
    /// Begin, ns.
    pub begin: u64,
    /// End, ns; 0 while it is open.
    pub end: u64,
    /// [`CallEnd`].
    pub ended: u32,
    /// Bytes in use in `data`.
    pub len: u32,
    /// Words of the items: of those in memory, a [`Memory`].
    pub words: [u64; MAX_ITEMS],
    /// Texts and blocks.
    pub data: [u8; ROOM],
}

/// Bytes of a record without texts and blocks.
pub const CALL_HEADER: usize = core::mem::offset_of!(CallRecord, data);

/// Counts of calls on one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CallCounts {
    /// Calls of functions that are probed for it.
    pub calls: u64,
    /// Calls among these that are not recorded, as their thread was in too many already.
    pub too_deep: u64,
    /// Calls among these that are not recorded, as a table was full.
    pub no_room: u64,
    /// Calls among these that are not recorded, as a ring was full when they ended.
    pub dropped: u64,
}

impl CallCounts {
    /// Adds the counts of another CPU.
    pub const fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.too_deep += other.too_deep;
        self.no_room += other.no_room;
        self.dropped += other.dropped;
    }
}

#[cfg(feature = "user")]
mod user {
    use aya::Pod;

    use super::{CallCounts, CallKey, CallProbe, CallRecord};

    // SAFETY: `repr(C)` without padding, and the map holds only what this crate's own code wrote as that type.
    unsafe impl Pod for CallProbe {}
    // SAFETY: as above.
    unsafe impl Pod for CallKey {}
    // SAFETY: as above.
    unsafe impl Pod for CallRecord {}
    // SAFETY: as above.
    unsafe impl Pod for CallCounts {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_of_the_width_of_their_type() {
        let item = |width| CallItem { width, ..CallItem::NONE };
        assert_eq!(item(1).as_length(0xffff_ff05), 5);
        assert_eq!(item(4).as_length(u64::MAX), u64::from(u32::MAX));
        assert_eq!(item(4 | SIGNED).as_length(u64::MAX), 0, "negative");
        assert_eq!(item(4 | SIGNED).as_length(0xdead_0000_0000_0010), 16, "the upper half is not its");
        assert_eq!(item(8).as_length(u64::MAX), u64::MAX);
        assert_eq!(item(8 | SIGNED).as_length(u64::MAX), 0);
        assert_eq!(item(0).as_length(7), 0);
        assert_eq!(item(9).as_length(7), 0);
    }

    #[test]
    fn words_of_memory_are_read_back() {
        for state in [
            MemoryState::Unread,
            MemoryState::Whole,
            MemoryState::Cut,
            MemoryState::Unreadable,
            MemoryState::Null,
        ] {
            let memory = Memory { at: 1023, len: 512, state };
            assert_eq!(Memory::from_word(memory.word()), Some(memory));
        }
        assert_eq!(Memory::from_word(5 << 32), None);
        assert_eq!(Memory::from_word(u64::MAX), None);
    }

    #[test]
    fn counts_of_cpus_add_up() {
        let one = CallCounts { calls: 1, too_deep: 2, no_room: 3, dropped: 4 };
        let mut sum = one;
        sum.add(&one);
        assert_eq!(sum, CallCounts { calls: 2, too_deep: 4, no_room: 6, dropped: 8 });
    }
}
