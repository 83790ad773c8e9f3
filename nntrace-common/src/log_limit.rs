//! Lines that the kernel programs log: their kinds, and how many of a kind pass.
//!
//! A flood of one kind neither floods the log nor keeps the lines of another kind from it. What does not pass is counted.

use crate::{diagnostic::DiagnosticKind, event_counts::Table};

/// One kind of line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogKind {
    /// A target, or what it does.
    Event(LogEvent),
    /// An entry that a full table turned away.
    TableFull(Table),
    /// A diagnostic.
    Diagnostic(DiagnosticKind),
}

/// A kind of line that is about nothing else that has kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LogEvent {
    /// The child of a target is a target.
    Fork,
    /// A target runs another program.
    Exec,
    /// A target ends.
    Exit,
    /// A thread marks for the first time.
    FirstMark,
    /// A process has shown that it is a driver.
    Driver,
    /// A loader maps or unmaps libraries.
    Loader,
    /// A launched program is at its entry point.
    EntryPoint,
    /// A thread waits for the page with the text of its mark.
    PageWait,
    /// A mark function that another one called.
    NestedMark,
    /// A CPU goes offline or comes back.
    Hotplug,
    /// A task that the table of targets has no room for.
    TargetsFull,
    /// A thread that the table of waiting threads has no room for.
    PageWaitsFull,
    /// A frequency of a CPU that the table of these has no room for.
    FrequenciesFull,
}

impl LogEvent {
    /// Every event, in order of number.
    pub const ALL: [Self; 13] = [
        Self::Fork,
        Self::Exec,
        Self::Exit,
        Self::FirstMark,
        Self::Driver,
        Self::Loader,
        Self::EntryPoint,
        Self::PageWait,
        Self::NestedMark,
        Self::Hotplug,
        Self::TargetsFull,
        Self::PageWaitsFull,
        Self::FrequenciesFull,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Fork => "fork",
            Self::Exec => "exec",
            Self::Exit => "exit",
            Self::FirstMark => "first mark",
            Self::Driver => "driver",
            Self::Loader => "loader",
            Self::EntryPoint => "entry point",
            Self::PageWait => "page wait",
            Self::NestedMark => "nested mark",
            Self::Hotplug => "hotplug",
            Self::TargetsFull => "targets full",
            Self::PageWaitsFull => "page waits full",
            Self::FrequenciesFull => "frequencies full",
        }
    }
}

impl LogKind {
    /// How many kinds there are.
    pub const COUNT: usize = Self::FIRST_DIAGNOSTIC as usize + DiagnosticKind::ALL.len();

    const FIRST_TABLE: u32 = LogEvent::ALL.len() as u32;
    const FIRST_DIAGNOSTIC: u32 = Self::FIRST_TABLE + Table::ALL.len() as u32;

    /// The number of its [`LogGate`], below [`LogKind::COUNT`].
    #[must_use]
    #[inline(always)]
    pub const fn number(self) -> u32 {
        match self {
            Self::Event(event) => event as u32,
            Self::TableFull(table) => Self::FIRST_TABLE + table as u32,
            Self::Diagnostic(kind) => Self::number_of_diagnostic(kind as u32),
        }
    }

    /// Returns the number of the [`LogGate`] of a [`DiagnosticKind`], which is given by its number.
    #[must_use]
    #[inline(always)]
    pub const fn number_of_diagnostic(kind: u32) -> u32 {
        Self::FIRST_DIAGNOSTIC + kind
    }

    /// Every kind, in order of number.
    pub fn all() -> impl Iterator<Item = Self> {
        let events = LogEvent::ALL.into_iter().map(Self::Event);
        let tables = Table::ALL.into_iter().map(Self::TableFull);
        events.chain(tables).chain(DiagnosticKind::ALL.into_iter().map(Self::Diagnostic))
    }

    /// Its name, for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Event(event) => event.name(),
            Self::TableFull(table) => table.name(),
            Self::Diagnostic(kind) => kind.name(),
        }
    }
}

/// Lines of one kind that pass in a [`LogGate::PERIOD_NS`], on all CPUs together.
///
/// With every kind at it, a second's lines fit into aya-log's ring of 128 KiB.
const LINES: u64 = 8;

/// Lines of one kind that passed: a value of the kernel's map. Programs on several CPUs use it at once, so that a line more may
/// pass than should.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct LogGate {
    /// When the period at hand began, ns.
    pub since: u64,
    /// Lines that passed in it.
    pub passed: u64,
    /// Lines that did not pass, ever.
    pub left_out: u64,
}

impl LogGate {
    /// Length of a period, ns.
    pub const PERIOD_NS: u64 = 1_000_000_000;

    /// Whether a line passes at this time (ns). One that does not is for the caller to count: it alone can do that
    /// atomically.
    #[inline(always)]
    pub const fn passes(&mut self, now: u64) -> bool {
        if now.wrapping_sub(self.since) >= Self::PERIOD_NS {
            self.since = now;
            self.passed = 0;
        }
        self.passed += 1;
        self.passed <= LINES
    }
}

#[cfg(feature = "user")]
// SAFETY: `repr(C)` without padding, and the map holds only what this crate's own code wrote as that type.
unsafe impl aya::Pod for LogGate {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_list() {
        for (number, kind) in LogKind::all().enumerate() {
            assert_eq!(kind.number() as usize, number, "{kind:?}");
        }
        assert_eq!(LogKind::all().count(), LogKind::COUNT);
    }

    #[test]
    fn so_many_pass_in_each_period() {
        let mut gate = LogGate::default();
        let mut passed = |from: u64| (0..100).filter(|step| gate.passes(from + step)).count() as u64;
        assert_eq!(passed(5 * LogGate::PERIOD_NS), LINES);
        assert_eq!(passed(6 * LogGate::PERIOD_NS - 200), 0);
        assert_eq!(passed(6 * LogGate::PERIOD_NS), LINES);
    }

    #[test]
    fn the_lines_of_a_period_fit_into_the_ring() {
        /// Bytes of the longest line with the ring's own header, and of the ring.
        const LINE: u64 = 256 + 8;
        const RING: u64 = 128 * 1024;
        assert!(LogKind::COUNT as u64 * LINES * LINE < RING);
    }
}
