//! Which report, and which phase of the application, an instant belongs to.
//!
//! Source: the mark contract, section 3. By time alone, so that it does not matter in which order the threads of a
//! file stand; within a thread, what happens in one instant has an order.

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
    /// Begins, with the payload of the mark; ascending by time.
    reports: Vec<(Moment, String)>,
    /// Phases, in the order of their starts.
    phases: Vec<Interval>,
    /// Begin of the last of both, ns: what is younger needs no search.
    last: u64,
    /// Where in `phases` those are that have not ended, by thread and begin.
    open: BTreeMap<(u32, Stamp), usize>,
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    app: AppPhase,
    begin: Moment,
    /// `None` while it is open.
    end: Option<Stamp>,
}

/// Timestamp on a thread.
#[derive(Clone, Copy, Debug)]
struct Moment {
    tid: u32,
    at: Stamp,
}

impl Moment {
    /// Whether it is before another moment, or the same. Of one instant, all that other threads do begins with it.
    fn has_come(&self, other: &Self) -> bool {
        let (at, now) = (self.at, other.at);
        at.time < now.time || (at.time == now.time && (self.tid != other.tid || at <= now))
    }
}

impl AppPhases {
    /// A report begins on a thread. Calls come in order of time, or as CPUs that race make them: one that is late counts from the one
    /// before. Of several threads' at one instant the last counts.
    pub(crate) fn report_begins(&mut self, tid: u32, at: Stamp, mark: String) {
        let at = self.reports.last().map_or(at, |(before, _)| at.max(before.at.time.into()));
        self.reports
            .pop_if(|(before, _)| before.at == at || (before.at.time == at.time && before.tid != tid));
        self.reports.push((Moment { tid, at }, mark));
        self.last = self.last.max(at.time);
    }

    /// A warm-up or benchmark begins on a thread. Calls come in order, as those of reports.
    pub(crate) fn phase_begins(&mut self, tid: u32, app: AppPhase, at: Stamp) {
        self.open.insert((tid, at), self.phases.len());
        let at = self.phases.last().map_or(at, |before| at.max(before.begin.at.time.into()));
        self.phases.push(Interval { app, begin: Moment { tid, at }, end: None });
        self.last = self.last.max(at.time);
    }

    /// The one that began on that thread ends.
    pub(crate) fn phase_ends(&mut self, tid: u32, begin: Stamp, end: Stamp) {
        if let Some(number) = self.open.remove(&(tid, begin)) {
            self.phases[number].end = Some(end);
            self.last = self.last.max(end.time);
        }
    }

    /// Where a frame belongs that began then on a thread. What came before the first report is part of it.
    #[must_use]
    pub(crate) fn stretch(&self, tid: u32, at: Stamp) -> ReportSlot {
        let now = Moment { tid, at };
        let mut begun = if at.time > self.last {
            self.reports.len()
        } else {
            self.reports.partition_point(|(begin, _)| begin.at.time <= at.time)
        };
        while begun > 0 && !self.reports[begun - 1].0.has_come(&now) {
            begun -= 1;
        }
        ReportSlot { report: begun.saturating_sub(1) as u32, app: self.phase(&now) }
    }

    fn phase(&self, now: &Moment) -> AppPhase {
        if self.phases.is_empty() || (now.at.time > self.last && self.open.is_empty()) {
            return AppPhase::Overall;
        }
        let begun = self.phases.partition_point(|phase| phase.begin.at.time <= now.at.time);
        let goes_on = |phase: &&Interval| {
            let has_ended = |end| Moment { at: end, ..phase.begin }.has_come(now);
            phase.begin.has_come(now) && !phase.end.is_some_and(has_ended)
        };
        let around = self.phases[..begun].iter().rev().find(goes_on);
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
        assert_eq!(timeline.stretch(3, 40.into()).app, AppPhase::WarmUp);
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
            assert_eq!(timeline.stretch(3, time.into()).app, app, "{time}");
        }
    }

    #[test]
    fn what_comes_before_the_first_report_is_in_it() {
        let mut timeline = AppPhases::default();
        assert_eq!(timeline.stretch(3, 5.into()).report, 0);
        for (time, mark) in [(10, "a"), (10, "b"), (20, "c")] {
            timeline.report_begins(1, time.into(), mark.into());
        }
        assert_eq!(timeline.marks().collect::<Vec<_>>(), ["b", "c"]);
        let reports: Vec<u32> =
            [5, 10, 19, 20, 99].map(|time| timeline.stretch(3, time.into()).report).into();
        assert_eq!(reports, [0, 0, 0, 1, 1]);
    }

    #[test]
    fn threads_have_an_order_of_their_own_within_an_instant() {
        let mut timeline = AppPhases::default();
        let at = |sequence| Stamp::new(10, sequence);
        timeline.report_begins(1, at(2), "a".into());
        timeline.report_begins(1, at(5), "b".into());
        let report = |tid, sequence| timeline.stretch(tid, at(sequence)).report;
        assert_eq!([1, 2, 4, 5, 6].map(|sequence| report(1, sequence)), [0, 0, 0, 1, 1]);
        // Of another thread, the place in the file does not matter.
        assert_eq!([1, 3, 6].map(|sequence| report(2, sequence)), [1, 1, 1]);
    }
}
