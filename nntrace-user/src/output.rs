//! Where results go: a terminal interface, tables, or JSON.

use std::{
    fs::{File, OpenOptions},
    io::{self, IsTerminal as _, Write},
    path::Path,
};

use anyhow::{Context as _, Result, bail};
use nntrace_user::{
    report::{
        nnapi::{self, Shown},
        snapshot::Snapshot,
        tables,
    },
    tui::{App, Health, Terminal},
};

use crate::cli::{Results, Table};

/// Where results go.
pub enum Output {
    /// The live view.
    Screen(Box<(App, Terminal)>),
    /// A table each interval and at the end.
    Tables,
    /// One table at the end.
    Last(Table, nnapi::Options),
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
        results.json.is_none() && results.table.is_none() && io::stdout().is_terminal()
    }

    /// Opens what the command line asks for, the terminal interface excepted: before anything is measured, so that
    /// a mistake costs nothing.
    pub fn open(results: &Results) -> Result<Self> {
        if let Some(table) = results.table {
            let times = if results.total_times { Shown::TotalTimes } else { Shown::SelfTimes };
            return Ok(Self::Last(table, nnapi::Options { times, per_execution: results.per_execution }));
        }
        match &results.json {
            Some(path) if path == Path::new("-") => Ok(Self::JsonStdout),
            Some(path) => create(path, results.force).map(Self::JsonFile),
            None => Ok(Self::Tables),
        }
    }

    /// One summary at the end.
    #[must_use]
    pub fn summary() -> Self {
        Self::Last(Table::Summary, nnapi::Options::default())
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
            Self::Last(..) | Self::JsonFile(_) | Self::JsonStdout => Ok(()),
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
    pub fn finish(self, snapshot: &Snapshot) -> Result<()> {
        match self {
            Self::Screen(screen) => {
                drop(screen);
                write_stdout(tables::render(snapshot).as_bytes())
            }
            Self::Last(Table::Summary, _) => write_stdout(tables::render(snapshot).as_bytes()),
            Self::Last(Table::Nnapi, options) => {
                let text = nnapi::render(&snapshot.reports, options) + &tables::details(snapshot);
                write_stdout(text.as_bytes())
            }
            Self::Tables => write_stdout(format!("--- end\n{}", tables::render(snapshot)).as_bytes()),
            Self::JsonStdout | Self::JsonLines => write_stdout(&json(snapshot)?),
            Self::JsonFile(mut file) => file
                .write_all(&json(snapshot)?)
                .and_then(|()| file.flush())
                .context("cannot write the snapshot"),
        }
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

fn json(snapshot: &Snapshot) -> Result<Vec<u8>> {
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
