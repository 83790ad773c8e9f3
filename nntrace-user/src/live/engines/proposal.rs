//! Proposals for the map of a library that no map is for: which of its functions may be its runs, and which its operators.
//!
//! ```text
//! candidates: exported functions, virtual functions that many classes override
//!      │
//!      ├─► map_text: a trial map of all, with which a command is profiled ─► calls and times
//!      ▼                                                                       │
//!   ranking: the likeliest first, by names and sizes, or by what was called ◄──┘
//!      │
//!      └─► map_text: the proposed map
//! ```

mod candidates;
mod map_text;
mod ranking;

use std::{collections::BTreeMap, path::Path};

pub(in crate::live) use self::candidates::CandidateSearch;
use self::candidates::Candidates;
use super::catalog::Catalog;
use crate::live::target::{PinnedFile, examiner};

/// Calls of an exported function at most where a trial takes too long; a hundred operators of a model that runs a hundred times a
/// second are three times as many in half a minute.
const MOST_CALLS: u64 = 100_000;
/// The same of the functions in a slot.
const MOST_OF_SLOT: u64 = 1_000_000;
/// Mean time (ns) from which on a call is worth its probes, which are in it.
const LEAST_NS: u64 = 50_000;

/// Proposal for the map of a library.
#[derive(Debug)]
pub struct Proposal {
    /// Name of the library's file.
    file: String,
    /// Name of the engine.
    engine: String,
    candidates: Candidates,
    /// What a command has shown, by the label of a candidate; `None` where none was run.
    seen: Option<BTreeMap<String, Seen>>,
}

/// Calls of a candidate's functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Calls that were not in another one of the same candidate.
    calls: u64,
    /// Their time, ns.
    total_ns: u64,
}

impl Proposal {
    /// Searches a library.
    ///
    /// # Errors
    /// With the reason, when it cannot be read, or has no function that a map could name.
    pub fn of(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let file = PinnedFile::at(path).map_err(|error| format!("cannot open {shown}: {error}"))?;
        let candidates = examiner::examine_named(&file, path, &CandidateSearch)
            .map_err(|error| format!("{shown}: {error}"))?;
        if candidates.is_empty() {
            return Err(format!(
                "{shown} exports no function that may be a run, and has no virtual function that several classes override: \
                 there is nothing to propose"
            ));
        }
        let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Self { engine: engine_name(&file), file, candidates, seen: None })
    }

    /// Returns the name of the engine in the maps.
    #[must_use]
    pub fn engine(&self) -> &str {
        &self.engine
    }

    /// Returns a map by which the calls of all candidates can be counted.
    #[must_use]
    pub fn trial_map(&self) -> String {
        map_text::trial(&self.engine, &self.candidates)
    }

    /// Takes the functions of a run with the trial map: their names, calls, and times (ns). Returns whether a candidate is among
    /// them.
    pub fn take_calls<'a>(&mut self, functions: impl IntoIterator<Item = (&'a str, u64, u64)>) -> bool {
        let all = self.seen.get_or_insert_default();
        for (name, calls, total_ns) in functions {
            let seen = all.entry(name.to_owned()).or_default();
            seen.calls = seen.calls.saturating_add(calls);
            seen.total_ns = seen.total_ns.saturating_add(total_ns);
        }
        let Candidates { exports, slots } = &self.candidates;
        let mut labels = (0..exports.len()).map(|place| ranking::label(false, place));
        let mut of_slots = (0..slots.len()).map(|place| ranking::label(true, place));
        labels.any(|label| all.contains_key(&label)) || of_slots.any(|label| all.contains_key(&label))
    }

    /// Leaves out the functions that are called too often for so little that they do: they are neither runs nor operators, and
    /// their probes take the time. Returns how many lines of the trial map that were. Unless there were none, what was seen
    /// is forgotten.
    pub fn leave_out_frequent(&mut self) -> usize {
        let Some(seen) = &self.seen else { return 0 };
        let is_frequent = |is_slot, place| {
            let seen = seen.get(&ranking::label(is_slot, place)).copied().unwrap_or_default();
            let most = if is_slot { MOST_OF_SLOT } else { MOST_CALLS };
            seen.calls > most && seen.total_ns / seen.calls < LEAST_NS
        };
        let Candidates { exports, slots } = &mut self.candidates;
        let before = exports.len() + slots.len();
        let mut place = 0..;
        exports.retain(|_| !place.next().is_some_and(|place| is_frequent(false, place)));
        let mut place = 0..;
        slots.retain(|_| !place.next().is_some_and(|place| is_frequent(true, place)));
        let left_out = before - exports.len() - slots.len();
        if left_out > 0 {
            self.seen = None;
        }
        left_out
    }

    /// Returns the proposed map, with what speaks for each line of it.
    #[must_use]
    pub fn map(&self) -> String {
        let ranked = ranking::ranked(&self.candidates, self.seen.as_ref());
        map_text::proposed(&self.file, &self.engine, &ranked, self.seen.is_some())
    }
}

/// Returns the name of a library as people call it, `foo` of `libfoo-1a2b3c.so.4.5`; another one if that is the name of a known engine,
/// whose maps it would replace, or a word of `--engine`.
fn engine_name(file: &str) -> String {
    let stem = file.split(".so").next().unwrap_or(file);
    let stem = stem.strip_prefix("lib").unwrap_or(stem);
    let stem = stem.split(['.', '-']).next().unwrap_or(stem).trim_start_matches('_');
    let name: String =
        stem.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    let name = if name.is_empty() { "engine".to_owned() } else { name.to_lowercase() };
    let is_taken = name == "none" || name == "auto" || Catalog::compiled_in().names().contains(&name);
    if is_taken { format!("{name}_proposed") } else { name }
}

#[cfg(test)]
mod tests;
