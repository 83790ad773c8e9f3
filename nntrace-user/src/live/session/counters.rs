//! Counts of performance events.

use nntrace_common::{event_counts::EventCounts, layer::Tag, perf_counters::CounterTrial, record::TotalKey};

use super::Session;
use crate::{
    live::{
        kernel::{Kernel, KernelError},
        perf_events::PerfCounters,
    },
    model::perf_counts::{FunctionCounts, PerfCounts, PerfEventFacts},
};

/// Events that are counted.
pub(super) struct Counters {
    names: Vec<String>,
    /// Cost of reading them; `None` where it could not be measured.
    trial: Option<CounterTrial>,
}

impl Counters {
    /// Starts counting; `None` where there is nothing to count. Notes on what is not counted are added.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(super) fn start(
        open: PerfCounters,
        kernel: &mut Kernel,
        notes: &mut Vec<String>,
    ) -> Result<Option<Self>, KernelError> {
        let PerfCounters { names, open, notes: missing } = open;
        if names.is_empty() {
            return Ok(None);
        }
        notes.extend(missing);
        kernel.start_counters(open)?;
        Ok(Some(Self { trial: kernel.try_counters(), names }))
    }
}

impl Session {
    /// Reads the counts of sections that ended; `None` where nothing is counted.
    pub(super) fn perf_counts(&self, counts: &EventCounts) -> Result<Option<PerfCounts>, KernelError> {
        let Some(Counters { names, trial }) = &self.counters else { return Ok(None) };
        let events = names.iter().enumerate().map(|(number, name)| PerfEventFacts {
            name: name.clone(),
            counted_by_read: trial
                .and_then(|trial| trial.counted.get(number)?.checked_div(trial.count.saturating_sub(1))),
        });
        let sites = &self.model.marks.sites;
        let sections = self.kernel.read_section_counts()?;
        let functions = sections.into_iter().filter_map(|(key, sum)| {
            let thread = TotalKey { tid: key.tid, ..TotalKey::new(key.tgid, 0) };
            let tag = Tag::from_index(u8::try_from(key.tag).ok()?).filter(|_| sites.counts_total(&thread))?;
            Some(FunctionCounts {
                pid: key.tgid,
                layer: tag.layer(),
                phase: tag.phase(),
                name: key.name,
                sections: sum.sections,
                readings: sum.readings[..names.len().min(sum.readings.len())].to_vec(),
            })
        });
        Ok(Some(PerfCounts {
            events: events.collect(),
            ns_per_read: trial.and_then(|trial| trial.ns.checked_div(trial.count)),
            uncounted_marks: counts.uncounted_marks,
            uncounted_sections: counts.uncounted_sections,
            functions: functions.collect(),
        }))
    }
}
