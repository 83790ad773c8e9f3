//! Counts that were taken as right, by architecture and path, and the comparison with them.

use std::{env::consts::ARCH, fs, path::Path};

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

/// File of the counts, from the workspace's root.
const FILE: &str = "xtask/src/instructions/counts.json";

/// Instructions by path.
#[derive(Debug, Default)]
pub struct Counts(Vec<Count>);

/// Instructions of a path.
#[derive(Debug)]
struct Count {
    path: &'static str,
    instructions: f64,
    /// How many more instructions than before are none, %.
    tolerance: f64,
}

impl Counts {
    /// Adds the instructions of a path, and the part of them, in %, by which a build differs from the next.
    pub fn add(&mut self, path: &'static str, instructions: f64, tolerance: f64) {
        self.0.push(Count { path, instructions, tolerance });
    }

    /// Takes them over into the file; those of other architectures stay.
    pub fn bless(&self) -> Result<()> {
        let mut all = read()?;
        // As it is printed: the rest is in the noise.
        let rounded = |count: f64| json!((count * 10.0).round() / 10.0);
        let ours: Map<_, _> =
            self.0.iter().map(|count| (count.path.to_owned(), rounded(count.instructions))).collect();
        all.insert(ARCH.to_owned(), Value::Object(ours));
        fs::write(path(), format!("{:#}\n", Value::Object(all)))
            .with_context(|| format!("cannot write to {FILE}"))?;
        println!("written    {FILE}");
        Ok(())
    }

    /// Fails when a path takes more instructions than in the file, or is missing there.
    pub fn compare(&self) -> Result<()> {
        let Some(Value::Object(blessed)) = read()?.remove(ARCH) else {
            println!("note       {FILE} has no counts of {ARCH}: nothing is compared");
            return Ok(());
        };
        let (more, fewer) = self.differences(&blessed);
        for line in fewer {
            println!("fewer      {line}; cargo xtask instructions --bless keeps it so");
        }
        if more.is_empty() {
            return Ok(());
        }
        bail!(
            "more instructions:\n  {}\nif that is meant: cargo xtask instructions --bless",
            more.join("\n  ")
        )
    }

    /// Describes the paths that take more and those that take fewer, a line each.
    fn differences(&self, blessed: &Map<String, Value>) -> (Vec<String>, Vec<String>) {
        let (mut more, mut fewer) = (Vec::new(), Vec::new());
        for &Count { path, instructions, tolerance } in &self.0 {
            let Some(before) = blessed.get(path).and_then(Value::as_f64) else {
                more.push(format!("{path}: {instructions:.1}, not in {FILE}"));
                continue;
            };
            let line =
                format!("{path}: {instructions:.1} instead of {before:.1}, by more than {tolerance} %");
            let bound = before * tolerance / 100.0;
            if instructions > before + bound {
                more.push(line);
            } else if instructions < before - bound {
                fewer.push(line);
            }
        }
        (more, fewer)
    }
}

/// Reads the counts of all architectures; none without a file.
fn read() -> Result<Map<String, Value>> {
    match fs::read_to_string(path()) {
        Ok(text) => serde_json::from_str(&text).with_context(|| format!("{FILE} is no JSON object")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Map::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {FILE}")),
    }
}

fn path() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_tolerance_is_named_with_both_figures() {
        let mut counts = Counts::default();
        for (path, count) in [("same", 103.0), ("more", 103.1), ("fewer", 96.9), ("new", 1.0)] {
            counts.add(path, count, 3.0);
        }
        let blessed = json!({ "same": 100, "more": 100, "fewer": 100, "gone": 1 });
        let Value::Object(blessed) = blessed else { unreachable!() };
        let (more, fewer) = counts.differences(&blessed);
        assert_eq!(
            more,
            ["more: 103.1 instead of 100.0, by more than 3 %".to_owned(), format!("new: 1.0, not in {FILE}")]
        );
        assert_eq!(fewer, ["fewer: 96.9 instead of 100.0, by more than 3 %"]);
    }
}
