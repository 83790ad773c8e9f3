//! Tables of kernels in the documentation, from the facts recorded in their runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::Path,
};

use anyhow::{Context, Result};
use serde_json::Value;

/// Page with the tables.
const PAGE: &str = "nntrace-user/docs/kernels.md";
/// File of a fixture with the results of the checks.
pub const CHECKS: &str = "checks.txt";
const HEAD: &str = "\
# Kernels

What the profiler finds on Debian's kernels, as `cargo xtask vm --bless` wrote it down: each of them was run in an emulated
machine. The arm64 one has four small and two large CPUs, idle states and frequency policies by its device tree (`lab`); the
x86-64 one has CPUs and nothing else. Kernels of boards differ by their makers' changes, which this cannot show.

";
const CHECKS_HEAD: &str = "
## Checks

What was run on each: checks of this machine's first process (`tests/src/bin/vm-guest`), and live tests by the names of their
files (`tests/tests/kernel`).

";

/// Recorded facts of a VM.
struct Column {
    facts: Value,
    /// Results of the checks, by name.
    checks: BTreeMap<String, String>,
}

/// Extracts the checks that the guest reported on its console: a name and a result in each line.
pub fn checks(serial: &str) -> String {
    let told = serial.lines().filter_map(|line| line.trim_end().strip_prefix("vm-guest: "));
    let mut text = String::new();
    for (name, outcome) in told.filter_map(|line| line.split_once(' ')) {
        if outcome.starts_with("passed") {
            let _ = writeln!(text, "{name} passed");
        } else if outcome.starts_with("skipped") {
            let _ = writeln!(text, "{name} {outcome}");
        }
    }
    text
}

/// Writes the page, with a column for each folder of `fixtures` that has facts.
pub fn write(fixtures: &Path) -> Result<()> {
    let mut machines = Vec::new();
    for entry in fs::read_dir(fixtures)? {
        let path = entry?.path();
        if let Ok(text) = fs::read_to_string(path.join("facts.json")) {
            let facts: Value = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
            let told = fs::read_to_string(path.join(CHECKS)).unwrap_or_default();
            let checks = told.lines().filter_map(|line| line.split_once(' '));
            let checks = checks.map(|(name, outcome)| (name.to_owned(), outcome.to_owned())).collect();
            machines.push(Column { facts, checks });
        }
    }
    machines
        .sort_by_key(|Column { facts, .. }| (string(&facts["machine"]), numbers(&string(&facts["release"]))));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(PAGE);
    let text = HEAD.to_owned() + &features(&machines) + CHECKS_HEAD + &outcomes(&machines);
    fs::write(&path, text).with_context(|| path.display().to_string())?;
    println!("wrote      {PAGE}");
    Ok(())
}

/// Row with its name, and its value for each VM.
type Row = (&'static str, fn(&Value) -> String);

fn features(machines: &[Column]) -> String {
    let rows: [Row; 9] = [
        ("BTF of the kernel", |facts| string(&facts["btf"])),
        ("idle driver", |facts| string(&facts["idle_driver"])),
        ("idle states", |facts| list(&facts["idle_states"])),
        ("frequency policies", |facts| string(&facts["policies"])),
        ("clusters are known from", |facts| string(&facts["clusters"])),
        ("CPUs by where their first state is known from", |facts| counts(&facts["initial_idle"])),
        ("power events", |facts| list(&facts["tracepoints"])),
        ("told beside", |facts| list(&facts["evidence"])),
        ("notes", |facts| list(&facts["notes"])),
    ];
    let rows = rows.map(|(name, cell)| (name, machines.iter().map(|it| cell(&it.facts)).collect()));
    table(machines, rows.into_iter())
}

fn outcomes(machines: &[Column]) -> String {
    let names: BTreeSet<&String> = machines.iter().flat_map(|machine| machine.checks.keys()).collect();
    let rows = names.into_iter().map(|name| {
        let cells = machines.iter().map(|machine| machine.checks.get(name).map_or("not run", String::as_str));
        (name.as_str(), cells.map(str::to_owned).collect())
    });
    table(machines, rows)
}

fn table<'a>(machines: &[Column], rows: impl Iterator<Item = (&'a str, Vec<String>)>) -> String {
    let mut text = String::from("| |");
    for Column { facts, .. } in machines {
        let _ = write!(text, " {} {} |", string(&facts["machine"]), string(&facts["release"]));
    }
    let _ = writeln!(text, "\n|{}", " --- |".repeat(machines.len() + 1));
    for (name, cells) in rows {
        let _ = write!(text, "| {name} |");
        for cell in cells {
            let _ = write!(text, " {} |", cell.replace('|', "\\|"));
        }
        text.push('\n');
    }
    text
}

/// Formats a value for people.
fn string(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".into(),
        Value::Bool(false) => "no".into(),
        Value::Null => "none".into(),
        other => other.to_string(),
    }
}

fn list(value: &Value) -> String {
    let texts: Vec<String> = value.as_array().into_iter().flatten().map(string).collect();
    if texts.is_empty() { "none".into() } else { texts.join(", ") }
}

fn counts(value: &Value) -> String {
    let pairs = value.as_object().into_iter().flatten();
    pairs.map(|(name, count)| format!("`{name}` {count}")).collect::<Vec<_>>().join(", ")
}

/// Returns the numbers in a release, for sorting.
fn numbers(release: &str) -> Vec<u64> {
    release.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_for_each_kernel() {
        let facts = serde_json::json!({
            "release": "6.1.0", "machine": "aarch64", "btf": true, "idle_driver": null, "idle_states": ["WFI", "a|b"],
            "policies": 2, "clusters": "x", "initial_idle": {"kernel": 6}, "evidence": [], "tracepoints": ["p/q"],
            "notes": []
        });
        let told =
            "vm-guest: facts passed (7 ms)\r\nvm-guest: golden skipped: no a|b\nnoise\nvm-guest: 0 failed\n";
        let checks: String = checks(told);
        assert_eq!(checks, "facts passed\ngolden skipped: no a|b\n");
        let checks = checks.lines().filter_map(|line| line.split_once(' '));
        let checks = checks.map(|(name, outcome)| (name.to_owned(), outcome.to_owned())).collect();
        let machines = [Column { facts, checks }];
        let table = features(&machines);
        assert!(
            table.starts_with("| | aarch64 6.1.0 |\n| --- | --- |\n| BTF of the kernel | yes |\n"),
            "{table}"
        );
        assert!(table.contains("| idle driver | none |\n| idle states | WFI, a\\|b |\n"), "{table}");
        assert!(table.contains("`kernel` 6"), "{table}");
        assert!(outcomes(&machines).ends_with("| facts | passed |\n| golden | skipped: no a\\|b |\n"));
    }
}
