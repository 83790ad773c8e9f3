//! Stack accounting of one thread, one event at a time, each in constant time.
//!
//! Source: the mark contract, section 2. The kernel programs run this code on a [`Stack`] per thread; every index
//! into it is masked, so that the verifier accepts it as it stands.

use crate::diagnostic::{DiagnosticKind, Diagnostics};
use crate::layer::{Layer, Phase, Tag};
use crate::mark::{Label, Prefix};
use crate::verifier_bounds::masked;

mod added_totals;
mod engines;
mod frame;
#[cfg(any(test, feature = "oracle"))]
pub mod oracle;
mod path;
mod rules;

pub use added_totals::Adds;
use frame::open_bits;
pub use frame::{Class, Frame};
pub use path::{PathStep, ROOT_PATH, outermost_path};
use path::{path_hash, step_of};

/// Sections that can be open on one thread at once. A power of two.
pub const MAX_DEPTH: usize = 64;

/// Depth of a section that was on no stack: no section contains it, or is contained in it.
pub const ON_NO_STACK: u8 = u8::MAX;

/// Number of a marked frame, plus one; 0 for none.
type Link = u8;

/// Open sections of one thread.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Stack {
    /// Number of frames in use.
    depth: u32,
    /// Number of sections open beyond [`MAX_DEPTH`].
    beyond: u32,
    /// Number of marked frames in use.
    marked: u32,
    /// Number of the last change of the application's phases ([`crate::app_events`]).
    slot: u16,
    reserved: u16,
    frames: [Frame; MAX_DEPTH],
}

/// Closed frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// Begin, ns.
    pub begin: u64,
    /// End, ns; never before `begin`.
    pub end: u64,
    /// Duration without subtracted sections, ns.
    pub own: u64,
    /// Duration without the marked frames in it, ns.
    pub exclusive: u64,
    /// Hash of the tags from the outermost marked frame to this one.
    pub path: u64,
    /// Hash of the name.
    pub name: u64,
    /// Layer and (resolved) phase.
    pub tag: Tag,
    /// Class; always a marked one.
    pub class: Class,
    /// Totals that `own` is added to.
    pub adds: Adds,
    /// Number of marked and foreign frames open around it; [`ON_NO_STACK`] for an asynchronous execution.
    pub depth: u8,
    /// Number of the last change of the application's phases before it began.
    pub slot: u16,
}

impl Closed {
    /// Returns an asynchronous execution from `begin` to `end` (ns). It was in flight, between the two calls, for `in_flight`
    /// (ns).
    #[must_use]
    #[inline(always)]
    pub const fn asynchronous(
        tag: Tag,
        name: u64,
        (begin, end): (u64, u64),
        in_flight: u64,
        slot: u16,
    ) -> Self {
        Self {
            exclusive: in_flight,
            path: outermost_path(tag.index(), Class::Asynchronous),
            class: Class::Asynchronous,
            depth: ON_NO_STACK,
            ..Self::alone(tag, name, begin, end, slot)
        }
    }

    /// Returns a section of its own, from `begin` to `end` (ns), with nothing around it and nothing in it.
    #[must_use]
    #[inline(always)]
    pub const fn alone(tag: Tag, name: u64, begin: u64, end: u64, slot: u16) -> Self {
        let duration = end.saturating_sub(begin);
        Self {
            begin,
            end,
            own: duration,
            exclusive: duration,
            path: outermost_path(tag.index(), Class::Section),
            name,
            tag,
            class: Class::Section,
            adds: Adds::new(1, 0),
            depth: 0,
            slot,
        }
    }
}

impl Stack {
    /// Stack without an open section.
    pub const EMPTY: Self =
        Self { depth: 0, beyond: 0, marked: 0, slot: 0, reserved: 0, frames: [Frame::EMPTY; MAX_DEPTH] };

    /// Returns the number of open marked sections, as far as the table reaches.
    #[must_use]
    #[inline(always)]
    pub const fn open_sections(&self) -> u32 {
        self.marked
    }

    /// Sets the last change of the application's phases, for sections that begin from now on.
    #[inline(always)]
    pub fn set_slot(&mut self, slot: u16) {
        self.slot = slot;
    }

    /// Returns the number of open frames, as far as the table reaches.
    #[must_use]
    #[inline(always)]
    pub const fn depth(&self) -> u8 {
        self.depth as u8
    }

    /// Returns the number of frames around a section that begins now; `None` when there is no room for it.
    #[must_use]
    #[inline(always)]
    pub const fn depth_of_next(&self, prefix: Prefix) -> Option<u8> {
        if self.depth as usize >= MAX_DEPTH {
            return None;
        }
        // A switch leaves a placeholder, even where nothing is open.
        Some(if matches!(prefix, Prefix::Switch) && self.depth == 0 { 1 } else { self.depth as u8 })
    }

    /// Whether no section is open, marked or not.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.depth == 0
    }

    /// Returns the begin of the outermost frame, ns; meaningless when none is open.
    #[must_use]
    #[inline(always)]
    pub const fn first_begin(&self) -> u64 {
        self.frames[0].begin
    }

    /// Returns the open marked frames, as far as the table reaches, from the outermost in, with the number of frames around each.
    pub fn open_frames(&self) -> impl Iterator<Item = (u8, &Frame)> {
        let depth = (self.depth as usize).min(MAX_DEPTH);
        (0..).zip(&self.frames[..depth]).filter(|(_, frame)| frame.class.is_marked())
    }

    /// Whether the innermost frame is a call that is in no other call of its layer.
    #[must_use]
    #[inline(always)]
    pub fn is_call_of_its_own(&self) -> bool {
        self.depth > 0 && matches!(self.frame(self.depth as usize - 1).class, Class::Section | Class::Part)
    }

    /// Returns the place of the innermost marked frame plus one; 0 where there is none.
    #[must_use]
    #[inline(always)]
    pub fn innermost(&self) -> u8 {
        self.parent_of_next()
    }

    #[inline(always)]
    fn frame(&self, number: usize) -> &Frame {
        &self.frames[masked(number, MAX_DEPTH)]
    }

    #[inline(always)]
    fn frame_mut(&mut self, number: usize) -> &mut Frame {
        &mut self.frames[masked(number, MAX_DEPTH)]
    }

    /// Returns the nearest marked frame around a new frame on top.
    #[inline(always)]
    fn parent_of_next(&self) -> Link {
        let depth = self.depth;
        if depth == 0 {
            return 0;
        }
        let top = self.frame(depth as usize - 1);
        if top.class.is_marked() { depth as u8 } else { top.parent }
    }

    /// Begins a section at `now` (ns). The frame that a switch closes is passed to `closed`; diagnostics are
    /// returned.
    ///
    /// A closed frame is passed to a function, and not returned as an option, because copying an empty option copies
    /// unwritten bytes, which the verifier refuses.
    #[inline(always)]
    pub fn begin(
        &mut self,
        now: u64,
        prefix: Prefix,
        label: Label,
        name: u64,
        closed: impl FnMut(&Self, &Closed),
    ) -> Diagnostics {
        let mut diagnostics = Diagnostics::NONE;
        if label == Label::UNKNOWN {
            diagnostics.add(DiagnosticKind::UnknownTag);
        }
        if matches!(prefix, Prefix::Switch) {
            self.switch(now, &mut diagnostics, closed);
        }
        if self.depth as usize >= MAX_DEPTH {
            self.beyond = self.beyond.wrapping_add(1);
            diagnostics.add(DiagnosticKind::DepthOverflow);
            return diagnostics;
        }
        let link = self.parent_of_next();
        let number = self.depth as usize;
        let frame = if label.is_tagged() {
            self.marked += 1;
            let mut frame = self.classify(label.tag_index(), prefix, link, &mut diagnostics);
            let function = 1 << (name & 63);
            if frame.functions & function != 0 {
                frame.adds = frame.adds.in_itself(self.is_inside(link, frame.tag, name));
            }
            frame.functions |= function;
            frame
        } else {
            self.transparent(Class::Foreign, link)
        };
        let slot = self.slot;
        *self.frame_mut(number) = Frame { begin: now, name, slot, ..frame };
        self.depth = number as u32 + 1;
        diagnostics
    }

    /// Closes the frame on top and replaces it by a placeholder.
    #[inline(always)]
    fn switch(&mut self, now: u64, diagnostics: &mut Diagnostics, closed: impl FnMut(&Self, &Closed)) {
        if self.beyond == 0 {
            if self.depth == 0 {
                // Its section began before anyone listened: both ends will come.
                diagnostics.add(DiagnosticKind::BadNesting);
            } else {
                self.close_top(now, diagnostics, closed);
            }
        }
        let number = self.depth as usize;
        if number < MAX_DEPTH {
            let placeholder = self.transparent(Class::Placeholder, self.parent_of_next());
            *self.frame_mut(number) = Frame { begin: now, ..placeholder };
            self.depth = number as u32 + 1;
        }
        // Otherwise the section beyond the table becomes the placeholder.
    }

    /// Ends the innermost section at `now` (ns). It is passed to `closed` if it was marked; diagnostics are returned.
    #[inline(always)]
    pub fn end(&mut self, now: u64, closed: impl FnMut(&Self, &Closed)) -> Diagnostics {
        let mut diagnostics = Diagnostics::NONE;
        if self.beyond > 0 {
            self.beyond -= 1;
        } else if self.depth == 0 {
            diagnostics.add(DiagnosticKind::UnmatchedEnd);
        } else {
            self.close_top(now, &mut diagnostics, closed);
        }
        diagnostics
    }

    /// Returns a frame that passes everything on to the marked frame around it.
    #[inline(always)]
    fn transparent(&self, class: Class, link: Link) -> Frame {
        if link == 0 {
            return Frame { class, ..Frame::EMPTY };
        }
        let parent = self.frame(link as usize - 1);
        Frame {
            class,
            parent: link,
            path: parent.path,
            open: parent.open,
            functions: parent.functions,
            reach: parent.reach,
            executing: parent.executing,
            ..Frame::EMPTY
        }
    }

    /// Classifies a marked frame.
    #[inline(always)]
    fn classify(&self, tag: u8, prefix: Prefix, link: Link, diagnostics: &mut Diagnostics) -> Frame {
        let subtract = matches!(prefix, Prefix::Subtract);
        let mut frame = self.transparent(Class::Section, link);
        let layer = tag >> 4;
        let mut phase = tag & 15;
        let mut class = if subtract { Class::Subtract } else { Class::Section };
        if link == 0 {
            if phase == Phase::Unspecified as u8 {
                diagnostics.add(DiagnosticKind::BadNesting);
            }
            if layer == Layer::Utility as u8 && !subtract {
                class = Class::Detail;
            }
            if matches!(prefix, Prefix::Handed) {
                class = Class::Handed;
            }
        } else {
            let parent = self.frame(link as usize - 1);
            let (parent_layer, parent_phase) = (parent.tag >> 4, parent.phase_number());
            if phase == Phase::Unspecified as u8 {
                phase = parent_phase;
            }
            if !subtract {
                class = rules::class(parent_layer, parent_phase, layer, phase);
            }
            if !matches!(class, Class::Subtract) && !rules::may_nest(parent_layer, parent_phase, layer, phase)
            {
                diagnostics.add(DiagnosticKind::BadNesting);
            }
            if matches!(parent.class, Class::Handed) {
                class = Class::Handed;
            }
        }
        if matches!(prefix, Prefix::Part) && matches!(class, Class::Section) {
            class = Class::Part;
        }
        frame.class = class;
        frame.tag = layer << 4 | phase;
        frame.path = path_hash(frame.path, step_of(frame.tag, class));
        let (low, high) = open_bits(frame.tag);
        let part_of_execution = u8::from(phase >= Phase::InputsOutputs as u8);
        let executing = frame.executing >> layer & 1;
        match class {
            Class::Section => frame.adds = Adds::new(1, part_of_execution & !executing),
            Class::Subtract => {
                // What is open around it with the same layer and phase already counts the time.
                let counted = frame.open[0] & low | frame.open[1] & high != 0;
                frame.adds = Adds::new(u8::from(!counted), 0);
            }
            _ => {}
        }
        if matches!(class, Class::Section | Class::Subtract) {
            frame.open[0] |= low;
            frame.open[1] |= high;
        }
        if !matches!(class, Class::Detail | Class::Handed | Class::Part) {
            frame.reach = frame.tag + 1;
        }
        if phase == Phase::Execution as u8 {
            frame.executing |= 1 << layer;
        }
        frame
    }

    /// Whether a section of the function is open in the frame of the link or around it: 1 or 0.
    #[inline(always)]
    fn is_inside(&self, mut link: Link, tag: u8, name: u64) -> u8 {
        for _ in 0..MAX_DEPTH {
            if link == 0 {
                break;
            }
            let frame = self.frame(link as usize - 1);
            if frame.name == name && frame.tag == tag {
                return 1;
            }
            link = frame.parent;
        }
        0
    }

    /// Closes the frame on top, which must exist.
    #[inline(always)]
    fn close_top(&mut self, now: u64, diagnostics: &mut Diagnostics, mut sink: impl FnMut(&Self, &Closed)) {
        let number = self.depth as usize - 1;
        self.depth = number as u32;
        let frame = self.frame(number);
        let (tag, class, link) = (frame.tag, frame.class, frame.parent);
        if !class.is_marked() {
            return;
        }
        let begin = frame.begin;
        let mut end = now;
        if now < begin {
            diagnostics.add(DiagnosticKind::TimeBackwards);
            end = begin;
        }
        let duration = end - begin;
        let subtracted = frame.subtracted;
        let closed = Closed {
            begin,
            end,
            own: duration.saturating_sub(subtracted),
            exclusive: duration.saturating_sub(frame.nested),
            path: frame.path,
            name: frame.name,
            tag: Tag::from_trusted_index(tag),
            class,
            adds: frame.adds,
            depth: number as u8,
            slot: frame.slot,
        };
        if link != 0 {
            let passed_on = match class {
                Class::Subtract => duration,
                Class::Detail => subtracted,
                _ => 0,
            };
            let parent = self.frame_mut(link as usize - 1);
            parent.nested = parent.nested.wrapping_add(duration);
            // Subtracted from a section of the same layer and phase, the time would be missing from their common
            // total.
            if !(matches!(class, Class::Subtract) && parent.reach == tag + 1) {
                parent.subtracted = parent.subtracted.wrapping_add(passed_on);
            }
        }
        self.marked = self.marked.wrapping_sub(1);
        sink(self, &closed);
    }

    /// Names the path of a frame that was just closed, by its [`Closed::depth`]: calls `store` for it and for every
    /// frame around it, from the inside out, with the path and its step.
    #[inline(always)]
    pub fn steps(&self, depth: u8, mut store: impl FnMut(u64, PathStep)) {
        let mut link = depth.wrapping_add(1);
        let mut rounds = 0;
        while rounds < MAX_DEPTH && link != 0 {
            let frame = self.frame(link as usize - 1);
            let around = frame.parent;
            let step = PathStep {
                parent: if around == 0 { ROOT_PATH } else { self.frame(around as usize - 1).path },
                tag: frame.tag,
                class: frame.class as u8,
                adds: frame.adds.of_path(),
                reserved: [0; 5],
            };
            store(frame.path, step);
            link = frame.parent;
            rounds += 1;
        }
    }
}

#[cfg(test)]
mod tests;
