//! Checks of a checkpoint that was read. Values that no recorder writes would overflow sums, or ask for endless memory.

use super::{Checkpoint, CpuRow};
use crate::model::MAX_CPU;

impl Checkpoint {
    /// Reads a checkpoint.
    ///
    /// # Errors
    /// When it is none of this version, or has values that no run has; with a text that says which.
    pub(in super::super) fn read(json: &[u8]) -> Result<Box<Self>, String> {
        let state: Box<Self> = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        state.check()?;
        Ok(state)
    }

    fn check(&self) -> Result<(), String> {
        let Self { window, host_at_begin, cpus, reports, .. } = self;
        if window.begin_ns > window.end_ns {
            return Err(format!(
                "its window begins at {} ns and ends at {} ns",
                window.begin_ns, window.end_ns
            ));
        }
        host_at_begin.as_ref().map_or(Ok(()), |host| host.check())?;
        cpus.iter().try_for_each(CpuRow::check)?;
        // Sections without a report are in the first one.
        let count = reports.starting_marks.len().max(1);
        let sections = reports.sections.iter().map(|row| row.report);
        let mut numbers = sections.chain(reports.executions.iter().map(|row| row.report));
        match numbers.find(|report| *report as usize >= count) {
            Some(report) => {
                Err(format!("it has sums of report {report}, counted from 0, and {count} reports"))
            }
            None => Ok(()),
        }
    }
}

impl CpuRow {
    fn check(&self) -> Result<(), String> {
        let Self { cpu, idle, running, idle_unknown_ns, offline_ns, unknown_ns, .. } = self;
        if *cpu > MAX_CPU {
            return Err(format!("it has CPU {cpu}, and {MAX_CPU} is the largest number of one"));
        }
        let idle = idle.values().map(|stays| stays.ns);
        let times = idle.chain(running.iter().map(|row| row.sum.ns));
        let mut times = times.chain([*idle_unknown_ns, *offline_ns, *unknown_ns]);
        let sum = times.try_fold(0_u64, u64::checked_add);
        sum.map(drop).ok_or_else(|| format!("the times of CPU {cpu} are longer than any window"))
    }
}
