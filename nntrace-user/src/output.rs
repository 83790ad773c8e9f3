//! Where results go: a terminal interface, tables, or JSON.

use std::{
    fs::{File, OpenOptions},
    io::{self, IsTerminal as _, Write},
    path::Path,
};

use anyhow::{Context as _, Result, bail};
use nntrace_user::{
    analyze::diff,
    model::steps::Lanes,
    report::{
        nnapi::{self, Shown},
        power::{self, PowerTable},
        snapshot::Snapshot,
        tables, timeline,
    },
    tui::{App, Health, Terminal},
};

use ratatui::crossterm::terminal;

use crate::{
    baseline,
    cli::{Format, Machine, Results, Table},
};

/// Columns of a timeline when it does not go to a terminal.
const COLUMNS: usize = 100;

/// What is printed at the end.
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
    Screen(Box<(App, Terminal)>),
    /// A table each interval and at the end.
    Tables,
    /// One table at the end, a timeline, or both.
    Last(Last),
    /// Nothing: results go to files.
    Nothing,
    /// One snapshot at the end, to a file.
    JsonFile(File),
    /// One snapshot at the end, to stdout.
    JsonStdout,
    /// One snapshot a line.
    JsonLines,
}

impl Output {
    /// Whether results go to a terminal interface. Its keys come from the terminal, whatever standard input is.
    #[must_use]
    pub fn wants_screen(results: &Results) -> bool {
        results.json.is_none()
            && results.table.is_none()
            && !results.timeline
            && results.outputs.is_empty()
            && io::stdout().is_terminal()
    }

    /// Opens what the command line asks for, the terminal interface excepted: before anything is measured, so that
    /// a mistake costs nothing.
    pub fn open(results: &Results, machine: &Machine) -> Result<Self> {
        if results.table.is_some() || results.timeline {
            let times = if results.total_times { Shown::TotalTimes } else { Shown::SelfTimes };
            let baseline = results.baseline.as_deref().map(|path| baseline::read(path, machine));
            return Ok(Self::Last(Last {
                table: results.table,
                nnapi: nnapi::Options { times, per_execution: results.per_execution },
                format: results.format,
                baseline: baseline.transpose()?.map(Box::new),
                timeline: results.timeline,
            }));
        }
        match &results.json {
            Some(path) if path == Path::new("-") => Ok(Self::JsonStdout),
            Some(path) => create(path, results.force).map(Self::JsonFile),
            None if results.outputs.is_empty() => Ok(Self::Tables),
            None => Ok(Self::Nothing),
        }
    }

    /// One summary at the end.
    #[must_use]
    pub fn summary() -> Self {
        Self::Last(Last { table: Some(Table::Summary), ..Last::default() })
    }

    /// Shows what was found so far.
    pub fn update(&mut self, snapshot: &Snapshot, health: Health) -> Result<()> {
        match self {
            Self::Screen(screen) => {
                screen.0.update(snapshot.clone(), health);
                self.draw()
            }
            Self::Tables => {
                let text = format!("--- {} s\n{}\n", health.elapsed.as_secs(), tables::render(snapshot));
                write_stdout(text.as_bytes())
            }
            Self::JsonLines => write_stdout(&json(snapshot)?),
            Self::Last(_) | Self::Nothing | Self::JsonFile(_) | Self::JsonStdout => Ok(()),
        }
    }

    /// Draws the terminal interface, if there is one.
    pub fn draw(&mut self) -> Result<()> {
        match self {
            Self::Screen(screen) => screen.1.draw(&mut screen.0).context("cannot draw on the terminal"),
            _ => Ok(()),
        }
    }

    /// Writes the last snapshot. The terminal is as it was before.
    pub fn finish(self, snapshot: &Snapshot, lanes: Option<&Lanes>) -> Result<()> {
        match self {
            Self::Screen(screen) => {
                drop(screen);
                write_stdout(tables::render(snapshot).as_bytes())
            }
            Self::Last(last) => write_stdout(last.text(snapshot, lanes)?.as_bytes()),
            Self::Nothing => Ok(()),
            Self::Tables => write_stdout(format!("--- end\n{}", tables::render(snapshot)).as_bytes()),
            Self::JsonStdout | Self::JsonLines => write_stdout(&json(snapshot)?),
            Self::JsonFile(mut file) => file
                .write_all(&json(snapshot)?)
                .and_then(|()| file.flush())
                .context("cannot write the snapshot"),
        }
    }
}

impl Last {
    fn text(&self, snapshot: &Snapshot, lanes: Option<&Lanes>) -> Result<String> {
        let mut text = match (self.table, self.table.and_then(Table::of_power)) {
            (_, Some(table)) => self.power(snapshot, table)?,
            (Some(Table::Nnapi), _) => {
                nnapi::render(&snapshot.reports, self.nnapi) + &tables::details(snapshot)
            }
            (Some(Table::Iterations), _) => {
                tables::iterations(snapshot) + &tables::losses_and_notes(snapshot)
            }
            (Some(_), _) => tables::render(snapshot),
            (None, _) => String::new(),
        };
        if self.timeline {
            let columns = terminal::size().ok().filter(|_| io::stdout().is_terminal());
            let columns = columns.map_or(COLUMNS, |(columns, _)| usize::from(columns));
            text += &match lanes {
                Some(lanes) => timeline::render(snapshot, lanes, columns),
                None => "no power events were seen\n".into(),
            };
        }
        Ok(text)
    }

    fn power(&self, snapshot: &Snapshot, table: PowerTable) -> Result<String> {
        Ok(match (&self.baseline, self.format) {
            (None, Format::Text) => power::render(snapshot, table),
            (None, Format::Csv) => power::csv(snapshot, &[table])?,
            (Some(before), Format::Text) => diff::render(before, snapshot, table),
            (Some(before), Format::Csv) => diff::csv(before, snapshot, &[table])?,
        })
    }
}

/// Creates a file; one that exists is replaced only by `force`.
pub fn create(path: &Path, force: bool) -> Result<File> {
    let mut options = OpenOptions::new();
    options.write(true);
    if force {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            bail!("{} exists already; --force replaces it", path.display())
        }
        result => result.with_context(|| format!("cannot create {}", path.display())),
    }
}

/// The snapshot as a line of JSON.
pub fn json(snapshot: &Snapshot) -> Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(snapshot).context("cannot write the snapshot as JSON")?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Writes to stdout. A reader that went away (`| head`) is no error.
pub fn write_stdout(bytes: &[u8]) -> Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to stdout"),
    }
}
