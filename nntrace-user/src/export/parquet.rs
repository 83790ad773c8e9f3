//! Tables of a run in Apache Parquet, for engines that query many runs at once: `docs/parquet.md` is their schema.
//!
//! Each table is a file of its own in one folder. Every row carries the board and the run that it is of, so that the tables
//! of many runs are one table. Equal runs give equal bytes.

mod hand_overs;
mod intervals;
mod iterations;
mod rails;
mod run;
mod schema;
mod spans;
mod table;
#[cfg(test)]
mod tests;
mod totals;

use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;
use thiserror::Error;

pub use run::RecordedRun;
pub use spans::Spans;

use crate::{
    model::{Findings, timeline::Timelines},
    report::snapshot::Snapshot,
};

/// Names of the files that the tables are in.
pub const FILES: [&str; 8] = [
    "spans.parquet",
    "cpu_intervals.parquet",
    "cluster_intervals.parquet",
    "iterations.parquet",
    "handovers.parquet",
    "totals.parquet",
    "rails.parquet",
    "run.parquet",
];

/// Label of a run among others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Name of the board that it ran on.
    pub board: String,
    /// Name of the run, which no other run of the board has.
    pub run: String,
}

/// Run to be written.
pub struct Run<'a> {
    /// Findings, for which hand-overs were kept.
    pub findings: &'a Findings<'a>,
    /// Sequence of states of CPUs and clusters, if there is any.
    pub timelines: Option<&'a Timelines>,
    /// Facts of a recording; `None` for a trace.
    pub recorded: Option<RecordedRun<'a>>,
}

/// Reason why tables cannot be written.
#[derive(Debug, Error)]
#[error("cannot write {path}: {source}; is there room, and may this user write there?")]
pub struct ExportError {
    path: PathBuf,
    source: ParquetError,
}

impl ExportError {
    fn new(path: &Path, source: ParquetError) -> Self {
        Self { path: path.to_owned(), source }
    }
}

/// Writes all tables of a run but that of its sections, which [`Spans`] writes.
///
/// # Errors
/// When a file cannot be written.
pub fn write(folder: &Path, label: &Label, run: &Run<'_>) -> Result<(), ExportError> {
    let snapshot = Snapshot::of(run.findings);
    intervals::write(folder, label, run.findings, run.timelines)?;
    iterations::write(folder, label, run.findings)?;
    hand_overs::write(folder, label, run.findings)?;
    totals::write(folder, label, run.findings, &snapshot)?;
    rails::write(folder, label, snapshot.rails.as_ref())?;
    run::write(folder, label, run, &snapshot)
}
