//! State of the interface, without a word about how it is drawn.

pub(crate) mod cpus;
pub(crate) mod histogram;
mod list;
pub(crate) mod phases;
pub(crate) mod stacks;

use crate::report::snapshot::Snapshot;
use crate::tui::actions::{Action, Motion};
pub(crate) use crate::tui::actions::{Overlay, View};
use crate::tui::{Flow, Health};

/// One state of the world: what was measured and how the measuring goes.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// The results.
    pub snapshot: Snapshot,
    /// The state of the collector.
    pub health: Health,
}

/// Everything that the interface shows and remembers.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    /// Sample that is shown; `None` before the first snapshot.
    pub shown: Option<Sample>,
    /// The newest, while the shown one is kept still.
    pending: Option<Sample>,
    /// Whether the shown one is kept still.
    pub paused: bool,
    /// The view in front.
    pub view: View,
    /// Overlay on the view.
    pub overlay: Option<Overlay>,
    /// First line of the overlay that is seen.
    pub overlay_scroll: usize,
    /// How many lines of the overlay are seen at once, and how far it can scroll; the view says.
    pub overlay_page: (usize, usize),
    /// The phases view.
    pub phases: phases::Phases,
    /// The CPUs view.
    pub cpus: cpus::Cpus,
    /// The stacks view.
    pub stacks: stacks::Stacks,
}

impl State {
    /// Takes the newest sample; it is shown at once, or after the pause.
    pub(crate) fn update(&mut self, sample: Sample) {
        if self.paused && self.shown.is_some() {
            self.pending = Some(sample);
        } else {
            self.shown = Some(sample);
            self.refresh();
        }
    }

    /// How the run ended, if it did. A pause does not hide it.
    #[must_use]
    pub(crate) fn ended(&self) -> Option<&str> {
        self.pending.as_ref().or(self.shown.as_ref())?.health.ended.as_deref()
    }

    /// Which line of the view is selected, and of how many.
    #[must_use]
    pub(crate) fn position(&self) -> (usize, usize) {
        match self.view {
            View::Phases => (self.phases.list.index(), self.phases.list.keys().len()),
            View::Cpus => (self.cpus.list.index(), self.cpus.list.keys().len()),
            View::Stacks => (self.stacks.list.index(), self.stacks.list.keys().len()),
        }
    }

    /// Does what a key asked for.
    pub(crate) fn apply(&mut self, action: Action) -> Flow {
        match action {
            Action::Quit => return Flow::Quit,
            Action::Suspend => return Flow::Suspend,
            Action::Write => return Flow::Write,
            Action::Back if self.overlay.is_none() => return Flow::Quit,
            Action::Back => self.overlay = None,
            Action::NextView => self.show(self.view.next()),
            Action::PreviousView => self.show(self.view.previous()),
            Action::Show(view) => self.show(view),
            Action::Toggle(overlay) => {
                self.overlay = (self.overlay != Some(overlay)).then_some(overlay);
                self.overlay_scroll = 0;
            }
            Action::Move(motion) => self.go(motion),
            Action::NextSort => {
                match self.view {
                    View::Phases => self.phases.next_sort(),
                    View::Stacks => self.stacks.next_sort(),
                    // CPUs have an order of their own.
                    View::Cpus => {}
                }
                self.refresh();
            }
            Action::ReverseSort => {
                match self.view {
                    View::Phases => self.phases.reversed = !self.phases.reversed,
                    View::Stacks => self.stacks.reversed = !self.stacks.reversed,
                    View::Cpus => {}
                }
                self.refresh();
            }
            Action::Pause => {
                self.paused = !self.paused;
                if let Some(newest) = self.pending.take() {
                    self.shown = Some(newest);
                    self.refresh();
                }
            }
        }
        Flow::Continue
    }

    fn show(&mut self, view: View) {
        self.view = view;
        self.overlay = None;
    }

    fn go(&mut self, motion: Motion) {
        if self.overlay.is_some() {
            let (page, furthest) = self.overlay_page;
            self.overlay_scroll = list::moved(self.overlay_scroll, motion, page).min(furthest);
            return;
        }
        match self.view {
            View::Phases => self.phases.list.go(motion),
            View::Cpus => self.cpus.list.go(motion),
            View::Stacks => self.stacks.list.go(motion),
        }
    }

    fn refresh(&mut self) {
        if let Some(sample) = &self.shown {
            self.phases.refresh(&sample.snapshot);
            self.cpus.refresh(&sample.snapshot);
            self.stacks.refresh(&sample.snapshot);
        }
    }
}
