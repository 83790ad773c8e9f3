//! Maps as text: the trial of all candidates, and what is proposed.

use std::fmt::Write as _;

use super::{
    candidates::{Candidates, ExportedCandidate, SlotCandidate},
    ranking::{Candidate, Ranked, Ranking, label},
};
use crate::model::plurals::{counted, one_or_many};

/// Characters of a name in a comment at most.
const LONGEST: usize = 100;
/// Candidates that are shown for runs, and for operators.
const SHOWN: usize = 3;

/// Returns a map of all candidates, each with its label.
pub(super) fn trial(engine: &str, candidates: &Candidates) -> String {
    let exports = candidates.exports.iter().map(Candidate::Export);
    let slots = candidates.slots.iter().map(Candidate::Slot);
    let all = || exports.clone().chain(slots.clone());
    let mut text = head(engine, "candidates of a map", all().next());
    for (place, candidate) in exports.clone().enumerate() {
        entry(&mut text, "", candidate, "LR_PE", Some(&label(false, place)));
    }
    for (place, candidate) in slots.clone().enumerate() {
        entry(&mut text, "", candidate, "LC_PE", Some(&label(true, place)));
    }
    text
}

/// Returns the proposed map; what is not likeliest is in comments.
pub(super) fn proposed(file: &str, engine: &str, ranking: &Ranking<'_>, was_run: bool) -> String {
    let by = if was_run { "by what the command called" } else { "by names and sizes alone" };
    let mut text = format!("# Map for {}, proposed {by}. Try it:\n", one_line(file));
    text.push_str("#   nntrace-bpf --map THIS_FILE --engine-level op -- COMMAND\n");
    let first = ranking.runs.first().or(ranking.operators.first()).map(|ranked| ranked.candidate);
    if first.is_some() {
        text.push_str(&head(engine, file, first));
    }
    for (what, ranked, mark) in [("Runs", &ranking.runs, "LR_PE"), ("Operators", &ranking.operators, "LC_PE")]
    {
        if ranked.is_empty() {
            let why = if was_run { "the command called no candidate" } else { "no candidate found" };
            let _ = write!(text, "\n# {what}: {why}.\n");
            continue;
        }
        let others =
            if ranked.len() > 1 { ", the likeliest first; uncomment another one to use it" } else { "" };
        let _ = write!(text, "\n# {what}{others}.\n");
        for (place, ranked) in ranked.iter().take(SHOWN).enumerate() {
            let _ = write!(text, "\n# {}\n", reason(ranked, was_run));
            entry(&mut text, if place == 0 { "" } else { "#" }, ranked.candidate, mark, None);
        }
    }
    text
}

/// Returns what comes before the probes: the engine is known by this candidate.
fn head(engine: &str, about: &str, known_by: Option<Candidate<'_>>) -> String {
    let evidence = match known_by {
        Some(Candidate::Export(export)) => format!("export = {}", quoted(&export.symbol)),
        Some(Candidate::Slot(slot)) => format!("rtti = {}", quoted(&slot.class)),
        None => String::new(),
    };
    format!(
        "\n[[engine]]\nname = {}\nabout = {}\nmatch = {{ {evidence} }}\n",
        quoted(engine),
        quoted(&one_line(about))
    )
}

/// Adds the entry of a candidate, each line after `before`.
fn entry(text: &mut String, before: &str, candidate: Candidate<'_>, mark: &str, label: Option<&str>) {
    let at = match candidate {
        Candidate::Export(ExportedCandidate { symbol, .. }) => format!("export = {}", quoted(symbol)),
        Candidate::Slot(SlotCandidate { class, slot, .. }) => {
            format!("rtti = {}, slot = {slot}", quoted(class))
        }
    };
    let is_operator = mark.starts_with("LC");
    let level = if is_operator || label.is_some() { Some("level = \"op\"".to_owned()) } else { None };
    let label = label.map(|label| format!("label = {}", quoted(label)));
    let lines = ["[[engine.probe]]".to_owned(), format!("at = {{ {at} }}"), format!("mark = \"{mark}\"")];
    let blank = if label.is_some() { "\n" } else { "" };
    text.push_str(blank);
    for line in lines.into_iter().chain(level).chain(label) {
        let _ = writeln!(text, "{before}{line}");
    }
}

/// Returns what speaks for a candidate.
fn reason(Ranked { candidate, seen }: &Ranked<'_>, was_run: bool) -> String {
    let what = match candidate {
        Candidate::Export(ExportedCandidate { shown, .. }) => one_line(shown),
        Candidate::Slot(SlotCandidate { class, slot, functions, classes, .. }) => format!(
            "slot {slot} of {}: {} of {}",
            one_line(class),
            counted(*functions, "function"),
            number_of_classes(*classes),
        ),
    };
    let why = match candidate {
        _ if was_run => {
            format!("{}, {} us in all", counted(seen.calls, "call"), seen.total_ns / 1_000)
        }
        Candidate::Export(ExportedCandidate { size, is_named_so: true, .. })
        | Candidate::Slot(SlotCandidate { size, is_named_so: true, .. }) => {
            format!("its name; {size} bytes")
        }
        Candidate::Export(ExportedCandidate { size, .. }) | Candidate::Slot(SlotCandidate { size, .. }) => {
            format!("{size} bytes")
        }
    };
    format!("{what} ({why})")
}

fn number_of_classes(number: u64) -> String {
    format!("{number} {}", one_or_many(number, "class", "classes"))
}

/// Returns a text in quotes of TOML.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Returns a text that fits into a line, and does nothing else there.
fn one_line(text: &str) -> String {
    let acts = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut line: String = text.chars().take(LONGEST).map(|c| if acts(c) { '?' } else { c }).collect();
    if text.chars().nth(LONGEST).is_some() {
        line.push_str("..");
    }
    line
}
