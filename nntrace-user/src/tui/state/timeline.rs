//! The timeline view: the selected thread, the part of the run on the screen, and the cursor.

use super::Sample;
use super::list::List;
use super::table::Lines;
use crate::report::snapshot::{RecentActivity, RecentSectionRow, RecentThread};
use crate::tui::actions::{Motion, Travel};

/// Time on the screen while a run goes on and the user has chosen none, ns.
const USUAL_SPAN: u64 = 2_000_000_000;
/// Time on the screen at least and at most, ns.
const SPANS: (u64, u64) = (1_000, 3_600_000_000_000);

/// The state of the timeline view.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    /// Threads by process and id.
    pub threads: List<(u32, u32)>,
    /// Time on the screen, ns; `None` where the user has chosen none.
    span: Option<u64>,
    /// Last instant on the screen, ns; `None` while that is the newest one.
    until: Option<u64>,
    /// Instant of the cursor, ns; `None` where there is none.
    pub cursor: Option<u64>,
    /// Columns of a lane; the view sets it.
    pub columns: usize,
    has_ended: bool,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { threads: List::default(), span: None, until: None, cursor: None, columns: 1, has_ended: false }
    }
}

/// Part of a run on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeSpan {
    /// First instant, ns.
    pub begin: u64,
    /// Length, ns; never 0.
    pub length: u64,
}

impl TimeSpan {
    /// Returns the first instant after it, ns.
    #[must_use]
    pub(crate) const fn end(self) -> u64 {
        self.begin.saturating_add(self.length)
    }
}

impl Timeline {
    /// Takes over a new snapshot.
    pub(super) fn refresh(&mut self, sample: &Sample) {
        self.has_ended = sample.health.ended.is_some();
        let Some(recent) = &sample.snapshot.recent else {
            self.threads.set_keys(Vec::new());
            return;
        };
        let mut threads: Vec<&RecentThread> = recent.threads.iter().collect();
        // Those without any section come last in their process.
        threads.sort_by_key(|thread| (thread.pid, thread.sections.is_empty(), thread.tid));
        self.threads.set_keys(threads.into_iter().map(|thread| (thread.pid, thread.tid)).collect());
    }

    /// Returns what is on the screen.
    #[must_use]
    pub(crate) fn shown(&self, recent: &RecentActivity) -> TimeSpan {
        let until = self.until.unwrap_or(recent.until_ns);
        let usual = if self.has_ended { until.saturating_sub(recent.since_ns) } else { USUAL_SPAN };
        let length = self.span.unwrap_or(usual).clamp(SPANS.0, SPANS.1);
        TimeSpan { begin: until.saturating_sub(length), length }
    }

    /// Returns the selected thread.
    #[must_use]
    pub(crate) fn thread<'a>(&self, recent: &'a RecentActivity) -> Option<&'a RecentThread> {
        find(recent, *self.threads.selected()?)
    }

    /// Returns the innermost section of the selected thread at the cursor.
    #[must_use]
    pub(crate) fn picked<'a>(&self, recent: &'a RecentActivity) -> Option<&'a RecentSectionRow> {
        let at = self.cursor?;
        // Inner ones follow those around them.
        self.thread(recent)?.sections.iter().rfind(|section| section.holds(at))
    }

    /// Shows the newest again; returns whether it did not.
    pub(super) fn follow(&mut self) -> bool {
        let was_fixed = self.until.take().is_some();
        self.cursor.take().is_some() || was_fixed
    }

    /// Moves the cursor, or zooms.
    pub(super) fn travel(&mut self, travel: Travel, recent: &RecentActivity) {
        let shown = self.shown(recent);
        let step = (shown.length / self.columns.max(1) as u64).max(1);
        let at = self.cursor.unwrap_or_else(|| shown.end().saturating_sub(1));
        let begins = || {
            let sections = self.thread(recent).map_or(&[][..], |thread| &thread.sections);
            sections.iter().map(|section| section.begin_ns)
        };
        let next = match travel {
            Travel::Earlier => at.saturating_sub(step),
            Travel::Later => at.saturating_add(step),
            Travel::PreviousSection => begins().rfind(|begin| *begin < at).unwrap_or(at),
            Travel::NextSection => begins().find(|begin| *begin > at).unwrap_or(at),
            Travel::ZoomIn => return self.zoom(shown, shown.length / 2),
            Travel::ZoomOut => return self.zoom(shown, shown.length.saturating_mul(2)),
        };
        let last = recent.until_ns.saturating_sub(1);
        let next = next.clamp(recent.since_ns.min(last), last);
        // From now on the thread stays selected, whatever comes before it.
        self.threads.select(self.threads.index());
        self.cursor = Some(next);
        let is_seen = (shown.begin..shown.end()).contains(&next);
        let middle = next.saturating_add(shown.length / 2).max(shown.length);
        self.until = Some(if is_seen { shown.end() } else { middle.min(recent.until_ns) });
        self.span = Some(shown.length);
    }

    /// Shows this much time (ns); the cursor stays where it is on the screen.
    fn zoom(&mut self, shown: TimeSpan, length: u64) {
        let length = length.clamp(SPANS.0, SPANS.1);
        self.span = Some(length);
        if let Some(at) = self.cursor {
            let after = u128::from(shown.end().saturating_sub(at)) * u128::from(length);
            let after = u64::try_from(after / u128::from(shown.length)).unwrap_or(u64::MAX);
            self.until = Some(at.saturating_add(after).max(length));
        }
    }
}

/// Returns a thread by its process and id.
#[must_use]
pub(crate) fn find(recent: &RecentActivity, key: (u32, u32)) -> Option<&RecentThread> {
    let at = recent.threads.binary_search_by_key(&key, |thread| (thread.pid, thread.tid)).ok()?;
    recent.threads.get(at)
}

impl Lines for Timeline {
    fn go(&mut self, motion: Motion) {
        self.threads.go(motion);
    }

    fn position(&self) -> (usize, usize) {
        Lines::position(&self.threads)
    }
}
