//! Figures of a snapshot by their places, for comparing two runs of one program.

use std::collections::BTreeMap;

use anyhow::Result;
use nntrace_user::report::snapshot::Snapshot;
use serde_json::Value;

/// Keys of the host, or different in every run: not figures of the program.
const OTHER: [&str; 9] =
    ["host", "window", "source", "overhead", "loss", "cpus", "clusters", "evidence", "notes"];

/// Keys of the process and its time, which are others in every run.
const OF_THE_RUN: [&str; 4] = ["pid", "tid", "first_ns", "histogram"];

/// Words that identify a row of a list.
const WORDS: [&str; 6] = ["layer", "phase", "name", "kind", "path", "iter"];

/// Key in the form of `loss.incomplete`, and value.
pub type Figure = (String, Value);

/// Returns all numbers and texts of a snapshot by their places, with rows identified by their words. Times are
/// reduced to whether there is any.
///
/// # Errors
/// When the snapshot is none of JSON.
pub fn of(snapshot: &Snapshot) -> Result<BTreeMap<String, Figure>> {
    let mut all = BTreeMap::new();
    let Value::Object(top) = serde_json::to_value(snapshot)? else { return Ok(all) };
    for (key, value) in top.iter().filter(|(key, _)| !OTHER.contains(&key.as_str())) {
        collect(key, key, value, &mut all);
    }
    Ok(all)
}

/// Collects the figures of a value. `key` contains no rows: it is the name in `loss.incomplete`.
fn collect(key: &str, place: &str, value: &Value, all: &mut BTreeMap<String, Figure>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                collect(&format!("{key}.{name}"), &format!("{place}.{name}"), value, all);
            }
        }
        Value::Array(rows) => {
            let mut places: BTreeMap<String, usize> = BTreeMap::new();
            for row in rows {
                let words = WORDS.map(|word| row.get(word).map(ToString::to_string).unwrap_or_default());
                let of_words = places.entry(words.join(" ").trim().to_owned()).or_default();
                *of_words += 1;
                collect(key, &format!("{place}[{} {of_words}]", words.join(" ").trim()), row, all);
            }
        }
        // The process is another one.
        Value::String(mark) if key.ends_with("starting_mark") || key.ends_with("example") => {
            let text = mark.rsplit('|').next().unwrap_or_default();
            all.insert(place.to_owned(), (key.to_owned(), text.into()));
        }
        _ => {
            let value = if key.contains("_ns") {
                value.as_u64().is_some_and(|ns| ns > 0).into()
            } else {
                value.clone()
            };
            if !OF_THE_RUN.iter().any(|name| key.ends_with(name)) {
                all.insert(place.to_owned(), (key.to_owned(), value));
            }
        }
    }
}
