//! Sums of the reports.

use std::collections::BTreeMap;

use super::app_phases::ReportSlot;
use nntrace_common::app_events::ExecutionCount;

/// Sums of the reports.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReportSums {
    /// The payloads of the marks that began the reports, in their order.
    pub starting_marks: Vec<String>,
    /// Time of sections.
    pub sections: Vec<SectionSum>,
    /// Executions by stretch, process and thread.
    pub executions: BTreeMap<(ReportSlot, u32, u32), ExecutionCount>,
}

/// Own time of the sections of a process and path that began in a stretch of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SectionSum {
    /// The report, and the phase of the application.
    pub stretch: ReportSlot,
    /// Process.
    pub pid: u32,
    /// Path.
    pub path: u64,
    /// Time, ns.
    pub own: u64,
}
