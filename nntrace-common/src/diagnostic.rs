//! Diagnostics of odd input. None of it ends the program: it is counted, with the first example.
//!
//! Source: the mark contract, section 2 ("Never die on input"); the power contract, section 1.

/// Kind of diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DiagnosticKind {
    /// An end with nothing open on its thread.
    UnmatchedEnd,
    /// A section that was open at the end; it is in no total.
    OpenAtEnd,
    /// A layer or phase in one that may not contain it; accounted nevertheless.
    BadNesting,
    /// A tag with letters that are not in the contract.
    UnknownTag,
    /// More sections open on one thread than can be followed; the outer ones stay correct.
    DepthOverflow,
    /// A section that ends before it begins; its duration is 0.
    TimeBackwards,
    /// A mark that is longer than the part that is read.
    TruncatedMark,
    /// A mark at an address that could not be read.
    UnreadableMark,
    /// A mark of no bytes.
    EmptyMark,
    /// An asynchronous execution without its wait.
    WaitMissing,
    /// An interface call met before its meaning was set by user space: treated as foreign.
    NameNotYetKnown,
    /// More threads, stacks or names than the tables hold.
    TableFull,
    /// A CPU that enters an idle state while in one.
    EnterWhileIdle,
    /// A CPU that leaves idle while it runs.
    ExitWhileRunning,
    /// An event for a CPU number that the tables do not have.
    CpuOutOfRange,
    /// A line of a file that is no event in any known format.
    UnreadableLine,
    /// Events that the tracer dropped.
    EventsLost,
}

impl DiagnosticKind {
    /// All kinds, in order of number.
    pub const ALL: [Self; 17] = [
        Self::UnmatchedEnd,
        Self::OpenAtEnd,
        Self::BadNesting,
        Self::UnknownTag,
        Self::DepthOverflow,
        Self::TimeBackwards,
        Self::TruncatedMark,
        Self::UnreadableMark,
        Self::EmptyMark,
        Self::WaitMissing,
        Self::NameNotYetKnown,
        Self::TableFull,
        Self::EnterWhileIdle,
        Self::ExitWhileRunning,
        Self::CpuOutOfRange,
        Self::UnreadableLine,
        Self::EventsLost,
    ];

    /// Whether it is about a CPU: its first example has a CPU where others have a thread.
    #[must_use]
    pub const fn is_of_cpu(self) -> bool {
        matches!(self, Self::EnterWhileIdle | Self::ExitWhileRunning | Self::CpuOutOfRange | Self::EventsLost)
    }

    /// Returns its name in a snapshot.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnmatchedEnd => "unmatched_end",
            Self::OpenAtEnd => "open_at_end",
            Self::BadNesting => "bad_nesting",
            Self::UnknownTag => "unknown_tag",
            Self::DepthOverflow => "depth_overflow",
            Self::TimeBackwards => "time_backwards",
            Self::TruncatedMark => "truncated_mark",
            Self::UnreadableMark => "unreadable_mark",
            Self::EmptyMark => "empty_mark",
            Self::WaitMissing => "wait_missing",
            Self::NameNotYetKnown => "name_not_yet_known",
            Self::TableFull => "table_full",
            Self::EnterWhileIdle => "enter_while_idle",
            Self::ExitWhileRunning => "exit_while_running",
            Self::CpuOutOfRange => "cpu_out_of_range",
            Self::UnreadableLine => "unreadable_line",
            Self::EventsLost => "events_lost",
        }
    }
}

/// Set of diagnostics of one event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Diagnostics(u32);

impl Diagnostics {
    /// Empty set.
    pub const NONE: Self = Self(0);

    /// Returns the set as a number, one bit per kind.
    #[must_use]
    #[inline(always)]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns the set of [`Diagnostics::bits`].
    #[must_use]
    #[inline(always)]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Adds a kind.
    #[inline(always)]
    pub const fn add(&mut self, kind: DiagnosticKind) {
        self.0 |= 1 << kind as u8;
    }

    /// Whether the set contains a kind.
    #[must_use]
    #[inline(always)]
    pub const fn has(self, kind: DiagnosticKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    /// Whether the set is empty.
    #[must_use]
    #[inline(always)]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the kinds in the set.
    pub fn iter(self) -> impl Iterator<Item = DiagnosticKind> {
        DiagnosticKind::ALL.into_iter().filter(move |&kind| self.has(kind))
    }
}

/// Count of one kind, and its first example: a value of the kernel's map, one per CPU.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DiagnosticCount {
    /// Number of occurrences.
    pub count: u64,
    /// Time of the first, ns.
    pub first_ns: u64,
    /// Thread id of the first.
    pub tid: u32,
    /// Bytes used in `example`.
    pub len: u32,
    /// Start of the first mark concerned.
    pub example: [u8; EXAMPLE_BYTES],
}

impl DiagnosticCount {
    /// Returns the count of one occurrence, at `time` (ns) in a thread, in this mark.
    #[must_use]
    pub fn first(time: u64, tid: u32, mark: &[u8]) -> Self {
        let len = mark.len().min(EXAMPLE_BYTES);
        let mut example = [0; EXAMPLE_BYTES];
        example[..len].copy_from_slice(&mark[..len]);
        Self { count: 1, first_ns: time, tid, len: len as u32, example }
    }
}

/// Bytes of a mark that are kept as an example.
pub const EXAMPLE_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_list() {
        for (number, kind) in DiagnosticKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
        }
    }

    #[test]
    fn a_set_holds_what_was_added() {
        let mut set = Diagnostics::NONE;
        assert!(set.is_empty());
        set.add(DiagnosticKind::BadNesting);
        set.add(DiagnosticKind::CpuOutOfRange);
        assert_eq!(
            set.iter().collect::<Vec<_>>(),
            [DiagnosticKind::BadNesting, DiagnosticKind::CpuOutOfRange]
        );
    }
}
