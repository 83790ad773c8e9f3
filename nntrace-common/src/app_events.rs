//! Changes of the application's phases: the begins of reports, and the begins and ends of warm-up and benchmark. The
//! programs number them, and keep totals by the number of the last change before a section began: user space builds
//! reports from these, whatever records are lost.
//!
//! Source: the mark contract, section 3.

use crate::layer::{Layer, Phase, Tag};

/// Returns the index of a tag of the application.
const fn of_application(phase: Phase) -> u32 {
    Tag::new(Layer::Application, phase).index() as u32
}

/// Number of changes at most. Everything that begins after the last one belongs to it.
pub const MAX_APP_EVENTS: u16 = 2048;

/// Change of the application's phases. The code of a begin is the index of its section's tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum AppChange {
    /// A report begins.
    Report = of_application(Phase::Overall),
    /// A warm-up begins.
    WarmUp = of_application(Phase::WarmUp),
    /// A benchmark begins.
    Benchmark = of_application(Phase::Benchmark),
    /// A warm-up or a benchmark ends.
    PhaseEnds = u32::MAX,
}

impl AppChange {
    /// Returns the change with this code.
    #[must_use]
    pub const fn from_code(code: u32) -> Option<Self> {
        const REPORT: u32 = AppChange::Report as u32;
        const WARM_UP: u32 = AppChange::WarmUp as u32;
        const BENCHMARK: u32 = AppChange::Benchmark as u32;
        match code {
            REPORT => Some(Self::Report),
            WARM_UP => Some(Self::WarmUp),
            BENCHMARK => Some(Self::Benchmark),
            u32::MAX => Some(Self::PhaseEnds),
            _ => None,
        }
    }
}

/// Change of the application's phases as the programs keep it, by its number, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct AppEvent {
    /// Code of an [`AppChange`].
    pub change: u32,
    /// Number of the change that began the phase that ends; 0 for a begin.
    pub begun_by: u32,
    /// Process id.
    pub tgid: u32,
    /// Thread id.
    pub tid: u32,
    /// Time, ns.
    pub time: u64,
    /// Begin of the phase that ends, ns; for a begin the same as `time`.
    pub begin: u64,
    /// Hash of the name of the section that begins.
    pub name: u64,
}

/// Counts of changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct AppEventCounts {
    /// Number of the last change that is kept; 0 before the first.
    pub last: u64,
    /// Changes, and executions of threads, without room in the tables.
    pub lost: u64,
    /// Ends of executions in drivers, whose times are in records only.
    pub driver_events: u64,
}

/// Key of the executions that a thread began after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct ExecutionKey {
    /// Process id.
    pub tgid: u32,
    /// Thread id.
    pub tid: u32,
    /// Number of the last change before.
    pub slot: u32,
}

/// Executions, by the two ways of counting them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(C)]
pub struct ExecutionCount {
    /// Calls of `ANeuralNetworksExecution_create`.
    pub creates: u64,
    /// Executions in the application itself.
    pub executions: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn begins_have_the_number_of_the_tag_that_makes_them() {
        for index in 0..Tag::COUNT as u8 {
            let Some(tag) = Tag::from_index(index) else { continue };
            let change = AppChange::from_code(u32::from(index));
            assert_eq!(change.is_some(), crate::mark::Label::tagged(tag).is_application_phase(), "{tag}");
        }
        for change in [AppChange::Report, AppChange::WarmUp, AppChange::Benchmark, AppChange::PhaseEnds] {
            assert_eq!(AppChange::from_code(change as u32), Some(change));
        }
    }
}
