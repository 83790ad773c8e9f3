//! The terminal interface.
//!
//! [`App`] is fed snapshots and keys and draws itself; [`Terminal`] holds the screen; [`read_events`] delivers what
//! the user does. The loop over all of them is the caller's:
//!
//! ```no_run
//! # use nntrace_user::tui::{App, Flow, Stop, Terminal, read_events};
//! # use ratatui::crossterm::event::Event;
//! # async fn run() -> std::io::Result<()> {
//! let mut terminal = Terminal::enter()?;
//! let mut events = read_events();
//! let mut app = App::new();
//! loop {
//!     terminal.draw(&mut app)?;
//!     tokio::select! {
//!         event = events.recv() => match event {
//!             Some(Event::Key(key)) => match app.on_key(key) {
//!                 Flow::Quit => break,
//!                 Flow::Suspend => terminal.suspend(Stop::Job)?,
//!                 Flow::Write | Flow::Export | Flow::Interval(_) | Flow::Continue => {}
//!             },
//!             Some(_) => {} // a new size: draw again
//!             None => break,
//!         },
//!         // ... and the interval: app.update(snapshot, health); SIGTSTP: terminal.suspend(Stop::Process)?; and
//!         // SIGINT, SIGTERM: break
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod actions;
mod drawing;
mod keys;
mod lists;
mod pace;
mod sample;
mod screen;
mod state;
mod terminal;
#[cfg(test)]
mod tests;
mod view_list;
mod views;

use std::thread;
use std::time::Duration;

use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyEvent};
use tokio::sync::mpsc::{self, Receiver};

pub use self::pace::Pace;
pub use self::terminal::{Stop, Terminal};

use self::drawing::theme::Theme;
use self::state::State;
use self::view_list::View;
use crate::report::snapshot::{Snapshot, TableUse};

/// How the collector does: the second line of the screen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Health {
    /// Target, in a few words.
    pub target: String,
    /// Since the start.
    pub elapsed: Duration,
    /// Marks per second, lately.
    pub marks_per_second: f64,
    /// Idle and frequency events per second, lately.
    pub power_events_per_second: f64,
    /// Records lost since the start.
    pub records_lost: u64,
    /// How full the tables of the kernel programs are.
    pub tables: Vec<TableUse>,
    /// Cost of a mark in the kernel, ns; `None` while not known.
    pub ns_per_mark: Option<u64>,
    /// Cost of a power event in the kernel, ns; `None` while not known.
    pub ns_per_power_event: Option<u64>,
    /// Time from one snapshot to the next, if keys can change it.
    pub interval: Option<Duration>,
    /// CPU time of this process, in percent of one CPU.
    pub collector_cpu_percent: f64,
    /// Probes attached.
    pub probes: usize,
    /// Share of the probes on engines in the time that they measure, where it is too much.
    pub probe_share: Option<f64>,
    /// Why nothing new will come, once that is so: `target exited with status 0; q quits`.
    pub ended: Option<String>,
    /// Size of the recording so far, where the run is recorded: `12034 events, 1.2 MB`.
    pub recorded: Option<String>,
}

/// Whether to go on after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Flow {
    /// Go on, and draw: something may look different.
    Continue,
    /// The user wants the last seconds of the run written.
    Write,
    /// The user wants the snapshot that is shown written to a file: see [`App::shown`] and [`App::say`].
    Export,
    /// The user wants another interval.
    Interval(Pace),
    /// The user wants the shell for a while: see [`Terminal::suspend`].
    Suspend,
    /// The user wants to leave.
    Quit,
}

/// The interface: what it shows, and what the user did to it.
#[derive(Debug)]
pub struct App {
    state: State,
    theme: Theme,
}

impl Default for App {
    fn default() -> Self {
        Self::new()
    }
}

impl App {
    /// An interface that waits for its first snapshot. It is without colours if `NO_COLOR` is set and not empty.
    #[must_use]
    pub fn new() -> Self {
        let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self::with_theme(Theme::new(colour))
    }

    /// Starts in the view of functions.
    #[must_use]
    pub fn with_functions_first(mut self) -> Self {
        self.state.view = View::Functions;
        self
    }

    fn with_theme(theme: Theme) -> Self {
        Self { state: State::default(), theme }
    }

    /// Takes the newest results. During a pause they are kept, and shown when it ends.
    pub fn update(&mut self, snapshot: Snapshot, health: Health) {
        self.state.update(snapshot, health);
    }

    /// Does what `key` stands for in `keys::BINDINGS`.
    pub fn on_key(&mut self, key: KeyEvent) -> Flow {
        self.state.on_key(key)
    }

    /// Returns the snapshot that is shown; `None` before the first one.
    #[must_use]
    pub fn shown(&self) -> Option<&Snapshot> {
        self.state.shown.as_ref().map(|sample| &sample.snapshot)
    }

    /// Shows this text in the last line until the next key.
    pub fn say(&mut self, text: String) {
        self.state.message = Some(text);
    }

    /// Draws everything, into the size that `frame` has now.
    pub(crate) fn draw(&mut self, frame: &mut Frame) {
        let area = frame.area();
        screen::draw(&mut self.state, self.theme, area, frame.buffer_mut());
    }
}

/// How long the reading thread may live on after its receiver is gone.
const POLL: Duration = Duration::from_millis(100);

/// Starts a thread that reads keys and changes of size from the terminal. It ends soon after the receiver is dropped,
/// or at the first error (the terminal is gone), which closes the channel.
#[must_use]
pub fn read_events() -> Receiver<Event> {
    let (sender, receiver) = mpsc::channel(64);
    // Not a task: the terminal can only be waited for by blocking.
    thread::spawn(move || {
        while !sender.is_closed() {
            let event = match event::poll(POLL) {
                Ok(false) => continue,
                Ok(true) => event::read(),
                Err(error) => Err(error),
            };
            let Ok(event) = event else { return };
            if sender.blocking_send(event).is_err() {
                return;
            }
        }
    });
    receiver
}
