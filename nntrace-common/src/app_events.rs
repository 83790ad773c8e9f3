//! Changes of the application's phases: the begins of reports, and the begins and ends of warm-up and benchmark. The
//! programs number them, and totals are kept by the number of the last one before a section began: user space makes
//! reports of them, whatever records are lost.
//!
//! Source: the mark contract, section 3.

use crate::layer::{Layer, Phase, Tag};

/// The index of a tag of the application.
const fn of_application(phase: Phase) -> u32 {
    Tag::new(Layer::Application, phase).index() as u32
}

/// Changes that are numbered. What begins after the last one belongs to it.
pub const MAX_APP_EVENTS: u16 = 2048;

/// A change of the application's phases. A begin has the index of its section's tag.
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
    /// The one with this number.
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

/// A change as the programs keep it, by its number, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct AppEvent {
    /// Number of an [`AppChange`].
    pub change: u32,
    /// Number of the change that ends; 0 for a begin.
    pub begun_by: u32,
    /// Process.
    pub tgid: u32,
    /// Thread.
    pub tid: u32,
    /// When, ns.
    pub time: u64,
    /// When the phase that ends began, ns; for a begin the same as `time`.
    pub begin: u64,
    /// Hash of the name of the section that begins.
    pub name: u64,
}

/// How much of it there was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct AppEventCounts {
    /// Number of the last one that is kept; 0 before the first.
    pub last: u64,
    /// Changes, and executions of threads, for which there was no room.
    pub lost: u64,
    /// Ends of executions in drivers, of which records alone know when they were.
    pub driver_events: u64,
}

/// Key of the executions that a thread began after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct ExecutionKey {
    /// Process.
    pub tgid: u32,
    /// Thread.
    pub tid: u32,
    /// Number of the last change before.
    pub slot: u32,
}

/// Executions by the two ways in which they are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ExecutionCount {
    /// Calls of `ANeuralNetworksExecution_create`.
    pub creates: u64,
    /// Executions of the application itself.
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
