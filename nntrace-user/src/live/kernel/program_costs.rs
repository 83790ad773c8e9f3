//! Cost of the programs: runs and time from the kernel's statistics, and the events that they count themselves.

use aya::{maps::PerCpuArray, programs::Program};
use nntrace_common::{event_counts::EventCounts, time_count::TimeCount};

use super::{Kernel, KernelError, function_probes, object::Object, other_power_events, power};
use crate::live::clock::nanoseconds;

impl Object {
    /// Returns runs and time of these programs from the kernel's statistics.
    pub(super) fn cost(&self, programs: impl IntoIterator<Item = &'static str>) -> TimeCount {
        let infos = programs.into_iter().filter_map(|name| match self.program(name)? {
            Program::UProbe(program) => program.info().ok(),
            Program::RawTracePoint(program) => program.info().ok(),
            Program::TracePoint(program) => program.info().ok(),
            _ => None,
        });
        let mut sum = TimeCount::default();
        for info in infos {
            sum += TimeCount::new(nanoseconds(info.run_time()), info.run_count());
        }
        sum
    }
}

impl Kernel {
    /// Returns runs and time of the mark programs and of the power programs from the kernel's statistics; of system
    /// calls, only those that were marks or sections. Zero where this user may not enable the statistics.
    #[must_use]
    pub(crate) fn read_costs(&self) -> (TimeCount, TimeCount) {
        let mut marks = self.object.cost(function_probes::MARK_PROGRAMS);
        marks += self.engines.cost(&self.object);
        if let Ok(calls) = self.read_system_call_cost() {
            marks += calls;
        }
        let power =
            power::PROGRAMS.into_iter().chain(other_power_events::PROGRAMS.map(|(program, _)| program));
        (marks, self.object.cost(power))
    }

    /// Reads the counts of events that the programs keep themselves.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub fn read_event_counts(&self) -> Result<EventCounts, KernelError> {
        let map: PerCpuArray<_, EventCounts> = self.object.table("EVENT_COUNTS")?;
        let mut sum = EventCounts::default();
        map.get(&0, 0).map_err(KernelError::reading)?.iter().for_each(|counts| sum.add(counts));
        Ok(sum)
    }

    fn read_system_call_cost(&self) -> Result<TimeCount, KernelError> {
        let map: PerCpuArray<_, TimeCount> = self.object.table("SYSTEM_CALL_COST")?;
        let mut sum = TimeCount::default();
        map.get(&0, 0).map_err(KernelError::reading)?.iter().for_each(|&cost| sum += cost);
        Ok(sum)
    }
}
