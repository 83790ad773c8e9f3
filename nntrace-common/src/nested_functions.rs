//! Nested mark functions, which a thread enters for one mark: `ATrace_beginSection` calls `atrace_begin_body`, which
//! may call `tracing_mark_write`. The outermost one counts.
//!
//! A function that calls another one is visible at that one's entry: the return address lies in its code. If it
//! jumped there instead (a tail call), return address and stack pointer are its own. If other functions are between
//! them, these have frames on the stack, and frame pointers lead from one to the next. So returns need not be seen: a
//! probe on a return replaces the return address, and an exception that finds it ends the process.

/// Number of calling functions that are remembered per thread.
const FUNCTIONS: usize = 8;
/// Number of functions between two mark functions of one mark at most.
const BETWEEN: usize = 4;
/// Address bits of a return address: arm64 signs those on the stack in the upper bits.
const ADDRESS: u64 = (1 << 48) - 1;

/// Kind of mark functions that do the same. Only those of different kinds jump to each other for one mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum FunctionKind {
    /// `tracing_mark_write` and others that take a whole mark.
    Mark = 1,
    /// `atrace_begin_body` and `atrace_end_body`.
    Body = 2,
    /// `ATrace_beginSection` and `ATrace_endSection`.
    Ndk = 3,
}

impl FunctionKind {
    /// Returns the kind with this number.
    #[must_use]
    #[inline(always)]
    pub const fn from_code(code: u32) -> Option<Self> {
        match code {
            1 => Some(Self::Mark),
            2 => Some(Self::Body),
            3 => Some(Self::Ndk),
            _ => None,
        }
    }
}

/// Facts about the code of a mark function, set by user space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct MarkCode {
    /// Bytes from the probed instruction to the function's end; 0 when unknown.
    pub length: u32,
    /// 1 when the function may end by a jump to another mark function, else 0.
    pub jumps: u32,
}

/// Code of a function, from the probed instruction to its end.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Code {
    start: u64,
    length: u64,
}

/// Entry into a mark function.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Kind of the function.
    pub kind: FunctionKind,
    /// Address of the probed instruction.
    pub address: u64,
    /// Facts about its code.
    pub code: MarkCode,
    /// Stack pointer, before the function has pushed anything.
    pub sp: u64,
    /// Return address.
    pub return_address: u64,
    /// Frame pointer: it points to the caller's frame pointer and return address, as stored by the last function with
    /// a frame.
    pub frame: u64,
}

/// Mark functions that a thread has entered.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Nesting {
    /// Stack pointer at the last entry; 0 before the first.
    entry_sp: u64,
    /// Return address of the last entry.
    entry_return: u64,
    /// [`FunctionKind`] of the last entry, if it may jump to another function; else 0.
    entry_kind: u32,
    /// Index in [`Self::functions`] for the next new one.
    next: u32,
    /// Functions that may call others.
    functions: [Code; FUNCTIONS],
}

impl Nesting {
    /// Enters a mark function; returns whether it is the outermost one of its mark. `read` returns the two words at
    /// an address of the thread.
    #[inline(always)]
    pub fn enter(&mut self, entry: &Entry, read: impl Fn(u64) -> Option<[u64; 2]>) -> bool {
        let is_called = self.knows(entry.return_address) || self.is_called_by_others(entry, read);
        let is_jumped_to = entry.sp == self.entry_sp
            && entry.return_address == self.entry_return
            && self.entry_kind != 0
            && entry.kind as u32 != self.entry_kind;
        // A function that is called while another one waits for it does not affect the jumps of the other one.
        if !is_called {
            self.entry_sp = entry.sp;
            self.entry_return = entry.return_address;
            self.entry_kind = if entry.code.jumps == 0 { 0 } else { entry.kind as u32 };
        }
        // The last byte of the code suffices to find it.
        let length = u64::from(entry.code.length);
        if length > 0 && !self.knows(entry.address.wrapping_add(length - 1)) {
            let slot = crate::verifier_bounds::masked(self.next as usize, FUNCTIONS);
            self.functions[slot] = Code { start: entry.address, length };
            self.next = self.next.wrapping_add(1);
        }
        !is_called && !is_jumped_to
    }

    /// Whether a known function called this one through other functions, whose frames lead to it.
    #[inline(always)]
    fn is_called_by_others(&self, entry: &Entry, read: impl Fn(u64) -> Option<[u64; 2]>) -> bool {
        let (mut above, mut frame) = (entry.sp, entry.frame);
        for _ in 0..BETWEEN {
            // Frames of functions called by the last one are lower on the stack than its entry. Anything else is no
            // frame, as functions without frames use the register for other things.
            if frame < above || frame >= self.entry_sp {
                return false;
            }
            let Some([outer, return_address]) = read(frame) else { return false };
            if self.knows(return_address & ADDRESS) {
                return true;
            }
            (above, frame) = (frame + 1, outer);
        }
        false
    }

    /// Whether an address lies in the code of a function that this thread has entered.
    #[inline(always)]
    fn knows(&self, address: u64) -> bool {
        self.functions.iter().any(|code| address.wrapping_sub(code.start) < code.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NDK: u64 = 0x1000;
    const BODY: u64 = 0x2000;
    const MARK: u64 = 0x3000;
    /// Two calls in the code of the marking program.
    const CALL: u64 = 0x9000;
    const OTHER_CALL: u64 = 0x9010;

    fn entry(address: u64, sp: u64, return_address: u64) -> Entry {
        let (kind, length, jumps) = match address {
            NDK => (FunctionKind::Ndk, 0x20, 1),
            BODY => (FunctionKind::Body, 0x80, 1),
            // It does not jump anywhere.
            _ => (FunctionKind::Mark, 8, 0),
        };
        Entry { kind, address, code: MarkCode { length, jumps }, sp, return_address, frame: 0 }
    }

    fn nothing(_: u64) -> Option<[u64; 2]> {
        None
    }

    fn counted(entries: &[(u64, u64, u64)]) -> Vec<bool> {
        let mut nesting = Nesting::default();
        entries.iter().map(|&(address, sp, from)| nesting.enter(&entry(address, sp, from), nothing)).collect()
    }

    #[test]
    fn functions_between_them_are_seen_by_their_frames() {
        // `ATrace_beginSection` calls a function that calls another that calls `atrace_begin_body`, each with a
        // frame.
        let signed = 0x00aa_0000_0000_0000;
        let frames = |at: u64| match at {
            40 => Some([64, OTHER_CALL]),
            64 => Some([90, signed | (NDK + 9)]),
            90 => Some([200, CALL]),
            _ => None,
        };
        let through = |frame: u64, return_address| {
            let mut nesting = Nesting::default();
            assert!(nesting.enter(&entry(NDK, 100, CALL), nothing));
            nesting.enter(&Entry { frame, ..entry(BODY, 20, return_address) }, frames)
        };
        assert!(!through(40, OTHER_CALL + 4));
        // The same stack without frames, or with something else in the register.
        for frame in [0, 7, 90, 100, 5000] {
            assert!(through(frame, OTHER_CALL + 4), "{frame}");
        }
        // A circular chain would be read forever.
        let mut nesting = Nesting::default();
        nesting.enter(&entry(NDK, 100, CALL), nothing);
        assert!(nesting.enter(&Entry { frame: 40, ..entry(BODY, 20, OTHER_CALL) }, |_| Some([40, CALL])));
    }

    #[test]
    fn calls_and_jumps_of_mark_functions_are_parts_of_one_mark() {
        let called = [(NDK, 100, CALL), (BODY, 80, NDK + 9), (MARK, 40, BODY + 0x30)];
        assert_eq!(counted(&called), [true, false, false]);
        let jumped = [(NDK, 100, CALL), (BODY, 100, CALL), (MARK, 100, CALL)];
        assert_eq!(counted(&jumped), [true, false, false]);
        let mixed = [(NDK, 100, CALL), (BODY, 100, CALL), (MARK, 40, BODY + 0x30), (MARK, 40, BODY + 0x38)];
        assert_eq!(counted(&mixed), [true, false, false, false]);
        let called_then_jumped = [(NDK, 100, CALL), (BODY, 80, NDK + 9), (MARK, 100, CALL)];
        assert_eq!(counted(&called_then_jumped), [true, false, false]);
    }

    #[test]
    fn calls_of_others_are_marks_of_their_own_wherever_the_stack_stands() {
        // At the same place, deeper, and on an unrelated stack.
        for sp in [100, 60, 20, 100_000, 8] {
            let entries =
                [(NDK, 100, CALL), (BODY, 100, CALL), (BODY, sp, OTHER_CALL), (MARK, sp, OTHER_CALL + 8)];
            assert_eq!(counted(&entries), [true, false, true, true], "{sp}");
        }
        // One place calls different functions: without a jump, the first one has returned.
        assert_eq!(counted(&[(MARK, 100, CALL), (BODY, 100, CALL), (BODY, 100, CALL)]), [true; 3]);
        // In a loop each call counts.
        assert_eq!(counted(&[(MARK, 100, CALL); 4]), [true; 4]);
        assert_eq!(counted(&[(NDK, 100, CALL); 4]), [true; 4]);
    }

    #[test]
    fn many_functions_take_the_places_of_those_that_were_entered_first() {
        let mut nesting = Nesting::default();
        let functions = (0..2 * FUNCTIONS as u64).map(|number| 0x10_0000 + (number << 12));
        let enter = |nesting: &mut Nesting, address, return_address| {
            let entry =
                Entry { code: MarkCode { length: 16, jumps: 0 }, ..entry(address, 100, return_address) };
            nesting.enter(&entry, nothing)
        };
        for address in functions {
            assert!(enter(&mut nesting, address, CALL));
            assert!(enter(&mut nesting, address, OTHER_CALL), "twice in one place");
            assert!(!enter(&mut nesting, address, address + 15), "by itself");
        }
        assert!(enter(&mut nesting, BODY, 0x10_0008), "the first is forgotten");
    }

    #[test]
    fn the_bytes_behind_a_function_are_not_its_own() {
        assert_eq!(counted(&[(NDK, 100, CALL), (BODY, 80, NDK + 0x20), (BODY, 60, NDK - 1)]), [true; 3]);
    }
}
