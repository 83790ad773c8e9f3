//! Functions of engines that a thread has entered, by stack pointer: which of them it has left.
//!
//! A function returns through an instruction that is probed, and then its stack pointer is what it was at its entry.
//! One that is left by an exception, `longjmp` or a jump to another function shows no end. The next event of the
//! thread does: the stack grows down, so what was entered at its stack pointer or below it is left. Where callers put the
//! address of the return on the stack, as on x86-64, so is what was entered above it if that address is gone: it stays
//! as long as the function runs, or another one in its place, and each further call of the caller's overwrites it.
//!
//! A coroutine has a stack of its own, wherever that is. Functions on a lower stack count as called by those on a higher
//! one, which is what they are when the coroutine runs to its end; a function on a higher stack ends those on a lower one
//! early. Functions of coroutines that never go on stay: they may not take the places of all that come later.

use crate::verifier_bounds::masked;

/// Functions of engines that a thread can be in at once. A power of two.
pub const MAX_FRAMES: usize = 16;

/// Bytes above its begin that a bracket survives: functions that are called next to the one that began it, in the same
/// caller, may stand a little above it.
const BRACKET_REACH: u64 = 4096;

/// Bytes between a function and one that it calls, directly or not, at most. Of more functions than there is room for,
/// those that are further apart are on different stacks.
const FAR: u64 = 32 << 10;

/// Function of an engine that a thread is in, or an open bracket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct EngineFrame {
    /// Stack pointer at the entry.
    pub sp: u64,
    /// Address that it returns to, which is at `sp`; 0 where that is unknown or does not matter.
    pub returns_to: u64,
    /// Number of the probe.
    pub probe: u32,
    /// Number of sections open on the thread, its own included.
    pub depth: u8,
    /// 1 for a bracket, else 0.
    pub is_bracket: u8,
    /// 1 when it may end without a probe, else 0.
    pub ends_unseen: u8,
    /// Always 0.
    pub reserved: u8,
}

/// Functions of engines that a thread is in.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct EngineFrames {
    /// Number of frames in use.
    used: u32,
    /// Number of the frame that starts an execution or waits for one, plus one; 0 for none.
    has_object: u32,
    /// Object of that execution.
    object: u64,
    /// Begin of that frame, ns.
    since: u64,
    frames: [EngineFrame; MAX_FRAMES],
}

/// Event of a thread in a function of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineEvent {
    /// Entry of the function of a probe.
    Entry,
    /// Return of the function of a probe.
    Return,
}

impl EngineFrames {
    /// Returns the innermost function.
    #[must_use]
    #[inline(always)]
    pub fn innermost(&self) -> Option<EngineFrame> {
        let used = self.used as usize;
        if used == 0 { None } else { Some(self.frames[masked(used - 1, MAX_FRAMES)]) }
    }

    /// Whether a section, by the number of sections open with it, is a function's own: no mark ends it.
    #[must_use]
    #[inline(always)]
    pub fn owns(&self, depth: u8) -> bool {
        matches!(self.innermost(), Some(frame) if frame.depth == depth && depth > 0)
    }

    /// Whether there is room for another function.
    #[must_use]
    #[inline(always)]
    pub fn has_room(&self) -> bool {
        (self.used as usize) < MAX_FRAMES
    }

    /// Enters a function; the caller has made sure that there is room.
    #[inline(always)]
    pub fn push(&mut self, frame: EngineFrame) {
        // What was at this place has ended.
        if self.has_object > self.used {
            self.has_object = 0;
        }
        self.frames[masked(self.used as usize, MAX_FRAMES)] = frame;
        self.used += 1;
    }

    /// Sets the object of the execution that the innermost function starts or waits for, from `since` (ns) on.
    #[inline(always)]
    pub fn set_object(&mut self, object: u64, since: u64) {
        self.has_object = self.used;
        self.object = object;
        self.since = since;
    }

    /// Returns the object of the execution that the innermost function starts or waits for, 0 for none; and since when (ns).
    #[must_use]
    #[inline(always)]
    pub fn object(&self) -> (u64, u64) {
        if self.has_object == self.used && self.used > 0 { (self.object, self.since) } else { (0, 0) }
    }

    /// Removes the functions whose sections are closed, when `depth` sections are open.
    #[inline(always)]
    pub fn pop_closed(&mut self, depth: u8) {
        if let Some(frame) = self.innermost()
            && frame.depth > depth
        {
            self.used -= 1;
        }
    }

    /// Returns the innermost function, if an event of a probe at the stack pointer `sp` shows that it was left without
    /// a return that was seen.
    #[must_use]
    #[inline(always)]
    pub fn left(&self, event: EngineEvent, probe: u32, sp: u64) -> Option<EngineFrame> {
        let frame = self.innermost()?;
        let is_left = match event {
            _ if frame.is_bracket != 0 => {
                sp > frame.sp.saturating_add(BRACKET_REACH)
                    || event == EngineEvent::Entry && probe == frame.probe && sp >= frame.sp
            }
            EngineEvent::Entry => sp >= frame.sp || !self.has_room() && frame.sp - sp > FAR,
            EngineEvent::Return => sp > frame.sp || sp == frame.sp && probe != frame.probe,
        };
        if is_left { Some(frame) } else { None }
    }

    /// Returns the innermost function if an event at the stack pointer `sp`, which is in it by that, does not show whether
    /// it was left: by what is at its own stack pointer now, the address that it returns to or another.
    #[must_use]
    #[inline(always)]
    pub fn perhaps_left(&self, sp: u64) -> Option<EngineFrame> {
        let frame = self.innermost()?;
        if frame.returns_to != 0 && frame.is_bracket == 0 && sp < frame.sp { Some(frame) } else { None }
    }

    /// Returns the number of functions, from the innermost on, that may have ended without an event; none if `depth`
    /// sections are open, and the innermost is no function's.
    #[must_use]
    #[inline(always)]
    pub fn perhaps_ended(&self, depth: u8) -> u32 {
        let mut ended = 0;
        while self.owns(depth)
            && (ended as usize) < MAX_FRAMES
            && ended < self.used
            && self.frames[masked((self.used - 1 - ended) as usize, MAX_FRAMES)].ends_unseen != 0
        {
            ended += 1;
        }
        ended
    }

    /// Whether the return of a probe's function at this stack pointer is that of the innermost one.
    #[must_use]
    #[inline(always)]
    pub fn returns(&self, probe: u32, sp: u64) -> bool {
        matches!(self.innermost(), Some(frame) if frame.is_bracket == 0 && frame.sp == sp && frame.probe == probe)
    }

    /// Whether the bracket that a probe begins is open, whatever is open in it.
    #[must_use]
    #[inline(always)]
    pub fn has_bracket(&self, probe: u32) -> bool {
        let mut number = 0;
        while number < MAX_FRAMES && number < self.used as usize {
            let frame = &self.frames[masked(number, MAX_FRAMES)];
            if frame.is_bracket != 0 && frame.probe == probe {
                return true;
            }
            number += 1;
        }
        false
    }
}

#[cfg(test)]
mod tests;
