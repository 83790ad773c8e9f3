//! The state of a traced thread in the kernel programs.

use crate::diagnostic::{Diagnostics, HeldDiagnostics};
use crate::engine_frames::EngineFrames;
use crate::mark::{BUFFER_BYTES, Begin};
use crate::nested_functions::Nesting;
use crate::stack::Stack;

/// Mark in which a name was first seen: user space extracts the name with the same grammar.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct NameText {
    /// Bytes used in `payload`.
    pub len: u32,
    /// Offset of the name in the payload.
    pub name_at: u32,
    /// Payload, followed by zeros.
    pub payload: [u8; BUFFER_BYTES],
}

/// Names that a thread remembers to be known. A power of two.
pub const KNOWN_NAMES: usize = 8;

/// Open sections of a traced thread, and the buffer that its marks are read into. Only the thread itself writes it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Thread {
    /// Open sections.
    pub stack: Stack,
    /// Current mark. Not on the program's stack, which is too small, nor per CPU, where another thread may preempt
    /// this one.
    pub mark: NameText,
    /// Mark functions that the thread has entered, where one may call another.
    pub nesting: Nesting,
    /// Functions of engines that the thread is in.
    pub engines: EngineFrames,
    /// Names that are in the table of names, by their lowest bits: most marks have one of the last few.
    pub known_names: [u64; KNOWN_NAMES],
    /// The current mark parsed, if it is a begin.
    pub begin: Begin,
    /// Whether the thread takes part in the accounting: not before a mark of its own, or the server of a device.
    pub is_marked: u32,
    /// Diagnostics of the current mark.
    pub odd: Diagnostics,
    /// Whether the thread has made interface calls.
    pub has_calls: u32,
    /// Diagnostics from before it takes part.
    pub held: HeldDiagnostics,
    /// Forwarding of the thread's marks, once user space accounts them. The stack then has the sections that were begun by
    /// a probe only.
    pub express: Forwarding,
}

/// Forwarding of a thread's marks to user space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Forwarding {
    /// Number of the next record; 0 while marks are not forwarded.
    pub next: u32,
    /// Whether the last record is lost.
    pub is_losing: u32,
    /// Time (ns) of the first record in `lost`.
    pub lost_from: u64,
    /// Records that were lost last. They stay here after their [`RecordKind::ForwardedLoss`](super::RecordKind::ForwardedLoss), which is read later.
    pub lost: LostRecords,
}

/// Forwarded records that found a ring full, one after the other. Both words are written, and read, at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct LostRecords {
    /// Number of the first.
    pub first: u32,
    /// Number of records; 0 for none.
    pub count: u32,
}

impl LostRecords {
    /// Returns the number of the record after the last.
    #[must_use]
    #[inline(always)]
    pub const fn next(&self) -> u32 {
        self.first.wrapping_add(self.count)
    }
}

impl Forwarding {
    /// Whether marks are forwarded.
    #[must_use]
    #[inline(always)]
    pub const fn is_on(&self) -> bool {
        self.next != 0
    }

    /// Starts forwarding.
    #[inline(always)]
    pub const fn start(&mut self) {
        self.next = after_forwarded(0);
    }

    /// Returns the number of the record that is forwarded now.
    #[inline(always)]
    pub const fn number(&mut self) -> u32 {
        let number = self.next;
        self.next = after_forwarded(number);
        number
    }

    /// Notes that the record of this number and time (ns) is lost.
    #[inline(always)]
    pub const fn note_lost(&mut self, number: u32, now: u64) {
        if self.is_losing == 0 {
            self.lost_from = now;
            self.lost = LostRecords { first: number, count: 1 };
        } else {
            self.lost = LostRecords { first: self.lost.first, count: self.lost.count + 1 };
        }
        self.is_losing = 1;
    }
}

/// Returns the number of the forwarded record after this one. It never is 0, which stands for a thread without any.
#[must_use]
#[inline(always)]
pub const fn after_forwarded(number: u32) -> u32 {
    let next = number.wrapping_add(1);
    if next == 0 { 1 } else { next }
}
