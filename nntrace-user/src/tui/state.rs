//! State of the interface, without a word about how it is drawn.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::{
    Flow, Health,
    actions::{Action, Motion, Overlay},
    keys,
    lists::list,
    sample::{Sample, added::Added},
    view_list::View,
    views::{ViewState as _, Views},
};
use crate::report::snapshot::Snapshot;

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
    /// Whether a key was pressed: from then on the view is the user's choice.
    was_touched: bool,
    /// Overlay on the view.
    pub overlay: Option<Overlay>,
    /// First line of the overlay that is seen.
    pub overlay_scroll: usize,
    /// How many lines of the overlay are seen at once, and how far it can scroll; the view says.
    pub overlay_page: (usize, usize),
    /// The views.
    pub views: Views,
    /// Text in the last line until the next key.
    pub message: Option<String>,
}

impl State {
    /// Takes the newest sample; it is shown at once, or after the pause.
    pub(crate) fn update(&mut self, snapshot: Snapshot, health: Health) {
        let before = self.pending.as_ref().or(self.shown.as_ref());
        // What came after the last interval, until the end, is less than one.
        let before = before.filter(|_| health.ended.is_none());
        let added = before.map(|before| Added::since(&before.snapshot, &snapshot)).unwrap_or_default();
        let sample = Sample { snapshot, health, added };
        let has_operators = sample.snapshot.source.engines.iter().any(|engine| engine.hooked > 0);
        if has_operators && !self.was_touched {
            self.view = View::Functions;
        }
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
        self.views.get(self.view).position()
    }

    /// Does what a key asked for.
    fn apply(&mut self, action: Action) -> Flow {
        match action {
            Action::Quit => return Flow::Quit,
            Action::Suspend => return Flow::Suspend,
            Action::Write => return Flow::Write,
            Action::Export => return Flow::Export,
            Action::Interval(pace) => return Flow::Interval(pace),
            Action::Back => return self.back(),
            Action::NextView => self.show(self.view.next()),
            Action::PreviousView => self.show(self.view.previous()),
            Action::Show(view) => self.show(view),
            Action::Toggle(overlay) => {
                self.overlay = (self.overlay != Some(overlay)).then_some(overlay);
                self.overlay_scroll = 0;
            }
            Action::Move(motion) => self.go(motion),
            Action::Travel(travel) => {
                if let Some(recent) = self.shown.as_ref().and_then(|sample| sample.snapshot.recent.as_deref())
                {
                    self.views.timeline.travel(travel, recent);
                }
            }
            Action::NextSort => {
                self.views.get_mut(self.view).next_sort();
                self.refresh();
            }
            Action::ReverseSort => {
                self.views.get_mut(self.view).reverse();
                self.refresh();
            }
            Action::Pause => {
                self.paused = !self.paused;
                if let Some(newest) = self.pending.take() {
                    self.shown = Some(newest);
                    self.refresh();
                }
            }
            Action::Open => self.open(),
            Action::Filter if self.overlay.is_none() => {
                self.views.functions.is_typing = true;
                self.views.functions.is_open = false;
            }
            Action::Filter => {}
        }
        Flow::Continue
    }

    /// Closes the overlay, or else the function, or else ends the filter, or else follows the run again, or else ends the program.
    fn back(&mut self) -> Flow {
        if self.overlay.take().is_none() {
            if self.view == View::Timeline && self.views.timeline.follow() {
                return Flow::Continue;
            }
            if self.view != View::Functions {
                return Flow::Quit;
            }
            if !std::mem::take(&mut self.views.functions.is_open) {
                if !self.views.functions.is_filtered() {
                    return Flow::Quit;
                }
                self.views.functions.show_all();
                self.refresh();
            }
        }
        Flow::Continue
    }

    /// Shows the functions of the selected line; of a function, what is known of it, or the list again.
    fn open(&mut self) {
        if self.view == View::Timeline && self.overlay.is_none() {
            return self.open_picked();
        }
        let Some(shown) = self.shown.as_ref().filter(|_| self.overlay.is_none()) else { return };
        if self.view == View::Functions {
            self.views.functions.toggle();
        } else if let of @ Some(_) = self.views.get(self.view).phase(&shown.snapshot) {
            self.views.functions.show_all();
            self.views.functions.is_open = false;
            self.views.functions.of = of;
            self.show(View::Functions);
            self.refresh();
        }
    }

    /// Opens the function of the section at the cursor of the timeline.
    fn open_picked(&mut self) {
        let Some(sample) = &self.shown else { return };
        let Some(recent) = sample.snapshot.recent.as_deref() else { return };
        let Some((thread, section)) =
            self.views.timeline.thread(recent).zip(self.views.timeline.picked(recent))
        else {
            return;
        };
        let (pid, tag, name) = (thread.pid, section.tag, recent.name(section).to_owned());
        self.views.functions.show_all();
        self.views.functions.refresh(sample);
        self.views.functions.is_open = self.views.functions.select(pid, tag, &name);
        self.show(View::Functions);
    }

    /// Does what `key` stands for, in the text that is typed or else in the table of keys.
    pub(crate) fn on_key(&mut self, key: KeyEvent) -> Flow {
        if key.kind == KeyEventKind::Release {
            return Flow::Continue;
        }
        self.was_touched = true;
        self.message = None;
        if self.type_key(key) {
            return Flow::Continue;
        }
        if let Some(action) = keys::action(key).filter(|action| self.can(*action)) {
            return self.apply(action);
        }
        let control = if key.modifiers.contains(KeyModifiers::CONTROL) { "Ctrl-" } else { "" };
        self.message = Some(format!("{control}{} does nothing here; ? lists the keys", key.code));
        Flow::Continue
    }

    /// Whether an action does anything now: the order of a list that is not shown cannot be changed, nor the interval of a replay.
    pub(crate) fn can(&self, action: Action) -> bool {
        match action {
            Action::Travel(_) if self.overlay.is_some() => false,
            Action::Interval(_) => self.shown.as_ref().is_some_and(|sample| sample.health.interval.is_some()),
            _ => !action.is_of_views() || self.views.get(self.view).offers(action),
        }
    }

    /// Takes a key as a letter of the names of functions; `false` where keys are no letters now.
    fn type_key(&mut self, key: KeyEvent) -> bool {
        if !self.views.functions.is_typing {
            return false;
        }
        let is_control = key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match key.code {
            // Ctrl-C and Ctrl-Z do what they do everywhere.
            _ if is_control => return false,
            KeyCode::Char(letter) => self.views.functions.text.push(letter),
            KeyCode::Backspace => drop(self.views.functions.text.pop()),
            KeyCode::Enter => self.views.functions.is_typing = false,
            KeyCode::Esc => self.views.functions.show_all(),
            // Moves in the list, for one, work beside the letters.
            _ => return false,
        }
        self.refresh();
        true
    }

    fn show(&mut self, view: View) {
        self.views.functions.is_typing = false;
        self.view = view;
        self.overlay = None;
    }

    fn go(&mut self, motion: Motion) {
        if self.overlay.is_some() {
            let (page, furthest) = self.overlay_page;
            self.overlay_scroll = list::moved(self.overlay_scroll, motion, page).min(furthest);
            return;
        }
        self.views.get_mut(self.view).go(motion);
    }

    fn refresh(&mut self) {
        if let Some(sample) = &self.shown {
            self.views.refresh(sample);
        }
    }
}
