//! The timeline as a picture: a step plot for each cluster and CPU, the frequency up from a zero line and the depth of
//! idle down from it, as such traces are classically plotted.
//!
//! The width of what is drawn is the time that it took, also where there is more of it than columns: what happened within
//! a column is then drawn side by side, as wide as it took, in no order. Every rectangle has its time as `data-ns`.

use std::fmt::Write as _;

use super::{Entry, milliseconds, seconds, ticks};
use crate::{
    model::timeline::Timelines,
    report::{
        cpu_or_cluster::{CpuOrCluster, CpuState},
        number_format,
        snapshot::{Snapshot, SourceKind},
        xml::escape,
    },
};

/// Width of the plots, pixels; also how many pieces a timeline is drawn of at most.
const PLOT: u64 = 1_000;
/// Width left of the plots, pixels: names and the vertical axis.
const LEFT: u64 = 190;
const RIGHT: u64 = 30;
/// Height above the first plot, pixels.
const TOP: u64 = 62;
/// Height below the last one, pixels: axis and legend.
const BOTTOM: u64 = 66;
/// Height from the zero line to the highest frequency, pixels.
const UP: f64 = 48.0;
/// Height from the zero line to the deepest idle state, pixels.
const DOWN: f64 = 30.0;
/// Distance from one zero line to the next, pixels.
const STEP: u64 = 96;
/// Least distance of two labels of an axis.
const LABELS: f64 = 9.0;

/// Styles. The colours are told apart by people of any colour vision (the palette of Okabe and Ito), and by place.
const STYLE: &str = "text{font:11px sans-serif;fill:#222}.h{font-size:15px;font-weight:bold}.n{font-weight:bold}\
                     .s{font-size:9px;fill:#555}.grid{stroke:#ddd}.zero{stroke:#555}.running{fill:#0072B2}\
                     .idle{fill:#E69F00}.running-unknown{fill:url(#p)}.idle_unknown{fill:url(#i)}.offline{fill:#444}\
                     .unknown{fill:url(#u)}";

/// Writing to a string cannot fail.
macro_rules! line {
    ($text:expr, $($format:tt)*) => {{
        let _ = writeln!($text, $($format)*);
    }};
}

/// Scale of heights.
struct Scale {
    /// The highest frequency, kHz.
    khz: u32,
    /// How many idle states there are, up to the deepest.
    states: u32,
}

/// The timeline as SVG, complete in itself.
#[must_use]
pub fn svg(snapshot: &Snapshot, timelines: &Timelines) -> String {
    let entries = Entry::all(snapshot, timelines);
    let length = snapshot.window.length_ns();
    let all = || entries.iter().flat_map(|entry| entry.timeline.totals());
    let khz = all().filter_map(|(state, _)| match state {
        CpuState::Running(khz) => khz,
        _ => None,
    });
    let states = all().filter_map(|(state, _)| match state {
        CpuState::Idle(state) => Some(state + 1),
        _ => None,
    });
    let scale = Scale { khz: khz.max().unwrap_or(1).max(1), states: states.max().unwrap_or(1) };
    let notes: Vec<String> = entries.iter().filter_map(Entry::is_coarse).collect();
    let bottom = TOP + STEP * entries.len() as u64;
    let (width, height) = (LEFT + PLOT + RIGHT, bottom + BOTTOM + 14 * notes.len() as u64);
    let mut text = String::new();
    line!(
        text,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">"#
    );
    line!(text, "<title>{}</title>", escape(&title(snapshot)));
    line!(text, "<style>{STYLE}</style>\n<defs>");
    for (id, colour) in [("p", "#0072B2"), ("i", "#E69F00"), ("u", "#999")] {
        line!(
            text,
            r#"<pattern id="{id}" width="5" height="5" patternUnits="userSpaceOnUse"><path d="M0 5L5 0" stroke="{colour}"/></pattern>"#
        );
    }
    line!(text, "</defs>\n<rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>");
    line!(text, r#"<text class="h" x="12" y="24">{}</text>"#, escape(&title(snapshot)));
    line!(
        text,
        r#"<text class="s" x="12" y="42">up: frequency (of a cluster: the highest that a running CPU requested); down: depth of idle</text>"#
    );
    axis(&mut text, length, bottom);
    for (number, entry) in (0..).zip(&entries) {
        plot(&mut text, entry, &scale, (TOP + STEP * number) as f64 + UP + 8.0, length);
    }
    legend(&mut text, bottom + 46);
    for (number, note) in (0..).zip(&notes) {
        line!(
            text,
            r#"<text class="s" x="{LEFT}" y="{}">{}</text>"#,
            bottom + 66 + 14 * number,
            escape(note)
        );
    }
    text + "</svg>\n"
}

fn title(snapshot: &Snapshot) -> String {
    let window = &snapshot.window;
    let files = match &snapshot.source.files[..] {
        files if snapshot.source.kind == SourceKind::Replay => files.join(", "),
        _ => snapshot.source.kind.to_string(),
    };
    format!(
        "Power states of {files}: {} from {} s on",
        number_format::duration_ns(window.length_ns()),
        seconds(window.begin_ns)
    )
}

fn axis(text: &mut String, length: u64, bottom: u64) {
    for ns in ticks(length, 10) {
        let x = x(ns, length);
        line!(text, r#"<path class="grid" d="M{x:.1} {TOP}V{bottom}"/>"#);
        line!(
            text,
            r#"<text x="{x:.1}" y="{}" text-anchor="middle">{}</text>"#,
            bottom + 14,
            milliseconds(ns)
        );
    }
    let middle = LEFT + PLOT / 2;
    line!(text, r#"<text x="{middle}" y="{}" text-anchor="middle">time, ms</text>"#, bottom + 29);
}

/// One timeline, whose zero line is at `zero`.
fn plot(text: &mut String, entry: &Entry<'_>, scale: &Scale, zero: f64, length: u64) {
    let (scope, name) = match &entry.unit {
        CpuOrCluster::Cluster(name) => ("cluster", name.clone()),
        CpuOrCluster::Cpu(cpu) => ("cpu", cpu.to_string()),
    };
    line!(text, r#"<g data-scope="{scope}" data-name="{}">"#, escape(&name));
    let indent = if scope == "cpu" { 24 } else { 12 };
    line!(
        text,
        r#"<text class="n" x="{indent}" y="{:.1}">{}</text>"#,
        zero + 4.0,
        escape(&shortened(&entry.name()))
    );
    labels(text, entry, scale, zero);
    for piece in entry.timeline.pieces(PLOT as usize) {
        let mut from = piece.begin - entry.timeline.begin();
        for (state, ns) in piece.parts {
            let (y, height) = scale.place(state, zero);
            let left = x(from, length);
            let wide = x(from + ns, length) - left;
            let (class, detail) = match state {
                CpuState::Running(Some(khz)) => ("running", format!(r#" data-khz="{khz}""#)),
                CpuState::Running(None) => ("running-unknown", String::new()),
                CpuState::Idle(state) => ("idle", format!(r#" data-state="{state}""#)),
                CpuState::IdleUnknown => ("idle_unknown", String::new()),
                CpuState::Offline => ("offline", String::new()),
                CpuState::Unknown => ("unknown", String::new()),
            };
            line!(
                text,
                r#"<rect class="{class}" x="{left:.4}" y="{y:.1}" width="{wide:.4}" height="{height:.1}"{detail} data-ns="{ns}"><title>{}, {}</title></rect>"#,
                escape(&entry.cpu_state_name(state)),
                number_format::duration_ns(ns),
            );
            from += ns;
        }
    }
    line!(text, r#"<path class="zero" d="M{LEFT} {zero:.1}H{}"/>"#, LEFT + PLOT);
    line!(text, "</g>");
}

/// The vertical axis of a timeline: its frequencies and its idle states, as far as there is room.
fn labels(text: &mut String, entry: &Entry<'_>, scale: &Scale, zero: f64) {
    let mut used: Vec<f64> = vec![zero];
    let mut totals = entry.timeline.totals();
    // From the fastest and the deepest on: where there is no room for all, the ends of the axis are told.
    totals.sort_by_key(|(state, _)| std::cmp::Reverse(*state));
    for (state, _) in totals {
        let (y, height) = scale.place(state, zero);
        let at = match state {
            CpuState::Running(Some(_)) => y,
            CpuState::Idle(_) => y + height,
            _ => continue,
        };
        if used.iter().all(|other| (other - at).abs() >= LABELS) {
            used.push(at);
            line!(
                text,
                r#"<text class="s" x="{}" y="{:.1}" text-anchor="end">{}</text>"#,
                LEFT - 6,
                at + 3.0,
                escape(&shortened(&entry.cpu_state_name(state)))
            );
        }
    }
}

impl Scale {
    /// Where something is drawn from, and how high.
    fn place(&self, state: CpuState, zero: f64) -> (f64, f64) {
        let depth = |state: u32| DOWN * f64::from(state + 1) / f64::from(self.states);
        match state {
            CpuState::Running(khz) => {
                let height = UP * khz.map_or(1.0, |khz| f64::from(khz) / f64::from(self.khz));
                (zero - height.max(1.0), height.max(1.0))
            }
            CpuState::Idle(state) => (zero, depth(state)),
            CpuState::IdleUnknown => (zero, DOWN),
            CpuState::Offline => (zero - 3.0, 6.0),
            CpuState::Unknown => (zero - UP, UP + DOWN),
        }
    }
}

fn legend(text: &mut String, y: u64) {
    let entries = [
        ("running", "running"),
        ("running-unknown", "running, no frequency known"),
        ("idle", "idle"),
        ("idle_unknown", "idle, depth unknown"),
        ("offline", "offline"),
        ("unknown", "unknown"),
    ];
    for (number, (class, word)) in (0..).zip(entries) {
        let x = LEFT + 168 * number;
        line!(text, r##"<path class="{class}" d="M{x} {y}h12v10h-12z" stroke="#555"/>"##);
        line!(text, r#"<text class="s" x="{}" y="{}">{word}</text>"#, x + 17, y + 9);
    }
}

/// Where a time (ns, from the begin of the window) is.
fn x(ns: u64, length: u64) -> f64 {
    LEFT as f64 + ns as f64 / length.max(1) as f64 * PLOT as f64
}

/// As much of a name as there is room for.
fn shortened(name: &str) -> String {
    crate::report::power::fit(name, 18).trim_end().into()
}
