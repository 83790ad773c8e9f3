//! Perfetto's own importer: what it makes of a trace is what a person sees in its user interface.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use crate::{child::Child, duckdb::Row, wheels};

/// Importer, run by node.
pub struct Importer {
    folder: PathBuf,
}

impl Importer {
    /// Returns the importer as `cargo xtask engines` has installed it; `None`, with a message, where it is missing.
    ///
    /// # Errors
    /// When it is missing, and live tests are required.
    pub fn find() -> Result<Option<Self>> {
        Ok(wheels::importer()?.map(|folder| Self { folder }))
    }

    /// Returns the rows of queries over a trace.
    ///
    /// # Errors
    /// When it refuses the trace or a query.
    pub fn rows(&self, trace: &Path, queries: &[&str]) -> Result<Vec<Vec<Row>>> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("perfetto/importer.cjs");
        let mut command = Command::new("node");
        command.arg(script).arg(&self.folder).arg(trace).args(queries);
        let ended = Child::run(&mut command).context("node, of Debian's package nodejs")?.expect_code(0)?;
        let results: Vec<Vec<Row>> = serde_json::from_slice(&ended.stdout).context("no results")?;
        ensure!(results.len() == queries.len(), "{} results of {} queries", results.len(), queries.len());
        Ok(results)
    }
}
