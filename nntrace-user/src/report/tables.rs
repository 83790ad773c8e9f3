//! Plain tables: what stdout shows when it is no terminal.

use std::fmt::Write as _;

use super::{
    human::{self, or_unknown},
    snapshot::{CpuRow, FrequencyRow, IdleRow, PhaseRow, Snapshot},
};

/// Writing to a string cannot fail.
macro_rules! line {
    ($text:expr, $($format:tt)*) => {{
        let _ = writeln!($text, $($format)*);
    }};
}

mod energy;

/// The whole snapshot as text, for people.
#[must_use]
pub fn render(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    phases(&mut text, snapshot);
    text.push_str(&details(snapshot));
    cpus(&mut text, snapshot);
    energy::table(&mut text, snapshot.energy.as_ref());
    health(&mut text, snapshot);
    text
}

fn phases(text: &mut String, snapshot: &Snapshot) {
    if snapshot.phases.is_empty() {
        line!(text, "no marked section has ended yet");
        return;
    }
    let mut pid = None;
    for row in &snapshot.phases {
        if pid != Some(row.pid) {
            pid = Some(row.pid);
            line!(text, "{} ({}) {}", or_dash(&row.comm), row.pid, row.role);
            line!(
                text,
                "  {:<12}{:<15}{:>8}{:>9}{:>10}{:>9}{:>9}{:>9}",
                "layer",
                "phase",
                "count",
                "total",
                "exclusive",
                "p50",
                "p99",
                "max"
            );
        }
        phase(text, row);
    }
}

/// What the time of each layer and phase of a thread is made of; nothing unless the snapshot has it.
#[must_use]
pub fn details(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    let mut thread = None;
    for row in &snapshot.details {
        if thread != Some((row.pid, row.tid)) {
            thread = Some((row.pid, row.tid));
            line!(text, "thread {} of process {}", row.tid, row.pid);
            line!(
                text,
                "  {:<12}{:<15}{:>8}{:>9}{:>10}  function",
                "layer",
                "phase",
                "count",
                "total",
                "exclusive"
            );
        }
        line!(
            text,
            "  {:<12}{:<15}{:>8}{:>9}{:>10}  {}{}",
            human::layer_name(&row.layer),
            human::phase_name(&row.phase),
            human::count(row.count),
            human::duration_ns(row.total_ns),
            human::duration_ns(row.exclusive_ns),
            row.name,
            if row.adds { "" } else { " (detail: in no total)" },
        );
    }
    text
}

fn phase(text: &mut String, row: &PhaseRow) {
    let time = |ns: Option<u64>| or_unknown(ns, human::duration_ns);
    line!(
        text,
        "  {:<12}{:<15}{:>8}{:>9}{:>10}{:>9}{:>9}{:>9}",
        human::layer_name(&row.layer),
        human::phase_name(&row.phase),
        human::count(row.count),
        human::duration_ns(row.total_ns),
        human::duration_ns(row.exclusive_ns),
        time(row.p50_ns),
        time(row.p99_ns),
        time(row.max_ns),
    );
}

fn cpus(text: &mut String, snapshot: &Snapshot) {
    let window = snapshot.window.length_ns();
    line!(text, "CPUs, in percent of {}", human::duration_ns(window));
    for row in &snapshot.cpus {
        let parts = cpu_parts(row, window);
        line!(text, "  cpu{:<4}{:<10}{}", row.cpu, row.cluster, parts.join("  "));
    }
    for row in &snapshot.clusters {
        let mut parts = Vec::new();
        running(&mut parts, "active", &row.active, window);
        idle(&mut parts, &row.idle, window);
        rest(&mut parts, [row.idle_unknown_ns, row.offline_ns, row.unknown_ns], window);
        line!(text, "  cluster {:<9}{}", row.cluster, parts.join("  "));
    }
}

fn cpu_parts(row: &CpuRow, window: u64) -> Vec<String> {
    let mut parts = Vec::new();
    running(&mut parts, "running", &row.running, window);
    idle(&mut parts, &row.idle, window);
    rest(&mut parts, [row.idle_unknown_ns, row.offline_ns, row.unknown_ns], window);
    parts
}

fn running(parts: &mut Vec<String>, word: &str, rows: &[FrequencyRow], window: u64) {
    for row in rows {
        let at = row.khz.map_or_else(|| "unknown frequency".to_owned(), human::khz);
        parts.push(format!("{word} at {at} {}", human::percent(row.ns, window)));
    }
}

fn idle(parts: &mut Vec<String>, rows: &[IdleRow], window: u64) {
    for row in rows {
        let (share, hits) = (human::percent(row.ns, window), human::count(row.hits));
        parts.push(format!("{} {share} ({hits} times)", row.name));
    }
}

/// Idle in an unknown state, offline, unknown: shown only where there is any.
fn rest(parts: &mut Vec<String>, ns: [u64; 3], window: u64) {
    for (word, ns) in ["idle, depth unknown", "offline", "unknown"].into_iter().zip(ns) {
        if ns > 0 {
            parts.push(format!("{word} {}", human::percent(ns, window)));
        }
    }
}

fn health(text: &mut String, snapshot: &Snapshot) {
    let (overhead, loss) = (&snapshot.overhead, &snapshot.loss);
    let cost = |ns: Option<u64>| or_unknown(ns, human::duration_ns);
    line!(
        text,
        "{} marks ({} each)  {} power events ({} each)  {} of {} records lost  collector {} CPU",
        human::count(overhead.marks),
        cost(overhead.ns_per_mark),
        human::count(overhead.power_events),
        cost(overhead.ns_per_power_event),
        human::count(loss.records_dropped),
        human::count(loss.records_produced),
        human::duration_ns(overhead.collector_cpu_ns),
    );
    for diagnostic in &snapshot.diagnostics {
        line!(
            text,
            "{} {}, first in thread {}: {}",
            human::count(diagnostic.count),
            diagnostic.kind,
            diagnostic.tid,
            or_dash(diagnostic.example.trim_end()),
        );
    }
    notes(text, snapshot);
}

/// What a table of power states does not show by itself: losses, and what could not be measured.
#[must_use]
pub fn losses_and_notes(snapshot: &Snapshot) -> String {
    let (mut text, loss) = (String::new(), &snapshot.loss);
    if loss.records_dropped > 0 {
        let (dropped, produced) = (human::count(loss.records_dropped), human::count(loss.records_produced));
        line!(text, "{dropped} of {produced} records lost");
    }
    notes(&mut text, snapshot);
    text
}

fn notes(text: &mut String, snapshot: &Snapshot) {
    for note in &snapshot.notes {
        line!(text, "note: {note}");
    }
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { human::UNKNOWN } else { text }
}
