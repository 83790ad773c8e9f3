//! Paths: hashes of the tags from the outermost marked frame in, and the steps that name them.

use super::{Adds, Class, Closed};

/// Path of the empty stack.
pub const ROOT_PATH: u64 = 0;

/// Step of a path: enough to name it once the steps above are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct PathStep {
    /// Path around it; [`ROOT_PATH`] for the outermost.
    pub parent: u64,
    /// [`Tag::index`](crate::layer::Tag::index) of the frame.
    pub tag: u8,
    /// [`Class`] of the frame.
    pub class: u8,
    /// Totals that the own time of its frames is added to.
    pub adds: Adds,
    /// Always 0.
    pub reserved: [u8; 5],
}

impl PathStep {
    /// Returns the step of a section with nothing around it.
    #[must_use]
    #[inline(always)]
    pub const fn outermost(closed: &Closed) -> Self {
        let Closed { tag, class, adds, .. } = closed;
        Self { parent: ROOT_PATH, tag: tag.index(), class: *class as u8, adds: *adds, reserved: [0; 5] }
    }
}

/// Returns the path of a frame inside a path. Bijective in `step` for one `parent`, so siblings never collide.
#[inline(always)]
pub(super) const fn path_hash(parent: u64, step: u16) -> u64 {
    let mixed = (parent ^ (step as u64 + 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

/// Returns the path of a marked frame without another one around it.
#[must_use]
pub const fn outermost_path(tag: u8, class: Class) -> u64 {
    path_hash(ROOT_PATH, step_of(tag, class))
}

/// Returns the step of a path, which differs for the kinds of frames of one tag; a detail is one kind with a plain section.
#[inline(always)]
pub(super) const fn step_of(tag: u8, class: Class) -> u16 {
    let kind = match class {
        Class::Subtract => 0x80,
        Class::Handed => 0x100,
        Class::Part => 0x180,
        Class::Asynchronous => 0x200,
        _ => 0,
    };
    tag as u16 | kind
}
