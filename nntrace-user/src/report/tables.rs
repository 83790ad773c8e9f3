//! Plain tables: what stdout shows when it is no terminal.

use super::{
    device_usage,
    incomplete_figures::Figures,
    number_format::{self, or_unknown},
    probe_share, rails,
    snapshot::{
        CpuRow, FrequencyRow, FunctionRow, IdleRow, Loss, PhaseRow, Snapshot, TableUse, VerifiedFigure,
    },
    terminal_text::{Text, line},
    top_functions::TopFunctions,
};

mod causality;
mod device_clocks;
mod devices;
mod energy;
mod iterations;
mod language_models;
mod perf_counters;
mod threads;
mod unfinished;
mod usage;

pub use iterations::iterations;

/// The whole snapshot as text, for people.
#[must_use]
pub fn render(snapshot: &Snapshot) -> Text {
    let mut text = Text::new();
    phases(&mut text, snapshot);
    language_models::table(&mut text, &snapshot.language_models, Figures::under(snapshot, "language_models"));
    let window_ns = snapshot.window.length_ns();
    devices::table(&mut text, &snapshot.devices, window_ns, Figures::under(snapshot, "devices"));
    top_functions(&mut text, snapshot);
    text += &details(snapshot);
    unfinished::table(&mut text, &snapshot.unfinished);
    causality::summary(&mut text, snapshot);
    if let Some(split) = &snapshot.hand_over_split {
        text += &split.text();
    }
    if let Some(overhead) = &snapshot.dispatch_overhead {
        text += &overhead.text();
    }
    threads::table(&mut text, &snapshot.threads, Figures::under(snapshot, "threads"));
    let unit = snapshot.energy.as_ref().map(|energy| energy.unit);
    usage::table(&mut text, snapshot.usage.as_ref(), unit, Figures::under(snapshot, "usage"));
    perf_counters::table(&mut text, snapshot.perf_counters.as_ref());
    cpus(&mut text, snapshot);
    energy::table(&mut text, snapshot.energy.as_ref(), Figures::under(snapshot, "energy"));
    if let Some(rails) = &snapshot.rails {
        text += &rails::table(rails);
    }
    if let Some(usage) = &snapshot.device_usage {
        text += &device_usage::table(usage);
    }
    device_clocks::table(&mut text, &snapshot.device_clocks, Figures::under(snapshot, "device_clocks"));
    evidence(&mut text, snapshot);
    verify(&mut text, snapshot);
    health(&mut text, snapshot);
    text
}

fn phases(text: &mut Text, snapshot: &Snapshot) {
    if snapshot.phases.is_empty() {
        line!(text, "no marked section has ended yet");
        return;
    }
    let (totals, times) =
        (Figures::under(snapshot, "phases.total_ns"), Figures::under(snapshot, "phases.p50_ns"));
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
        phase(text, row, totals, times);
    }
}

/// Adds the functions that take most time where a layer and phase has several, unless the snapshot has them by thread.
fn top_functions(text: &mut Text, snapshot: &Snapshot) {
    // They come by process, layer and phase.
    let is_of_one_phase = |pair: &[FunctionRow]| {
        let key = |row: &FunctionRow| (row.pid, row.layer, row.phase);
        key(&pair[0]) == key(&pair[1])
    };
    if snapshot.details.is_empty() && snapshot.functions.windows(2).any(is_of_one_phase) {
        let functions = TopFunctions::of(&snapshot.functions);
        functions.table(
            text,
            "functions with the most exclusive time",
            Figures::under(snapshot, "functions"),
        );
    }
}

/// Functions that the time of each layer and phase of a thread is made of; nothing unless the snapshot has them.
#[must_use]
pub fn details(snapshot: &Snapshot) -> Text {
    let (mut text, figures) = (Text::new(), Figures::under(snapshot, "details"));
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
            row.layer.name(),
            row.phase.name(),
            figures.count(row.count),
            figures.time(row.total_ns),
            figures.time(row.exclusive_ns),
            row.name,
            if row.adds { "" } else { " (detail: in no total)" },
        );
    }
    text
}

fn phase(text: &mut Text, row: &PhaseRow, totals: Figures, times: Figures) {
    let time = |ns: Option<u64>| times.known(ns, number_format::duration_ns);
    line!(
        text,
        "  {:<12}{:<15}{:>8}{:>9}{:>10}{:>9}{:>9}{:>9}",
        row.layer.name(),
        row.phase.name(),
        totals.count(row.count),
        totals.time(row.total_ns),
        totals.time(row.exclusive_ns),
        time(row.p50_ns),
        time(row.p99_ns),
        time(row.max_ns),
    );
}

fn cpus(text: &mut Text, snapshot: &Snapshot) {
    let window = snapshot.window.length_ns();
    let (cpus, clusters) = (Figures::under(snapshot, "cpus"), Figures::under(snapshot, "clusters"));
    line!(text, "CPUs, in percent of {}", number_format::duration_ns(window));
    for row in &snapshot.cpus {
        let parts = cpu_parts(row, window, cpus);
        line!(text, "  {:<6} {:<9} {}", format!("cpu{}", row.cpu), row.cluster, parts.join("  "));
    }
    for row in &snapshot.clusters {
        let mut parts = Vec::new();
        running(&mut parts, "active", &row.active, window, clusters);
        idle(&mut parts, &row.idle, window, clusters);
        rest(&mut parts, [row.idle_unknown_ns, row.offline_ns, row.unknown_ns], window, clusters);
        line!(text, "  cluster {:<8} {}", row.cluster, parts.join("  "));
    }
}

fn cpu_parts(row: &CpuRow, window: u64, figures: Figures) -> Vec<String> {
    let mut parts = Vec::new();
    running(&mut parts, "running", &row.running, window, figures);
    idle(&mut parts, &row.idle, window, figures);
    rest(&mut parts, [row.idle_unknown_ns, row.offline_ns, row.unknown_ns], window, figures);
    parts
}

fn running(parts: &mut Vec<String>, word: &str, rows: &[FrequencyRow], window: u64, figures: Figures) {
    for row in rows {
        let at = row.khz.map_or_else(|| "unknown frequency".to_owned(), number_format::khz);
        parts.push(format!("{word} at {at} {}", figures.percent(row.ns, window)));
    }
}

fn idle(parts: &mut Vec<String>, rows: &[IdleRow], window: u64, figures: Figures) {
    for row in rows {
        let (share, hits) = (figures.percent(row.ns, window), figures.plural(row.hits, "time"));
        parts.push(format!("{} {share} ({hits})", row.name));
    }
}

/// Idle in an unknown state, offline, unknown: shown only where there is any.
fn rest(parts: &mut Vec<String>, ns: [u64; 3], window: u64, figures: Figures) {
    for (word, ns) in ["idle, depth unknown", "offline", "unknown"].into_iter().zip(ns) {
        if ns > 0 {
            parts.push(format!("{word} {}", figures.percent(ns, window)));
        }
    }
}

/// Adds the kernel's own counters, where there are any.
fn evidence(text: &mut Text, snapshot: &Snapshot) {
    let Some(evidence) = &snapshot.evidence else { return };
    let mut lines = Vec::new();
    for row in &evidence.cpus {
        let mut parts: Vec<String> = Vec::new();
        for state in &row.psci {
            let (ns, times) =
                (number_format::duration_ns(state.ns), number_format::plural(state.count, "time"));
            parts.push(format!("PSCI {:#010x} {ns} ({times})", state.parameter));
        }
        for (word, count) in [("too deep", row.above), ("too shallow", row.below)] {
            parts.extend(
                count
                    .filter(|&count| count > 0)
                    .map(|count| format!("{} {word}", number_format::count(count))),
            );
        }
        if let (Some(min), Some(max)) = (row.min_khz, row.max_khz) {
            parts.push(format!("limits {} to {}", number_format::khz(min), number_format::khz(max)));
        }
        if !parts.is_empty() {
            lines.push(format!("  {:<6} {}", format!("cpu{}", row.cpu), parts.join("  ")));
        }
    }
    for row in &evidence.power_domains {
        let (ns, usage) = (number_format::duration_ns(row.ns), number_format::plural(row.usage, "time"));
        let rejected = number_format::count(row.rejected);
        lines.push(format!("  domain {} {} {ns} ({usage}, {rejected} refused)", row.domain, row.state));
    }
    if let Some(row) = evidence.suspends.as_ref().filter(|row| row.count > 0) {
        lines.push(format!(
            "  suspended {} ({})",
            number_format::duration_ns(row.ns),
            number_format::plural(row.count, "time")
        ));
    }
    if !lines.is_empty() {
        line!(text, "also reported by the kernel");
        for one in lines {
            line!(text, "{one}");
        }
    }
}

/// Adds the comparison with the kernel's own totals: how many rows pass, and each that does not.
fn verify(text: &mut Text, snapshot: &Snapshot) {
    let Some(verify) = &snapshot.verify else { return };
    let passed = verify.rows.iter().filter(|row| row.passes).count();
    let verdict = if verify.passes { "passed" } else { "FAILED" };
    line!(text, "verify {verdict}: {passed} of {} figures as the kernel has them", verify.rows.len());
    for row in verify.rows.iter().filter(|row| !row.passes) {
        let value = |value: u64| {
            if row.what.is_time() { number_format::duration_ns(value) } else { number_format::count(value) }
        };
        let state = match row.what {
            VerifiedFigure::FrequencyTime => number_format::khz(row.state),
            VerifiedFigure::IdleTime | VerifiedFigure::IdleUsage => format!("state{}", row.state),
        };
        line!(
            text,
            "  {:<6} {state:<10}{:<13}ours {}  kernel {}  {} apart, {} granted ({})",
            format!("cpu{}", row.cpu),
            row.what,
            value(row.ours),
            value(row.kernel),
            value(row.ours.abs_diff(row.kernel)),
            or_unknown(row.tolerance, value),
            row.why,
        );
    }
    for note in &verify.notes {
        line!(text, "  {note}");
    }
}

fn health(text: &mut Text, snapshot: &Snapshot) {
    let (overhead, loss) = (&snapshot.overhead, &snapshot.loss);
    let cost = |ns: Option<u64>| or_unknown(ns, number_format::duration_ns);
    line!(
        text,
        "{} ({} each)  {} ({} each)  {}  collector {} CPU",
        number_format::plural(overhead.marks, "mark"),
        cost(overhead.ns_per_mark),
        number_format::plural(overhead.power_events, "power event"),
        cost(overhead.ns_per_power_event),
        lost(loss),
        number_format::duration_ns(overhead.collector_cpu_ns),
    );
    if let Some(warning) = probe_share::warning(snapshot) {
        line!(text, "{warning}");
    }
    if !overhead.tables.is_empty() {
        let tables: Vec<String> = overhead.tables.iter().map(table_use).collect();
        line!(text, "tables hold {}", tables.join(", "));
    }
    incomplete(text, loss);
    for diagnostic in &snapshot.diagnostics {
        line!(
            text,
            "{} {}, {}: {}",
            number_format::count(diagnostic.count),
            diagnostic.kind.name(),
            diagnostic.place().map_or_else(|| "first".into(), |place| format!("first {place}")),
            or_dash(diagnostic.example.trim_end()),
        );
    }
    notes(text, snapshot);
}

/// `3,000 of 9,380 threads (952 turned away)`.
fn table_use(used: &TableUse) -> String {
    let text = format!(
        "{} of {} {}",
        number_format::count(used.entries),
        number_format::count(used.capacity),
        used.table
    );
    match used.turned_away {
        0 => text,
        count => {
            format!("{text} ({} turned away: --map-memory gives them more room)", number_format::count(count))
        }
    }
}

/// Losses and notes, which a table of power states does not show.
#[must_use]
pub fn losses_and_notes(snapshot: &Snapshot) -> Text {
    let (mut text, loss) = (Text::new(), &snapshot.loss);
    if loss.records_dropped > 0 || loss.records_unreadable > 0 {
        line!(text, "{}", lost(loss));
    }
    for table in snapshot.overhead.tables.iter().filter(|table| table.turned_away > 0) {
        line!(text, "tables hold {}", table_use(table));
    }
    incomplete(&mut text, loss);
    notes(&mut text, snapshot);
    text
}

/// `3 of 100 records lost`, or `at least 3`, and how many could not be read.
fn lost(loss: &Loss) -> String {
    let least = if loss.at_least { "at least " } else { "" };
    let (dropped, produced) =
        (number_format::count(loss.records_dropped), number_format::count(loss.records_produced));
    let unreadable = match loss.records_unreadable {
        0 => String::new(),
        count => format!(", {} unreadable", number_format::count(count)),
    };
    format!("{least}{dropped} of {produced} records lost{unreadable}")
}

fn incomplete(text: &mut Text, loss: &Loss) {
    if !loss.incomplete.is_empty() {
        line!(text, "~ lacks what was lost; all other figures are exact");
    }
}

fn notes(text: &mut Text, snapshot: &Snapshot) {
    for note in &snapshot.notes {
        line!(text, "note: {note}");
    }
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { number_format::UNKNOWN } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_read_is_said_where_there_is_any() {
        let mut loss = Loss { records_produced: 12_345, records_dropped: 3, ..Loss::default() };
        assert_eq!(lost(&loss), "3 of 12,345 records lost");
        loss.records_unreadable = 2;
        assert_eq!(lost(&loss), "3 of 12,345 records lost, 2 unreadable");
    }
}
