//! Which mark functions a thread enters on the way of one mark: `ATrace_beginSection` calls `atrace_begin_body`, which may
//! call `tracing_mark_write`. The outermost one counts.
//!
//! A function that calls another one leaves its trace at that one's entry: the return address lies in its code. Where it
//! jumped there instead (a tail call), return address and stack pointer are its own. Where others are between them, they
//! have frames on the stack, and frame pointers lead from one to the next. So nobody has to see returns: a probe on a
//! return replaces the return address, and an exception that finds it ends the process.

/// Functions that call others that a thread can use without one being forgotten.
const FUNCTIONS: usize = 8;
/// Functions between two mark functions of one mark, at most.
const BETWEEN: usize = 4;
/// The bits of an address in a return address: arm64 signs those that it keeps on the stack by bits above.
const ADDRESS: u64 = (1 << 48) - 1;

/// Mark functions that do the same. Only those of different kinds jump to each other for one mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum FunctionKind {
    /// `tracing_mark_write` and others that are handed a whole mark.
    Mark = 1,
    /// `atrace_begin_body` and `atrace_end_body`.
    Body = 2,
    /// `ATrace_beginSection` and `ATrace_endSection`.
    Ndk = 3,
}

impl FunctionKind {
    /// The one with this number.
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

/// What user space knows of the code of a mark function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct MarkCode {
    /// Bytes from the probed instruction to its end; 0 when that is not known.
    pub length: u32,
    /// 1 when it may end by a jump to another mark function, else 0.
    pub jumps: u32,
}

/// Code of a function, from the instruction that is probed to its end.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Code {
    start: u64,
    length: u64,
}

/// How a mark function was entered.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its kind.
    pub kind: FunctionKind,
    /// Address of the instruction that is probed.
    pub address: u64,
    /// What is known of its code.
    pub code: MarkCode,
    /// Stack pointer, before it has pushed anything.
    pub sp: u64,
    /// Where it returns to.
    pub return_address: u64,
    /// Frame pointer: where the last function that keeps one has put the one before and its return address.
    pub frame: u64,
}

/// The mark functions that a thread has entered.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Nesting {
    /// Stack pointer at the entry of the last one; 0 before the first.
    entry_sp: u64,
    /// Where that one returns to.
    entry_return: u64,
    /// Its [`FunctionKind`], where it may jump to another one; else 0.
    entry_kind: u32,
    /// Where in [`Self::functions`] the next new one goes.
    next: u32,
    /// Those that may call others.
    functions: [Code; FUNCTIONS],
}

impl Nesting {
    /// A thread enters a mark function; whether it is the outermost one of its mark. `read` gives the two words at an
    /// address of the thread's.
    #[inline(always)]
    pub fn enter(&mut self, entry: &Entry, read: impl Fn(u64) -> Option<[u64; 2]>) -> bool {
        let is_called = self.knows(entry.return_address) || self.is_called_by_others(entry, read);
        let is_jumped_to = entry.sp == self.entry_sp
            && entry.return_address == self.entry_return
            && self.entry_kind != 0
            && entry.kind as u32 != self.entry_kind;
        // One that is called while another one waits for it changes nothing for those that the other one jumps to.
        if !is_called {
            self.entry_sp = entry.sp;
            self.entry_return = entry.return_address;
            self.entry_kind = if entry.code.jumps == 0 { 0 } else { entry.kind as u32 };
        }
        // Its last byte is enough to tell that it is there.
        let length = u64::from(entry.code.length);
        if length > 0 && !self.knows(entry.address.wrapping_add(length - 1)) {
            let slot = crate::bounds::masked(self.next as usize, FUNCTIONS);
            self.functions[slot] = Code { start: entry.address, length };
            self.next = self.next.wrapping_add(1);
        }
        !is_called && !is_jumped_to
    }

    /// Whether a function that a known one has called, or one that this has called, calls it.
    #[inline(always)]
    fn is_called_by_others(&self, entry: &Entry, read: impl Fn(u64) -> Option<[u64; 2]>) -> bool {
        let (mut above, mut frame) = (entry.sp, entry.frame);
        for _ in 0..BETWEEN {
            // Frames of what the last one called are lower on the stack than it was. Anything else is no frame, as
            // functions that keep none use the register for what they like.
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
    /// Two calls in the code of whoever marks.
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
        // `ATrace_beginSection` calls one that calls one that calls `atrace_begin_body`, each with a frame.
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
        // The same stack when nobody keeps frames, or the register holds something else.
        for frame in [0, 7, 90, 100, 5000] {
            assert!(through(frame, OTHER_CALL + 4), "{frame}");
        }
        // A chain that leads back would be read for ever.
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
        // At the same place, deeper, and on a stack that has nothing to do with the first.
        for sp in [100, 60, 20, 100_000, 8] {
            let entries =
                [(NDK, 100, CALL), (BODY, 100, CALL), (BODY, sp, OTHER_CALL), (MARK, sp, OTHER_CALL + 8)];
            assert_eq!(counted(&entries), [true, false, true, true], "{sp}");
        }
        // One place calls what it is told to: whoever does not jump has returned.
        assert_eq!(counted(&[(MARK, 100, CALL), (BODY, 100, CALL), (BODY, 100, CALL)]), [true; 3]);
        // In a loop each counts.
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
