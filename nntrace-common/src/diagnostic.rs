//! Diagnostics of odd input. None of it ends the program: it is counted, with the first example.
//!
//! Source: the mark contract, section 2 ("Never die on input"); the power contract, section 1.

use crate::named_enum::enumeration;

enumeration! {
    /// One kind of diagnostic.
    pub enum DiagnosticKind {
        /// An end with nothing open on its thread.
        UnmatchedEnd = "unmatched_end",
        /// A section that was open at the end; it is in no total.
        OpenAtEnd = "open_at_end",
        /// A layer or phase in one that may not contain it; accounted all the same.
        BadNesting = "bad_nesting",
        /// A tag with letters that the contract does not know.
        UnknownTag = "unknown_tag",
        /// More sections open on one thread than can be followed; the outer ones stay right.
        DepthOverflow = "depth_overflow",
        /// A section that ends before it begins; its duration is 0.
        TimeBackwards = "time_backwards",
        /// A mark that is longer than what is read of it.
        TruncatedMark = "truncated_mark",
        /// A mark at an address that could not be read.
        UnreadableMark = "unreadable_mark",
        /// A mark of no bytes.
        EmptyMark = "empty_mark",
        /// An asynchronous execution without its wait.
        WaitMissing = "wait_missing",
        /// An interface call met before user space had said what its name means: taken for somebody else's.
        NameNotYetKnown = "name_not_yet_known",
        /// More threads, stacks or names than the tables hold.
        TableFull = "table_full",
        /// A CPU that enters an idle state while in one.
        EnterWhileIdle = "enter_while_idle",
        /// A CPU that leaves idle while it runs.
        ExitWhileRunning = "exit_while_running",
        /// An event for a CPU number that the tables do not have.
        CpuOutOfRange = "cpu_out_of_range",
        /// A line of a file that is no event in any format that is known.
        UnreadableLine = "unreadable_line",
        /// Events that the tracer dropped.
        EventsLost = "events_lost",
        /// A function of an engine that was left without a return, by an exception, `longjmp` or a jump: its section
        /// ends at the next event of its thread.
        Unwound = "unwound",
        /// An event of a known name whose fields cannot be used: one is missing, damaged or out of its range.
        UnusableEvent = "unusable_event",
    }

    /// Its name in a snapshot.
    pub fn name;
}

impl DiagnosticKind {
    /// Kinds that the mark of a thread can show by its place among the open sections.
    pub const OF_STACKS: [Self; 5] =
        [Self::UnmatchedEnd, Self::BadNesting, Self::UnknownTag, Self::DepthOverflow, Self::TimeBackwards];

    /// Whether it is about a CPU, and its first example names one where others name a thread.
    #[must_use]
    pub const fn is_of_cpu(self) -> bool {
        matches!(self, Self::EnterWhileIdle | Self::ExitWhileRunning | Self::CpuOutOfRange | Self::EventsLost)
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
    pub fn iter(mut self) -> impl Iterator<Item = DiagnosticKind> {
        // Ends after the last one: most sets have one at most.
        core::iter::from_fn(move || {
            let kind = DiagnosticKind::ALL.get(self.0.trailing_zeros() as usize)?;
            self.0 &= self.0 - 1;
            Some(*kind)
        })
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

/// Diagnostics of a thread that takes no part in the accounting: they count if it does later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct HeldDiagnostics {
    counts: [HeldCount; DiagnosticKind::OF_STACKS.len()],
}

/// Count of one kind that is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct HeldCount {
    /// Number of occurrences.
    pub count: u64,
    /// Time of the first, ns.
    pub first_ns: u64,
}

impl HeldDiagnostics {
    /// No diagnostics.
    pub const NONE: Self =
        Self { counts: [HeldCount { count: 0, first_ns: 0 }; DiagnosticKind::OF_STACKS.len()] };

    /// Adds the diagnostics of a mark at a time (ns).
    #[inline(always)]
    pub fn add(&mut self, odd: Diagnostics, now: u64) {
        for (held, kind) in self.counts.iter_mut().zip(DiagnosticKind::OF_STACKS) {
            if odd.has(kind) {
                if held.count == 0 {
                    held.first_ns = now;
                }
                held.count += 1;
            }
        }
    }

    /// Returns the kinds that are held, with their counts.
    #[inline(always)]
    pub fn iter(&self) -> impl Iterator<Item = (DiagnosticKind, HeldCount)> {
        let counts = DiagnosticKind::OF_STACKS.into_iter().map(|kind| (kind, self.of(kind)));
        counts.filter(|(_, held)| held.count > 0)
    }

    /// Returns the count of a kind; none for kinds that are not of stacks.
    #[inline(always)]
    #[must_use]
    pub fn of(&self, kind: DiagnosticKind) -> HeldCount {
        let place = DiagnosticKind::OF_STACKS.iter().position(|known| *known == kind);
        place.and_then(|place| self.counts.get(place).copied()).unwrap_or_default()
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
    fn held_diagnostics_keep_counts_and_first_times() {
        let [mut odd, mut end] = [Diagnostics::NONE; 2];
        odd.add(DiagnosticKind::BadNesting);
        odd.add(DiagnosticKind::DepthOverflow);
        end.add(DiagnosticKind::BadNesting);
        let mut held = HeldDiagnostics::NONE;
        held.add(odd, 10);
        held.add(end, 20);
        let expected = [(DiagnosticKind::BadNesting, 2), (DiagnosticKind::DepthOverflow, 1)];
        let expected = expected.map(|(kind, count)| (kind, HeldCount { count, first_ns: 10 }));
        assert_eq!(held.iter().collect::<Vec<_>>(), expected);
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
