//! Frames of a stack: the sections that are open on a thread.

use super::{Adds, ROOT_PATH};
use crate::layer::Tag;

/// Class of a frame in the accounting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// A section without a tag: transparent.
    Foreign,
    /// Takes the place of a frame closed by a switch, until that frame's own end: transparent.
    Placeholder,
    /// Adds its own time to the total of its layer and phase.
    Section,
    /// A part of the section around it: adds nothing.
    Detail,
    /// Like a section, but its time is subtracted from the section around it.
    Subtract,
    /// Work for an execution on another thread, and what is in it: adds nothing, as that execution lasts as long as it
    /// takes.
    Handed,
    /// A call that starts an asynchronous execution, or waits for one: adds nothing, as that execution has its time.
    Part,
    /// An asynchronous execution, from the begin of the call that starts it to the end of the wait for it. It adds to the total
    /// of its layer and phase, and never is on a stack.
    Asynchronous,
}

impl Class {
    /// Returns the class with this number.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Foreign,
            1 => Self::Placeholder,
            2 => Self::Section,
            3 => Self::Detail,
            4 => Self::Subtract,
            5 => Self::Handed,
            6 => Self::Part,
            7 => Self::Asynchronous,
            _ => return None,
        })
    }

    /// Returns its word in lists of sections.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Foreign => "foreign",
            Self::Placeholder => "placeholder",
            Self::Section => "section",
            Self::Detail => "detail",
            Self::Subtract => "subtract",
            Self::Handed => "handed",
            Self::Part => "part",
            Self::Asynchronous => "asynchronous",
        }
    }

    /// Whether the frame has a tag of the contract.
    #[must_use]
    #[inline(always)]
    pub const fn is_marked(self) -> bool {
        self as u8 >= Self::Section as u8
    }
}

/// Open section.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Frame {
    /// Begin, ns.
    pub begin: u64,
    /// Time of the sections subtracted from it, ns.
    pub subtracted: u64,
    /// Durations of the marked frames directly in it, ns.
    pub nested: u64,
    /// Hash of the tags from the outermost marked frame to this one.
    pub path: u64,
    /// Hash of its name.
    pub name: u64,
    /// Tags of the sections and subtracted frames open up to and including this one, a bit each.
    pub(super) open: [u64; 2],
    /// Marked functions open up to and including this frame, by a bit of their name's hash: several share one.
    pub(super) functions: u64,
    /// Tag; 0 when it has none.
    pub(super) tag: u8,
    pub(super) class: Class,
    /// Number of the nearest marked frame around it plus one; 0 for none.
    pub(super) parent: u8,
    /// Tag of the section that a subtraction from this frame reaches, plus one; 0 for none.
    pub(super) reach: u8,
    /// Layers with an execution frame open up to and including this one, a bit each.
    pub(super) executing: u8,
    /// Totals that closing it adds to: [`Adds`].
    pub(super) adds: Adds,
    /// Number of the last change of the application's phases before it ([`crate::app_events`]).
    pub slot: u16,
}

impl Frame {
    /// Returns the layer and the (resolved) phase; `None` for a section without a tag.
    #[must_use]
    pub const fn tag(&self) -> Option<Tag> {
        match self.class {
            Class::Foreign | Class::Placeholder => None,
            _ => Tag::from_index(self.tag),
        }
    }

    /// Returns what the section adds, and where.
    #[must_use]
    pub const fn class(&self) -> Class {
        self.class
    }
}

impl Frame {
    /// Frame that is not in use.
    pub(super) const EMPTY: Self = Self {
        begin: 0,
        subtracted: 0,
        nested: 0,
        path: ROOT_PATH,
        name: 0,
        open: [0; 2],
        functions: 0,
        tag: 0,
        class: Class::Foreign,
        parent: 0,
        reach: 0,
        executing: 0,
        adds: Adds::NOTHING,
        slot: 0,
    };

    /// Returns the number of its phase.
    #[inline(always)]
    pub(super) fn phase_number(&self) -> u8 {
        self.tag & 15
    }
}

/// Returns the bit of a tag in [`Frame::open`], low and high word.
#[inline(always)]
pub(super) const fn open_bits(tag: u8) -> (u64, u64) {
    let bit = 1 << (tag & 63);
    let high = (tag >> 6 & 1) as u64;
    (bit * (1 - high), bit * high)
}
