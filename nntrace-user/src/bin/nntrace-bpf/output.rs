//! Where results go: a terminal interface, tables, or JSON.

pub mod background_writer;
pub mod files;
pub mod inputs;
pub mod perfetto_trace;
pub mod progress;
pub mod result_file;
pub mod run_input;
pub mod screen;
pub mod shell_words;
pub mod thresholds;

use std::{
    io::{self, IsTerminal as _, Write as _},
    ops::ControlFlow,
    path::Path,
};

use anyhow::{Context as _, Result};
use nntrace_user::{
    analyze::diff,
    model::timeline::Timelines,
    report::{
        nnapi::{self, Shown},
        power::{self, PowerTable},
        snapshot::Snapshot,
        tables,
        terminal_text::{self, Text},
        timeline,
    },
    tui::Health,
};
use ratatui::crossterm::terminal;
use serde::Serialize;

use crate::{
    arguments::{Format, HostOptions, Results, Table},
    output::screen::{Asked, Screen},
};

/// Columns of a timeline when it does not go to a terminal.
const COLUMNS: usize = 100;

/// Output at the end.
#[derive(Default)]
pub struct Last {
    table: Option<Table>,
    nnapi: nnapi::Options,
    format: Format,
    baseline: Option<Box<Snapshot>>,
    timeline: bool,
}

/// Where results go.
pub enum Output {
    /// The live view.
    Screen(Box<Screen>),
    /// A table each interval and at the end.
    Tables,
    /// One table at the end, a timeline, or both.
    Last(Last),
    /// Nothing: results go to files.
    Nothing,
    /// One snapshot at the end, to stdout.
    JsonStdout,
    /// One snapshot a line.
    JsonLines,
}

impl Output {
    /// Whether results go to a terminal interface. Its keys come from the terminal, whatever standard input is.
    #[must_use]
    pub fn wants_screen(results: &Results) -> bool {
        !results.is_quiet
            && results.json.is_none()
            && results.table.is_none()
            && !results.timeline
            && results.files().next().is_none()
            && io::stdout().is_terminal()
    }

    /// Opens what the command line asks for, the terminal interface excepted: before anything is measured, so that
    /// a mistake costs nothing.
    pub fn open(results: &Results, host: &HostOptions) -> Result<Self> {
        if results.table.is_some() || results.timeline {
            let times = if results.total_times { Shown::TotalTimes } else { Shown::SelfTimes };
            let baseline = results.baseline.as_deref();
            let baseline =
                baseline.map(|path| run_input::read(path, host).context("cannot use the baseline"));
            return Ok(Self::Last(Last {
                table: results.table,
                nnapi: nnapi::Options {
                    times,
                    per_execution: results.per_execution,
                    ..nnapi::Options::default()
                },
                format: results.format,
                baseline: baseline.transpose()?.map(Box::new),
                timeline: results.timeline,
            }));
        }
        match &results.json {
            Some(path) if path == Path::new("-") => Ok(Self::JsonStdout),
            None if results.outputs.is_empty() => Ok(Self::Tables),
            Some(_) | None => Ok(Self::Nothing),
        }
    }

    /// One summary at the end.
    #[must_use]
    pub fn summary() -> Self {
        Self::Last(Last { table: Some(Table::Summary), ..Last::default() })
    }

    /// Whether it is the tables of layers, phases and CPUs at the end.
    #[must_use]
    pub const fn is_summary(&self) -> bool {
        matches!(self, Self::Last(Last { table: Some(Table::Summary), .. }))
    }

    /// Whether there is anything to show before the end.
    #[must_use]
    pub const fn shows_updates(&self) -> bool {
        matches!(self, Self::Screen(_) | Self::Tables | Self::JsonLines)
    }

    /// Shows what was found so far. It breaks off when nobody reads it any more.
    pub fn update(&mut self, snapshot: Snapshot, health: Health) -> Result<ControlFlow<()>> {
        match self {
            Self::Screen(screen) => screen.update(snapshot, health).map(ControlFlow::Continue),
            Self::Tables => {
                let mut text = Text::new();
                let recorded = health.recorded.map_or_else(String::new, |size| format!(", recorded {size}"));
                text.line(format_args!("--- {} s{recorded}", health.elapsed.as_secs()));
                text += &tables::render(&snapshot);
                text.line(format_args!(""));
                show(text.as_bytes())
            }
            Self::JsonLines => show(&json(&snapshot)?),
            Self::Last(_) | Self::Nothing | Self::JsonStdout => Ok(ControlFlow::Continue(())),
        }
    }

    /// Waits until the user leaves the terminal interface; for ever, when there is none.
    pub async fn until_left(&mut self) -> Result<()> {
        match self {
            Self::Screen(screen) => screen.until_left().await,
            _ => std::future::pending().await,
        }
    }

    /// Waits until the user of the terminal interface asks the run for something; for ever, when there is none.
    pub async fn until_asked(&mut self) -> Result<Asked> {
        match self {
            Self::Screen(screen) => screen.until_asked().await,
            _ => std::future::pending().await,
        }
    }

    /// Writes the last snapshot. The terminal is as it was before.
    pub fn finish(self, snapshot: &Snapshot, timelines: Option<&Timelines>) -> Result<()> {
        match self {
            Self::Screen(screen) => {
                drop(screen);
                print(&tables::render(snapshot))
            }
            Self::Last(last) => last.print(snapshot, timelines),
            Self::Nothing => Ok(()),
            Self::Tables => {
                let mut text = Text::new();
                text.line(format_args!("--- end"));
                print(&(text + &tables::render(snapshot)))
            }
            Self::JsonStdout | Self::JsonLines => write_stdout(&json(snapshot)?),
        }
    }
}

impl Last {
    fn print(&self, snapshot: &Snapshot, timelines: Option<&Timelines>) -> Result<()> {
        match (self.table, self.table.and_then(Table::of_power)) {
            (_, Some(table)) => self.print_power(snapshot, table)?,
            (Some(Table::Nnapi), _) => {
                let incomplete = snapshot.loss.makes_incomplete("reports");
                let tables = nnapi::render(&snapshot.reports, nnapi::Options { incomplete, ..self.nnapi });
                print(&(tables + &tables::details(snapshot)))?;
            }
            (Some(Table::Iterations), _) => {
                print(&(tables::iterations(snapshot) + &tables::losses_and_notes(snapshot)))?;
            }
            (Some(_), _) => print(&tables::render(snapshot))?,
            (None, _) => {}
        }
        if self.timeline {
            let columns = terminal::size().ok().filter(|_| io::stdout().is_terminal());
            let columns = columns.map_or(COLUMNS, |(columns, _)| usize::from(columns));
            // Without power events there is no lane.
            let none = Timelines::default();
            print(&timeline::render(snapshot, timelines.unwrap_or(&none), columns))?;
        }
        Ok(())
    }

    fn print_power(&self, snapshot: &Snapshot, table: PowerTable) -> Result<()> {
        match (&self.baseline, self.format) {
            (None, Format::Text) => print(&power::render(snapshot, table)),
            (None, Format::Csv) => write_stdout(power::csv(snapshot, &[table])?.as_bytes()),
            (Some(before), Format::Text) => print(&diff::power::render(before, snapshot, table)),
            (Some(before), Format::Csv) => {
                write_stdout(diff::power::csv(before, snapshot, &[table])?.as_bytes())
            }
        }
    }
}

/// Results as a line of JSON.
pub fn json(results: &impl Serialize) -> Result<Vec<u8>> {
    terminal_text::to_json(results).context("cannot write the results as JSON")
}

/// Prints text for people.
pub fn print(text: &Text) -> Result<()> {
    write_stdout(text.as_bytes())
}

/// Writes data, such as JSON or CSV, to stdout. A reader that went away (`| head`) is no error.
pub fn write_stdout(bytes: &[u8]) -> Result<()> {
    show(bytes).map(drop)
}

/// Writes to stdout; breaks off when its reader went away.
fn show(bytes: &[u8]) -> Result<ControlFlow<()>> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        result => result.map(ControlFlow::Continue).context("cannot write to stdout"),
    }
}
