//! Which report, and which phase of the application, an instant belongs to.
//!
//! Source: the mark contract, section 3. By timestamp alone, so that it does not matter in which order records come.

use std::collections::BTreeMap;

use nntrace_common::stamp::Stamp;
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
    /// Begins, with the payload of the mark; ascending.
    reports: Vec<(Stamp, String)>,
    /// In order of begin.
    phases: Vec<Interval>,
    /// Begin of the last of both: what is younger needs no search.
    last: Stamp,
    /// Where in `phases` those are that have not ended, by thread and begin.
    open: BTreeMap<(u32, Stamp), usize>,
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    app: AppPhase,
    begin: Stamp,
    /// `None` while it is open.
    end: Option<Stamp>,
}

impl AppPhases {
    /// A report begins. Calls come in order of time, or as CPUs that race make them: one that is late counts from the one
    /// before. Of several that nothing tells apart the last counts.
    pub(crate) fn report_begins(&mut self, at: Stamp, mark: String) {
        let at = self.reports.last().map_or(at, |(before, _)| at.max(*before));
        self.reports.pop_if(|(before, _)| *before == at);
        self.reports.push((at, mark));
        self.last = self.last.max(at);
    }

    /// A warm-up or benchmark begins on a thread. Calls come in order, as those of reports.
    pub(crate) fn phase_begins(&mut self, tid: u32, app: AppPhase, at: Stamp) {
        self.open.insert((tid, at), self.phases.len());
        let begin = self.phases.last().map_or(at, |before| at.max(before.begin));
        self.phases.push(Interval { app, begin, end: None });
        self.last = self.last.max(begin);
    }

    /// The one that began on that thread ends.
    pub(crate) fn phase_ends(&mut self, tid: u32, begin: Stamp, end: Stamp) {
        if let Some(number) = self.open.remove(&(tid, begin)) {
            self.phases[number].end = Some(end);
            self.last = self.last.max(end);
        }
    }

    /// Where a frame belongs that began then. What came before the first report is part of it.
    #[must_use]
    pub(crate) fn stretch(&self, at: Stamp) -> ReportSlot {
        let begun = if at >= self.last {
            self.reports.len()
        } else {
            self.reports.partition_point(|(begin, _)| *begin <= at)
        };
        ReportSlot { report: begun.saturating_sub(1) as u32, app: self.phase(at) }
    }

    fn phase(&self, at: Stamp) -> AppPhase {
        if self.phases.is_empty() || (at >= self.last && self.open.is_empty()) {
            return AppPhase::Overall;
        }
        let begun = self.phases.partition_point(|phase| phase.begin <= at);
        let around = self.phases[..begun].iter().rev().find(|phase| phase.end.is_none_or(|end| at < end));
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
        timeline.phase_begins(1, AppPhase::WarmUp, 10.into());
        timeline.phase_begins(2, AppPhase::Benchmark, 20.into());
        timeline.phase_ends(2, 20.into(), 30.into());
        assert_eq!(timeline.stretch(40.into()).app, AppPhase::WarmUp);
        timeline.phase_ends(1, 10.into(), 50.into());
        for (time, app) in [
            (9, AppPhase::Overall),
            (10, AppPhase::WarmUp),
            (20, AppPhase::Benchmark),
            (29, AppPhase::Benchmark),
            (30, AppPhase::WarmUp),
            (50, AppPhase::Overall),
            (60, AppPhase::Overall),
        ] {
            assert_eq!(timeline.stretch(time.into()).app, app, "{time}");
        }
    }

    #[test]
    fn what_comes_before_the_first_report_is_in_it() {
        let mut timeline = AppPhases::default();
        assert_eq!(timeline.stretch(5.into()).report, 0);
        for (time, mark) in [(10, "a"), (10, "b"), (20, "c")] {
            timeline.report_begins(time.into(), mark.into());
        }
        assert_eq!(timeline.marks().collect::<Vec<_>>(), ["b", "c"]);
        let reports: Vec<u32> = [5, 10, 19, 20, 99].map(|time| timeline.stretch(time.into()).report).into();
        assert_eq!(reports, [0, 0, 0, 1, 1]);
    }
}
