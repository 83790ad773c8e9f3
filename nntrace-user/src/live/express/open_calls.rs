//! Calls of an engine's functions that are open in a lane.

use nntrace_common::{
    mark::Prefix,
    section_begin::ParsedBegin,
    stack::{MAX_DEPTH, Stack},
};

/// Open calls of one lane, and which of them are sections: one that an engine makes while it prepares a model is a part of
/// that, as with functions that are probed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OpenCalls {
    depth: u32,
    /// Bit `n`: the call with `n` others around it does not count as a section.
    parts: u64,
}

const _: () = assert!(MAX_DEPTH <= 64, "lanes take no section with 64 others around it");

impl OpenCalls {
    /// Takes the begin of a call, or the end of the innermost one; returns whether it counts. What is to be subtracted from the
    /// section around it does not where there is none.
    pub(super) fn counts(&mut self, begin: Option<&ParsedBegin>, stack: &Stack) -> bool {
        if let Some(begin) = begin {
            let has_nothing_around = begin.prefix == Prefix::Subtract && stack.depth() == 0;
            let is_part = stack.computes_constants(begin.label) || has_nothing_around;
            let bit = 1_u64.checked_shl(self.depth).unwrap_or(0);
            self.parts = if is_part { self.parts | bit } else { self.parts & !bit };
            self.depth = self.depth.saturating_add(1);
            return !is_part;
        }
        // A damaged lane has ends without begins.
        let Some(depth) = self.depth.checked_sub(1) else { return true };
        self.depth = depth;
        self.parts & 1_u64.checked_shl(depth).unwrap_or(0) == 0
    }
}

impl OpenCalls {
    /// Whether a call is open that is a section. Of the lanes of a thread one has such calls at most.
    pub(super) fn has_section(&self) -> bool {
        self.sections() != 0
    }

    /// Takes the innermost call that is a section as over: its end, which comes later, does not count.
    fn leave(&mut self) {
        self.parts |= self.sections().checked_ilog2().map_or(0, |highest| 1 << highest);
    }

    /// Calls that are sections, as [`parts`](Self::parts).
    fn sections(&self) -> u64 {
        1_u64.checked_shl(self.depth).map_or(u64::MAX, |bit| bit - 1) & !self.parts
    }
}

/// Open sections of a thread that are hooked calls. When a function around them that is probed has ended, they have too: a jump
/// out of all of them has left them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HookedSections {
    /// Bit `n`: the section with `n` others around it is a hooked call.
    bits: u64,
}

impl HookedSections {
    /// Whether no section is known to be one.
    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.bits == 0
    }

    /// Takes a section that was just begun, by the number of sections open now.
    #[inline]
    pub(super) fn begun(&mut self, depth: u8, is_call: bool) {
        if is_call || self.bits != 0 {
            let bit = 1_u64.checked_shl(u32::from(depth).wrapping_sub(1)).unwrap_or(0);
            self.bits = if is_call { self.bits | bit } else { self.bits & !bit };
        }
    }

    /// Whether the innermost section, at this depth, is a hooked call: it is over when the probed function around it ends.
    pub(super) fn is_left(self, depth: u8, calls: Option<&mut OpenCalls>) -> bool {
        let is_call = depth > 0 && self.bits >> (depth - 1).min(63) & 1 == 1;
        if is_call && let Some(calls) = calls {
            calls.leave();
        }
        is_call
    }
}

#[cfg(test)]
mod tests {
    use nntrace_common::mark;

    use super::*;

    fn section(tag: &str) -> ParsedBegin {
        let begin = mark::begin(format!("B|1|{tag}f").as_bytes());
        ParsedBegin::function(begin.prefix, begin.label, 7)
    }

    fn begin(stack: &mut Stack, tag: &str) {
        stack.begin(1, Prefix::None, section(tag).label, 7, |_, _| {});
    }

    #[test]
    fn what_a_jump_has_left_ends_once() {
        let (mut calls, stack) = (OpenCalls::default(), Stack::EMPTY);
        let mut sections = HookedSections::default();
        let operator = section("[NN_LC_PE]");
        sections.begun(1, false);
        for depth in 2..4 {
            assert!(calls.counts(Some(&operator), &stack));
            sections.begun(depth, true);
        }
        assert!(calls.has_section());
        assert!(sections.is_left(3, Some(&mut calls)) && sections.is_left(2, Some(&mut calls)));
        assert!(!calls.has_section());
        assert!(!sections.is_left(1, Some(&mut calls)) && !sections.is_left(0, None));
        assert!(!calls.counts(None, &stack) && !calls.counts(None, &stack), "they are over");
        // Another section in the place of one.
        sections.begun(2, false);
        assert!(!sections.is_left(2, Some(&mut calls)));
        sections.begun(64, true);
        assert!(sections.is_left(64, None));
    }

    #[test]
    fn operators_count_in_runs_and_not_while_a_model_is_prepared() {
        let (mut calls, mut stack) = (OpenCalls::default(), Stack::EMPTY);
        let (operator, wait) = (section("[NN_LC_PE]"), section("[SUB][NN_LU_PU]"));
        assert!(!calls.counts(Some(&wait), &stack) && !calls.counts(None, &stack));
        assert!(calls.counts(Some(&operator), &stack) && calls.counts(None, &stack));
        begin(&mut stack, "[NN_LR_PC]");
        assert!(!calls.counts(Some(&operator), &stack));
        // A run inside of it, as by an operator that has a session of its own.
        begin(&mut stack, "[NN_LR_PE]");
        assert!(calls.counts(Some(&operator), &stack));
        assert!(calls.counts(None, &stack));
        stack.end(2, |_, _| {});
        assert!(!calls.counts(None, &stack), "its begin did not count");
        assert!(calls.counts(None, &stack), "one too many counts as it is");
    }
}
