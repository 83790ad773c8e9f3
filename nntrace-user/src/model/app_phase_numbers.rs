//! The application's phases as the kernel programs number them, and the reports' sums by these numbers: exact, whatever
//! records are lost.

use std::collections::BTreeMap;

use nntrace_common::{
    app_events::{AppChange, AppEvent, ExecutionCount, ExecutionKey},
    record::ANY_SLOT,
};

use super::{
    app_phases::{AppPhase, AppPhases},
    app_report_sums::{ReportSums, SectionSum},
    stacks::Totals,
};

/// Changes of the application's phases by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct AppSlots {
    /// By number in place of time.
    timeline: AppPhases,
    last: u32,
    /// Time of each change, ns, by number from 1; programs on several CPUs may be a little out of order.
    times: Vec<u64>,
}

impl AppSlots {
    /// Number of the last change that is known; 0 before the first.
    #[must_use]
    pub(crate) fn last(&self) -> u32 {
        self.last
    }

    /// Adds the change that comes next. `mark` is the payload of a report's begin.
    pub(crate) fn push(&mut self, event: &AppEvent, mark: impl FnOnce() -> String) {
        self.last += 1;
        self.times.push(self.times.last().map_or(event.time, |&before| before.max(event.time)));
        let number = u64::from(self.last);
        match AppChange::from_code(event.change) {
            Some(AppChange::Report) => self.timeline.report_begins(event.tid, number.into(), mark()),
            Some(AppChange::WarmUp) => self.timeline.phase_begins(event.tid, AppPhase::WarmUp, number.into()),
            Some(AppChange::Benchmark) => {
                self.timeline.phase_begins(event.tid, AppPhase::Benchmark, number.into());
            }
            Some(AppChange::PhaseEnds) => {
                self.timeline.phase_ends(event.tid, u64::from(event.begun_by).into(), number.into());
            }
            None => {}
        }
    }

    /// Returns the number of the last change at a time (ns), and the times from and until which it is that.
    #[must_use]
    pub(crate) fn at(&self, time: u64) -> (u16, u64, u64) {
        let number = self.times.partition_point(|&change| change <= time);
        let from = number.checked_sub(1).map_or(0, |last| self.times[last]);
        (number as u16, from, self.times.get(number).copied().unwrap_or(u64::MAX))
    }

    /// Number of the report that a section belongs to by the number of the last change before it.
    #[must_use]
    pub(crate) fn report(&self, slot: u32) -> u32 {
        self.timeline.stretch(0, u64::from(slot).into()).report
    }

    /// The sums of reports; `None` where totals are not all kept by the application's phases.
    #[must_use]
    pub(crate) fn sums(
        &self,
        totals: &Totals,
        executions: &[(ExecutionKey, ExecutionCount)],
    ) -> Option<ReportSums> {
        if totals.keys().any(|key| key.slot == ANY_SLOT) {
            return None;
        }
        let sections = totals.iter().map(|(key, total)| SectionSum {
            stretch: self.timeline.stretch(0, u64::from(key.slot).into()),
            pid: key.tgid,
            path: key.path,
            own: total.own,
        });
        let mut counts: BTreeMap<_, ExecutionCount> = BTreeMap::new();
        for (key, count) in executions {
            let stretch = self.timeline.stretch(0, u64::from(key.slot).into());
            let sum = counts.entry((stretch, key.tgid, key.tid)).or_default();
            sum.creates += count.creates;
            sum.executions += count.executions;
        }
        Some(ReportSums {
            starting_marks: self.timeline.marks().map(ToOwned::to_owned).collect(),
            sections: sections.collect(),
            executions: counts,
        })
    }
}

#[cfg(test)]
mod tests {
    use nntrace_common::record::{Total, TotalKey};

    use super::*;

    fn event(change: AppChange, tid: u32, begun_by: u32) -> AppEvent {
        AppEvent { change: change as u32, begun_by, tid, ..AppEvent::default() }
    }

    fn slots() -> AppSlots {
        let mut slots = AppSlots::default();
        for event in [
            event(AppChange::Report, 1, 0),
            event(AppChange::WarmUp, 1, 0),
            event(AppChange::Benchmark, 2, 0),
            event(AppChange::PhaseEnds, 2, 3),
            event(AppChange::PhaseEnds, 1, 2),
            event(AppChange::Report, 1, 0),
        ] {
            let number = slots.last() + 1;
            slots.push(&event, || format!("report {number}"));
        }
        slots
    }

    #[test]
    fn sections_belong_to_the_phase_that_was_begun_last_and_goes_on() {
        use AppPhase::{Benchmark, Overall, WarmUp};
        let slots = slots();
        let expected = [Overall, Overall, WarmUp, Benchmark, WarmUp, Overall, Overall];
        for (slot, app) in (0..).zip(expected) {
            let stretch = slots.timeline.stretch(0, slot.into());
            assert_eq!((stretch.app, stretch.report), (app, u32::from(slot >= 6)), "{slot}");
        }
    }

    #[test]
    fn totals_that_are_of_any_phase_make_no_report() {
        let slots = slots();
        let own = |own| Total { count: 1, own, exclusive: own };
        let key = |slot| TotalKey { slot, ..TotalKey::new(7, 1) };
        let mut totals: Totals = [(key(2), own(5)), (key(6), own(7))].into_iter().collect();
        let sums = slots.sums(&totals, &[]).unwrap();
        assert_eq!(sums.starting_marks, ["report 1", "report 6"]);
        let mut found: Vec<_> = sums.sections.iter().map(|sum| (sum.stretch.report, sum.own)).collect();
        found.sort_unstable();
        assert_eq!(found, [(0, 5), (1, 7)]);
        totals.insert(key(ANY_SLOT), own(1));
        assert!(slots.sums(&totals, &[]).is_none());
    }
}
