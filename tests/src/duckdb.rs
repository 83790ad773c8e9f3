//! DuckDB, an engine of queries that shares no code with the project: what it reads in a table is what a user's engine reads.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::{child::Child, wheels};

/// Prints the rows of each query as JSON, a list for each.
const SCRIPT: &str = "
import duckdb, json, sys
connection = duckdb.connect()
results = []
for query in sys.argv[1:]:
    cursor = connection.execute(query)
    names = [column[0] for column in cursor.description]
    results.append([dict(zip(names, row)) for row in cursor.fetchall()])
print(json.dumps(results))
";

/// Row of a result, by column.
pub type Row = BTreeMap<String, Value>;

/// Returns a number of a row.
///
/// # Panics
/// When the row has no number in that column.
#[must_use]
pub fn number(row: &Row, column: &str) -> u64 {
    row.get(column).and_then(Value::as_u64).unwrap_or_else(|| panic!("no {column} in {row:?}"))
}

/// Returns a text of a row.
///
/// # Panics
/// When the row has no text in that column.
#[must_use]
pub fn text<'a>(row: &'a Row, column: &str) -> &'a str {
    row.get(column).and_then(Value::as_str).unwrap_or_else(|| panic!("no {column} in {row:?}"))
}

/// Returns these columns of all rows, sorted, as text.
///
/// # Panics
/// When a row lacks one of them.
#[must_use]
pub fn columns(rows: &[Row], names: &[&str]) -> Vec<String> {
    let mut rows: Vec<String> = rows
        .iter()
        .map(|row| {
            let values =
                names.iter().map(|name| row.get(*name).unwrap_or_else(|| panic!("no {name}: {row:?}")));
            values.map(ToString::to_string).collect::<Vec<_>>().join(" ")
        })
        .collect();
    rows.sort();
    rows
}

/// DuckDB, queried in one folder.
pub struct DuckDb {
    python: PathBuf,
    folder: PathBuf,
}

impl DuckDb {
    /// Returns DuckDB as `cargo xtask engines` has installed it; `None`, with a message, where it is missing.
    ///
    /// # Errors
    /// When it is missing, and live tests are required.
    pub fn in_folder(folder: &Path) -> Result<Option<Self>> {
        Ok(wheels::readers()?.map(|python| Self { python, folder: folder.to_owned() }))
    }

    /// Returns the rows of a query.
    ///
    /// # Errors
    /// When DuckDB refuses it.
    pub fn rows(&self, query: &str) -> Result<Vec<Row>> {
        let [rows] = <[Vec<Row>; 1]>::try_from(self.all(&[query])?).ok().context("one result")?;
        Ok(rows)
    }

    /// Returns the rows of queries.
    ///
    /// # Errors
    /// When DuckDB refuses one.
    pub fn all(&self, queries: &[&str]) -> Result<Vec<Vec<Row>>> {
        let mut command = Command::new(&self.python);
        command.args(["-c", SCRIPT]).args(queries).current_dir(&self.folder);
        let ended = Child::run(&mut command)?.expect_code(0)?;
        let results: Vec<Vec<Row>> = serde_json::from_slice(&ended.stdout).context("no results")?;
        ensure!(results.len() == queries.len(), "{} results of {} queries", results.len(), queries.len());
        Ok(results)
    }
}
