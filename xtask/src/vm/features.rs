//! The table of kernels in the documentation, from what each told when it was run.

use std::{fmt::Write as _, fs, path::Path};

use anyhow::{Context, Result};
use serde_json::Value;

/// Where the table goes.
const PAGE: &str = "nntrace-user/docs/kernels.md";
const HEAD: &str = "\
# Kernels

What the profiler finds on Debian's kernels, as `cargo xtask vm --bless` wrote it down: each of them was run in an emulated
machine. The arm64 one has four small and two large CPUs, idle states and frequency policies by
its device tree (`lab`).

";

/// Writes the page, with a column for each folder of `fixtures` that has facts.
pub fn write(fixtures: &Path) -> Result<()> {
    let mut machines = Vec::new();
    for entry in fs::read_dir(fixtures)? {
        let path = entry?.path();
        if let Ok(text) = fs::read_to_string(path.join("facts.json")) {
            let facts: Value = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
            machines.push(facts);
        }
    }
    machines.sort_by_key(|facts| (string(&facts["machine"]), numbers(&string(&facts["release"]))));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(PAGE);
    fs::write(&path, HEAD.to_owned() + &table(&machines)).with_context(|| path.display().to_string())?;
    println!("wrote      {PAGE}");
    Ok(())
}

/// A row by name, and what stands in it for each machine.
type Row = (&'static str, fn(&Value) -> String);

fn table(machines: &[Value]) -> String {
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
    let mut text = String::from("| |");
    for facts in machines {
        let _ = write!(text, " {} {} |", string(&facts["machine"]), string(&facts["release"]));
    }
    let _ = writeln!(text, "\n|{}", " --- |".repeat(machines.len() + 1));
    for (name, cell) in rows {
        let _ = write!(text, "| {name} |");
        for facts in machines {
            let _ = write!(text, " {} |", cell(facts).replace('|', "\\|"));
        }
        text.push('\n');
    }
    text
}

/// A value as people read it.
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

/// The numbers in a release, to sort by.
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
        let table = table(&[facts]);
        assert!(
            table.starts_with("| | aarch64 6.1.0 |\n| --- | --- |\n| BTF of the kernel | yes |\n"),
            "{table}"
        );
        assert!(table.contains("| idle driver | none |\n| idle states | WFI, a\\|b |\n"), "{table}");
        assert!(table.contains("`kernel` 6"), "{table}");
    }
}
