//! A report in HTML for people: one file that needs no network, with a page that draws the swimlane, the states of CPUs and
//! clusters and all tables in the browser. `docs/html-report.md` describes them.
//!
//! The page (`html/page`) is put together of a template, styles and scripts, all as they are in the source. What was found
//! is in it as JSON, in which no text can end the element that it stands in; scripts set texts as texts only, and the
//! page's policy allows these scripts and styles by their hashes and nothing else, the network least of all.

mod devices;
mod histograms;
mod lanes;
mod power;
mod sections;
#[cfg(test)]
mod tests;
mod thread_states;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

pub use self::sections::{Sections, SharedSections, Shown, observer};
use self::{devices::DeviceLanes, histograms::Bin, lanes::Swimlane, power::PowerLane};
use super::ThreadName;
use crate::{
    model::{Findings, timeline::Timelines},
    report::{
        headline::{Headline, main_function},
        snapshot::{Diagnostic, Snapshot},
        terminal_text::to_json,
    },
};

/// The page without its parts, which stand where these names are in braces.
const PAGE: &str = include_str!("html/page/report.html");
const STYLE: &str = include_str!("html/page/report.css");
/// Scripts, in the order in which they build on each other.
const SCRIPTS: [&str; 16] = [
    include_str!("html/page/data.js"),
    include_str!("html/page/format.js"),
    include_str!("html/page/elements.js"),
    include_str!("html/page/table.js"),
    include_str!("html/page/head.js"),
    include_str!("html/page/rows.js"),
    include_str!("html/page/painter.js"),
    include_str!("html/page/devices.js"),
    include_str!("html/page/threads.js"),
    include_str!("html/page/swimlane.js"),
    include_str!("html/page/marks.js"),
    include_str!("html/page/tokens.js"),
    include_str!("html/page/usage.js"),
    include_str!("html/page/clocks.js"),
    include_str!("html/page/power.js"),
    include_str!("html/page/report.js"),
];

/// A run, as a report shows it.
#[derive(Clone, Copy)]
pub struct Report<'a> {
    /// Subject of the run: a command, or files.
    pub title: &'a str,
    /// Name of the host, where it is known.
    pub host_name: Option<&'a str>,
    /// Begin of what was measured, ns since 1970, where that is known.
    pub began_ns: Option<u64>,
    /// Findings.
    pub findings: &'a Findings<'a>,
    /// Snapshot of them.
    pub snapshot: &'a Snapshot,
    /// Sections of the swimlane.
    pub sections: &'a Sections,
    /// Names of their threads, as far as they are known.
    pub threads: &'a [ThreadName],
    /// States of CPUs and clusters over time, if they were kept.
    pub timelines: Option<&'a Timelines>,
}

/// The data of a page.
#[derive(Serialize)]
struct Data<'a> {
    title: &'a str,
    host_name: Option<&'a str>,
    began_ns: Option<u64>,
    /// Without what is beside it, in another form.
    snapshot: Snapshot,
    /// Distributions of the rows of phases, in their order.
    histograms: Vec<Vec<Bin>>,
    /// Distributions of the rows of iterations, in their order.
    iteration_histograms: Vec<Vec<Bin>>,
    /// Where the first of each kind of diagnostics was met, if that is known.
    diagnostic_places: Vec<Option<String>>,
    /// Lines that sum up the run.
    headline: Vec<String>,
    /// Place of the function that takes most time among the functions.
    main_function: Option<usize>,
    swimlane: Swimlane<'a>,
    power: Vec<PowerLane<'a>>,
    devices: DeviceLanes,
}

/// Returns the report.
///
/// # Errors
/// When the snapshot has no form in JSON.
pub fn render(report: &Report<'_>) -> serde_json::Result<Vec<u8>> {
    let Report { title, host_name, began_ns, findings, snapshot, sections, threads, timelines } = *report;
    let main = main_function(&snapshot.functions);
    let data = Data {
        title,
        host_name,
        began_ns,
        snapshot: without_long_parts(snapshot),
        histograms: snapshot.phases.iter().map(|row| histograms::bins(row.histogram.as_ref())).collect(),
        iteration_histograms: snapshot
            .iterations
            .iter()
            .map(|row| histograms::bins(row.histogram.as_ref()))
            .collect(),
        diagnostic_places: snapshot.diagnostics.iter().map(Diagnostic::place).collect(),
        headline: Headline::of(snapshot, main).lines(),
        main_function: main
            .and_then(|main| snapshot.functions.iter().position(|row| std::ptr::eq(row, main))),
        swimlane: Swimlane::new(findings, sections, threads),
        power: timelines.map(|timelines| power::lanes(snapshot, timelines)).unwrap_or_default(),
        devices: DeviceLanes::new(findings),
    };
    let script = SCRIPTS.join("\n");
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; img-src data:; base-uri 'none'; form-action 'none'",
        hash(&script),
        hash(STYLE)
    );
    let data = inert(&to_json(&data)?);
    let parts: [(&str, &[u8]); 4] = [
        ("{policy}", policy.as_bytes()),
        ("{style}", STYLE.as_bytes()),
        ("{data}", &data),
        ("{script}", script.as_bytes()),
    ];
    let mut page = Vec::with_capacity(PAGE.len() + parts.iter().map(|(_, part)| part.len()).sum::<usize>());
    let mut rest = PAGE;
    for (name, part) in parts {
        if let Some((before, after)) = rest.split_once(name) {
            page.extend_from_slice(before.as_bytes());
            page.extend_from_slice(part);
            rest = after;
        }
    }
    page.extend_from_slice(rest.as_bytes());
    Ok(page)
}

/// Returns a snapshot without distributions.
fn without_long_parts(snapshot: &Snapshot) -> Snapshot {
    let mut short = snapshot.clone();
    short.phases.iter_mut().for_each(|row| row.histogram = None);
    short.iterations.iter_mut().for_each(|row| row.histogram = None);
    short
}

/// Returns JSON in which nothing can begin or end an element of the page: `<` is in texts only, and can be written otherwise
/// there.
fn inert(json: &[u8]) -> Vec<u8> {
    let mut inert = Vec::with_capacity(json.len());
    for part in json.split_inclusive(|byte| *byte == b'<') {
        match part.strip_suffix(b"<") {
            Some(before) => {
                inert.extend_from_slice(before);
                inert.extend_from_slice(br"\u003c");
            }
            None => inert.extend_from_slice(part),
        }
    }
    inert
}

/// Returns the hash of a script or of styles, as a policy names them.
fn hash(content: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(content.as_bytes())))
}
