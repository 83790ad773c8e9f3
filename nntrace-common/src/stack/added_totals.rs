//! Totals that a frame adds to.

/// Totals that the own time of a frame is added to, and whether its function counts it. Determined at its begin: nothing open around it changes while it
/// is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "user",
    derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout)
)]
#[repr(transparent)]
pub struct Adds(u8);

impl Adds {
    const TOTAL: u8 = 1;
    const EXECUTION: u8 = 2;
    const IN_ITSELF: u8 = 4;

    /// No totals.
    pub(super) const NOTHING: Self = Self(0);

    /// Creates the set: the total of the frame's layer and phase, and its layer's execution, 1 or 0 each, so that
    /// nothing branches.
    #[inline(always)]
    pub(super) const fn new(to_total: u8, to_execution: u8) -> Self {
        Self(to_total | to_execution << 1)
    }

    /// Adds whether the frame is inside one of its own function: 1 or 0.
    #[inline(always)]
    pub(super) const fn in_itself(self, is_in_itself: u8) -> Self {
        Self(self.0 | is_in_itself << 2)
    }

    /// Returns what is the same for all frames of a path: functions are not part of one.
    #[must_use]
    #[inline(always)]
    pub const fn of_path(self) -> Self {
        Self(self.0 & !Self::IN_ITSELF)
    }

    /// Decodes the byte of a record.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// Encodes the byte of a record.
    #[must_use]
    #[inline(always)]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether it is added to the total of its layer and phase.
    #[must_use]
    #[inline(always)]
    pub const fn to_total(self) -> bool {
        self.0 & Self::TOTAL != 0
    }

    /// Whether it is also added to its layer's execution: for a part of execution without an execution frame of the
    /// layer around it.
    #[must_use]
    #[inline(always)]
    pub const fn to_execution(self) -> bool {
        self.0 & Self::EXECUTION != 0
    }

    /// Whether a section of the same function is open around it: that one's time includes this one's, so the function's
    /// count and duration are those of the outermost (marks.md, section 2).
    #[must_use]
    #[inline(always)]
    pub const fn is_in_itself(self) -> bool {
        self.0 & Self::IN_ITSELF != 0
    }
}
