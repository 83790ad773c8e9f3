//! The begin rule: the part of a section in the accounting, by its tag, or by its name if that is an interface call.
//!
//! Source: the mark contract, sections 1 and 2.

use crate::{
    hidl_calls::Meaning,
    mark::{self, Begin, HashedName, Label, Prefix, Text},
};

/// Name of a section that begins, as far as the accounting uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeginName {
    /// Name of a section with a layer and a phase.
    Tagged(HashedName),
    /// Hash of a name that may be an interface call ([`crate::hidl_calls`]).
    Call(u64),
    /// Irrelevant name.
    Foreign,
}

impl BeginName {
    /// Returns the name of a begin, which was parsed from `text`.
    #[must_use]
    #[inline(always)]
    pub fn read<T: Text + ?Sized>(text: &T, begin: Begin) -> Self {
        if begin.label.is_tagged() {
            Self::Tagged(mark::hashed_name(text, begin.name_at))
        } else if begin.label == Label::FOREIGN && mark::may_be_interface_call(text, begin.name_at) {
            Self::Call(mark::name_hash(text, begin.name_at))
        } else {
            Self::Foreign
        }
    }
}

/// Part of a section in the accounting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct ParsedBegin {
    /// Offset of its name in the payload.
    pub name_at: u16,
    /// Prefix of the tag.
    pub prefix: Prefix,
    /// Tag, or the equivalent one of an interface call.
    pub label: Label,
    /// Hash of the name; 0 where no name matters.
    pub name: u64,
    /// Whether its thread takes part in the accounting from now on.
    pub is_marked: bool,
    /// Whether the begin matters beyond its thread, and is reported separately.
    pub is_reported: bool,
    /// Whether the name of a tagged section has attributes.
    pub has_attributes: bool,
    /// Whether it may be in any section, and what is odd about that is no error: a driver is called from wherever it is
    /// called.
    pub nests_anywhere: bool,
}

impl Default for ParsedBegin {
    /// Returns a section without a name.
    fn default() -> Self {
        Self::foreign(Begin { name_at: 0, prefix: Prefix::None, label: Label::FOREIGN })
    }
}

impl ParsedBegin {
    /// Returns a section without a part in the accounting. A tag that no contract knows is a mark of the thread's own all the
    /// same, and its diagnostic counts.
    #[must_use]
    #[inline(always)]
    pub const fn foreign(begin: Begin) -> Self {
        let Begin { name_at, prefix, label } = begin;
        let is_marked = label.byte() == Label::UNKNOWN.byte();
        Self {
            name_at,
            prefix,
            label,
            name: 0,
            is_marked,
            is_reported: false,
            has_attributes: false,
            nests_anywhere: false,
        }
    }

    /// Returns a section with a layer and a phase.
    #[must_use]
    #[inline(always)]
    pub const fn tagged(begin: Begin, name: HashedName) -> Self {
        Self {
            name: name.hash,
            is_marked: true,
            is_reported: begin.label.is_application_phase(),
            has_attributes: name.has_attributes,
            ..Self::foreign(begin)
        }
    }

    /// Returns the section of a function with a layer and a phase, whose name has this hash. One of the driver's layer may be
    /// in any other: a process that does a driver's work itself has no IPC above it.
    #[must_use]
    #[inline(always)]
    pub const fn function(prefix: Prefix, label: Label, name: u64) -> Self {
        Self {
            nests_anywhere: label.is_of_driver(),
            ..Self::tagged(
                Begin { name_at: 0, prefix, label },
                HashedName { hash: name, has_attributes: false },
            )
        }
    }

    /// Returns an interface call.
    #[must_use]
    #[inline(always)]
    pub const fn call(begin: Begin, name: u64, meaning: Meaning) -> Self {
        Self {
            label: meaning.label,
            name,
            is_marked: meaning.driver != 0,
            is_reported: meaning.report_begin != 0,
            ..Self::foreign(begin)
        }
    }
}
