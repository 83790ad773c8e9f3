//! Figures of a run in a file, and their comparison with those of another run.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use crate::bench::table::Table;

/// Figures by table and subject, with a line that describes the host.
pub struct Results(Value);

/// Differences between two runs, a line each.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Ratios that are worse by more than the factor.
    pub worse: Vec<String>,
    /// Figures that depend on the machine and are larger or smaller by more than the factor.
    pub different: Vec<String>,
}

impl Results {
    /// Creates results without figures.
    pub fn new(host: &str) -> Self {
        Self(json!({ "host": host, "tables": {} }))
    }

    /// Adds the figures of a table.
    pub fn add(&mut self, table: &Table) {
        self.0["tables"][table.title()] = table.figures();
    }

    /// Takes over the tables of a later run.
    pub fn extend(&mut self, later: Self) {
        let Self(mut later) = later;
        self.0["host"] = later["host"].take();
        if let (Some(all), Value::Object(tables)) = (self.0["tables"].as_object_mut(), later["tables"].take())
        {
            all.extend(tables);
        }
    }

    /// Reads the results of an earlier run.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let expected = || format!("{} is not what --json or --bless has written", path.display());
        let results: Value = serde_json::from_str(&text).with_context(expected)?;
        results["tables"].as_object().with_context(expected)?;
        Ok(Self(results))
    }

    /// Writes them to a file.
    pub fn write(&self, path: &Path) -> Result<()> {
        fs::write(path, format!("{:#}\n", self.0))
            .with_context(|| format!("cannot write to {}", path.display()))
    }

    /// Compares them with those of an earlier run, as far as both have the same rows.
    pub fn compare(&self, earlier: &Self, factor: f64) -> Comparison {
        let mut found = Comparison::default();
        for (title, rows) in tables(&self.0) {
            for (subject, now) in rows.as_object().into_iter().flatten() {
                let then = &earlier.0["tables"][title][subject];
                let (Some(median), Some(before)) = (now["median"].as_f64(), then["median"].as_f64()) else {
                    continue;
                };
                let line = format!("{title}: {subject}: {median:.3}, earlier {before:.3}");
                let (grew, shrank) = (median > before * factor, median * factor < before);
                match now["better"].as_str() {
                    Some("less") if grew => found.worse.push(line),
                    Some("more") if shrank => found.worse.push(line),
                    None if grew || shrank => found.different.push(line),
                    _ => {}
                }
            }
        }
        found
    }
}

fn tables(results: &Value) -> impl Iterator<Item = (&String, &Value)> {
    results["tables"].as_object().into_iter().flat_map(Map::iter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(ns: f64, ratio: f64, gain: f64) -> Results {
        let mut table = Table::new("marks");
        table.row("ns", &[ns]);
        table.ratio("ours / theirs", &[ratio]);
        table.gain("theirs / ours", &[gain]);
        let mut results = Results::new("a host");
        results.add(&table);
        results
    }

    #[test]
    fn only_ratios_get_worse() {
        let earlier = results(100.0, 1.0, 3.0);
        let nothing = Comparison::default();
        assert_eq!(results(100.0, 1.2, 2.5).compare(&earlier, 1.3), nothing);
        assert_eq!(results(100.0, 0.1, 30.0).compare(&earlier, 1.3), nothing);
        let slower = results(200.0, 1.4, 2.0).compare(&earlier, 1.3);
        assert_eq!(
            slower.worse,
            ["marks: ours / theirs: 1.400, earlier 1.000", "marks: theirs / ours: 2.000, earlier 3.000"]
        );
        assert_eq!(slower.different, ["marks: ns: 200.000, earlier 100.000"]);
        assert_eq!(results(1.0, 9.0, 1.0).compare(&Results::new("another"), 1.3), nothing);
    }

    #[test]
    fn later_tables_take_the_place_of_earlier_ones() {
        let mut all = results(1.0, 1.0, 1.0);
        let mut other = Table::new("replay");
        other.row("ns", &[5.0]);
        all.add(&other);
        all.extend(results(2.0, 1.0, 1.0));
        assert_eq!(all.0["tables"]["marks"]["ns"]["median"], 2.0);
        assert_eq!(all.0["tables"]["replay"]["ns"]["median"], 5.0);
    }
}
