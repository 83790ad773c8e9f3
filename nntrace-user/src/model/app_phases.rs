//! Which report, and which phase of the application, an instant belongs to.
//!
//! Source: the mark contract, section 3. By time alone, so that it does not matter in which order the threads of a
//! file stand.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A phase of the application that has runs in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub(crate) enum AppPhase {
    /// Neither of the others.
    #[default]
    Overall,
    /// Between the begin and the end of `[NN_LA_PWU]`.
    WarmUp,
    /// Between the begin and the end of `[NN_LA_PBM]`.
    Benchmark,
}

/// A report and a phase of the application in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ReportSlot {
    /// Number of the report, from 0.
    pub report: u32,
    /// The application's phase.
    pub app: AppPhase,
}

/// The begins of reports and the phases of the application, as far as they are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct AppPhases {
    /// Begins, ns, with the payload of the mark; ascending.
    reports: Vec<(u64, String)>,
    /// In order of begin.
    phases: Vec<Interval>,
    /// Begin of the last of both, ns: what is younger needs no search.
    last: u64,
    /// Where in `phases` those are that have not ended, by thread and begin.
    open: BTreeMap<(u32, u64), usize>,
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    app: AppPhase,
    begin: u64,
    /// `u64::MAX` while it is open.
    end: u64,
}

impl AppPhases {
    /// A report begins at `time` (ns). Calls come in order of time, or as CPUs that race make them: one that is late counts
    /// from the one before. Of several at one instant the last counts.
    pub(crate) fn report_begins(&mut self, time: u64, mark: String) {
        let time = self.reports.last().map_or(time, |(before, _)| time.max(*before));
        self.reports.pop_if(|(before, _)| *before == time);
        self.reports.push((time, mark));
        self.last = self.last.max(time);
    }

    /// A warm-up or benchmark begins on a thread at `time` (ns). Calls come in order, as those of reports.
    pub(crate) fn phase_begins(&mut self, tid: u32, app: AppPhase, time: u64) {
        self.open.insert((tid, time), self.phases.len());
        let time = self.phases.last().map_or(time, |before| time.max(before.begin));
        self.phases.push(Interval { app, begin: time, end: u64::MAX });
        self.last = self.last.max(time);
    }

    /// The one that began on that thread at `begin` ends at `end` (ns).
    pub(crate) fn phase_ends(&mut self, tid: u32, begin: u64, end: u64) {
        if let Some(number) = self.open.remove(&(tid, begin)) {
            self.phases[number].end = end;
            self.last = self.last.max(end);
        }
    }

    /// Where a frame belongs that began at `time` (ns). What came before the first report is part of it.
    #[must_use]
    pub(crate) fn stretch(&self, time: u64) -> ReportSlot {
        let begun = if time >= self.last {
            self.reports.len()
        } else {
            self.reports.partition_point(|(begin, _)| *begin <= time)
        };
        ReportSlot { report: begun.saturating_sub(1) as u32, app: self.phase(time) }
    }

    fn phase(&self, time: u64) -> AppPhase {
        if self.phases.is_empty() || (time >= self.last && self.open.is_empty()) {
            return AppPhase::Overall;
        }
        let begun = self.phases.partition_point(|phase| phase.begin <= time);
        let around = self.phases[..begun].iter().rev().find(|phase| time < phase.end);
        around.map_or(AppPhase::Overall, |phase| phase.app)
    }

    /// The marks that began the reports, in their order.
    #[must_use]
    pub(crate) fn marks(&self) -> impl ExactSizeIterator<Item = &str> {
        self.reports.iter().map(|(_, mark)| mark.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_ends_and_the_one_around_it_goes_on() {
        let mut timeline = AppPhases::default();
        timeline.phase_begins(1, AppPhase::WarmUp, 10);
        timeline.phase_begins(2, AppPhase::Benchmark, 20);
        timeline.phase_ends(2, 20, 30);
        assert_eq!(timeline.stretch(40).app, AppPhase::WarmUp);
        timeline.phase_ends(1, 10, 50);
        for (time, app) in [
            (9, AppPhase::Overall),
            (10, AppPhase::WarmUp),
            (20, AppPhase::Benchmark),
            (29, AppPhase::Benchmark),
            (30, AppPhase::WarmUp),
            (50, AppPhase::Overall),
            (60, AppPhase::Overall),
        ] {
            assert_eq!(timeline.stretch(time).app, app, "{time}");
        }
    }

    #[test]
    fn what_comes_before_the_first_report_is_in_it() {
        let mut timeline = AppPhases::default();
        assert_eq!(timeline.stretch(5).report, 0);
        for (time, mark) in [(10, "a"), (10, "b"), (20, "c")] {
            timeline.report_begins(time, mark.into());
        }
        assert_eq!(timeline.marks().collect::<Vec<_>>(), ["b", "c"]);
        let reports: Vec<u32> = [5, 10, 19, 20, 99].map(|time| timeline.stretch(time).report).into();
        assert_eq!(reports, [0, 0, 0, 1, 1]);
    }
}
