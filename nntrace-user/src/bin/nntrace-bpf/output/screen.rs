//! The terminal interface: what the user does to it, and what the terminal does to us.

use std::{path::PathBuf, time::SystemTime};

use anyhow::{Context as _, Result};
use nix::libc;
use nntrace_user::{
    report::snapshot::Snapshot,
    tui::{App, Flow, Health, Pace, Stop, Terminal, read_events},
};
use ratatui::crossterm::event::Event;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc::Receiver,
};

use super::result_file::ResultFile;
use crate::logging;

/// Request of the user to the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// To end, or the terminal has gone away.
    Leave,
    /// To write the recording of the last seconds.
    Write,
    /// To show results at another interval.
    Interval(Pace),
}

/// The interface on the terminal, which is given back when this is dropped, with the log's lines.
pub struct Screen {
    app: App,
    terminal: Terminal,
    events: Receiver<Event>,
    stops: Signal,
    /// The last to be dropped: it writes to the terminal.
    _log: KeptLog,
}

/// Has the log keep its lines while the terminal is ours.
struct KeptLog;

impl KeptLog {
    fn begin() -> Self {
        logging::keep();
        Self
    }
}

impl Drop for KeptLog {
    fn drop(&mut self) {
        logging::release();
    }
}

impl Screen {
    /// Takes the terminal, inside of a runtime, with this interface on it.
    pub fn enter(app: App) -> Result<Self> {
        let stops = signal(SignalKind::from_raw(libc::SIGTSTP)).context("cannot catch signals")?;
        let terminal = Terminal::enter().context("cannot use the terminal")?;
        Ok(Self { app, terminal, events: read_events(), stops, _log: KeptLog::begin() })
    }

    /// Shows the newest results.
    pub fn update(&mut self, snapshot: Snapshot, health: Health) -> Result<()> {
        self.app.update(snapshot, health);
        self.draw()
    }

    /// Does what keys ask for until the user leaves, or the terminal goes away. It may be broken off at any time.
    pub async fn until_left(&mut self) -> Result<()> {
        while self.until_asked().await? != Asked::Leave {}
        Ok(())
    }

    /// Does what keys ask for until that concerns the run. It may be broken off at any time.
    pub async fn until_asked(&mut self) -> Result<Asked> {
        loop {
            let flow = tokio::select! {
                event = self.events.recv() => match event {
                    Some(Event::Key(key)) => self.app.on_key(key),
                    // Another size, which drawing finds on its own.
                    Some(_) => Flow::Continue,
                    None => Flow::Quit,
                },
                _ = self.stops.recv() => {
                    self.suspend(Stop::Process)?;
                    Flow::Continue
                }
            };
            match flow {
                Flow::Quit => return Ok(Asked::Leave),
                Flow::Write => return Ok(Asked::Write),
                Flow::Interval(pace) => return Ok(Asked::Interval(pace)),
                Flow::Export => self.export(),
                Flow::Suspend => self.suspend(Stop::Job)?,
                Flow::Continue => {}
            }
            self.draw()?;
        }
    }

    /// Writes the snapshot that is shown to a file of its own, and shows its name or why that failed.
    fn export(&mut self) {
        let text = match self.app.shown().map(write_to_new_file) {
            None => "nothing to write yet".to_owned(),
            Some(Ok(name)) => format!("wrote {}", name.display()),
            Some(Err(error)) => format!("{error:#}"),
        };
        self.app.say(text);
    }

    fn suspend(&mut self, what: Stop) -> Result<()> {
        self.terminal.suspend(what).context("cannot use the terminal again")
    }

    fn draw(&mut self) -> Result<()> {
        self.terminal.draw(&mut self.app).context("cannot draw on the terminal")
    }
}

/// Writes a snapshot to a new file in the current folder; returns its name.
fn write_to_new_file(snapshot: &Snapshot) -> Result<PathBuf> {
    let now = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
    // A colon in the name of a file would separate a host from a path for some programs.
    let name = PathBuf::from(format!("nntrace-{}.json", now.replace(':', "")));
    ResultFile::open(&name, false)?.stage(super::json(snapshot)?)?.commit()?;
    Ok(name)
}
