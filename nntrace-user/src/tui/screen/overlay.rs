//! Overlays: the keys, and notes on the quality of the numbers.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Widget};

use crate::model::run_facts::ProbedEngine;
use crate::report::number_format::{self, COUNT_WIDTH};
use crate::report::snapshot::TableUse;
use crate::tui::Health;
use crate::tui::actions::Overlay;
use crate::tui::drawing::text::{left, put, right, wrap};
use crate::tui::drawing::theme::Theme;
use crate::tui::keys::{BINDINGS, Binding};
use crate::tui::sample::Sample;
use crate::tui::state::State;

/// Greatest width of a box: longer lines are hard to read.
const WIDEST: u16 = 110;
/// Width from which on the keys stand in two columns.
const TWO_COLUMNS: usize = 72;

/// Meanings of the words in the views.
const GLOSSARY: [(&str, &str); 8] = [
    ("total", "time in that layer and phase, by the mark contract"),
    ("excl", "the same without what nested marked sections took"),
    ("p50 p99", "half, 99% of the frames were no longer than this"),
    ("share", "of all exclusive time; of a thread, of its lifetime"),
    ("now", "the same within the last interval"),
    ("marks", "per second, and in brackets what one costs in the kernel"),
    ("cpu", "what this program takes, in percent of one CPU"),
    ("hits", "how often a state was entered"),
];

/// Draws the overlay that is open, if one is, in the middle of `area`.
pub(crate) fn draw(state: &mut State, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let Some(overlay) = state.overlay else { return };
    let outer_width = area.width.min(WIDEST).saturating_sub(2);
    let columns = usize::from(outer_width).saturating_sub(4);
    let (title, lines) = match (overlay, &state.shown) {
        (Overlay::Help, _) => ("Help", help(theme, columns)),
        (Overlay::Diagnostics, Some(sample)) => ("Diagnostics", diagnostics(sample, theme, columns)),
        (Overlay::Diagnostics, None) => ("Diagnostics", vec![Line::from("nothing yet")]),
    };
    let height = (lines.len() as u16).saturating_add(2).min(area.height);
    let outer = Rect {
        x: area.x + (area.width - outer_width) / 2,
        y: area.y + (area.height - height).div_ceil(2),
        width: outer_width,
        height,
    };
    let page = usize::from(height).saturating_sub(2);
    let furthest = lines.len().saturating_sub(page);
    state.overlay_page = (page, furthest);
    state.overlay_scroll = state.overlay_scroll.min(furthest);
    let first = state.overlay_scroll;
    let mut block = Block::bordered().title(format!(" {title} ")).title_bottom(" Esc closes ");
    if furthest > 0 {
        let seen = format!(" {}-{} of {}, j k scroll ", first + 1, first + page, lines.len());
        block = block.title_bottom(Line::from(seen).right_aligned());
    }
    Clear.render(outer, buffer);
    let inner = block.inner(outer);
    block.render(outer, buffer);
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    for (row, line) in lines.iter().skip(first).take(page).enumerate() {
        put(buffer, inner, row, line);
    }
}

fn help(theme: Theme, columns: usize) -> Vec<Line<'static>> {
    let across = if columns >= TWO_COLUMNS { 2 } else { 1 };
    let width = columns / across;
    let listed: Vec<&Binding> = BINDINGS.iter().filter(|binding| !binding.help.is_empty()).collect();
    let rows = listed.len().div_ceil(across);
    let entry = |binding: &&Binding| {
        let label = left(binding.label, 10);
        [Span::styled(label, theme.key()), Span::raw(left(binding.help, width.saturating_sub(10)))]
    };
    let mut lines: Vec<Line<'static>> =
        (0..rows).map(|row| listed.iter().skip(row).step_by(rows).flat_map(entry).collect()).collect();
    lines.push(Line::default());
    for (word, meaning) in GLOSSARY {
        for (row, text) in wrap(meaning, columns.saturating_sub(10)).into_iter().enumerate() {
            let word = Span::styled(left(if row == 0 { word } else { "" }, 10), Theme::heading());
            lines.push(Line::from(vec![word, Span::raw(text)]));
        }
    }
    lines
}

fn diagnostics(sample: &Sample, theme: Theme, columns: usize) -> Vec<Line<'static>> {
    let Sample { snapshot, health, .. } = sample;
    let mut lines = Vec::new();
    let heading = |lines: &mut Vec<Line<'static>>, text: &'static str| {
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.push(Line::styled(text, Theme::heading()));
    };
    heading(&mut lines, "Notes");
    for note in &snapshot.notes {
        for (index, text) in wrap(note, columns.saturating_sub(2)).into_iter().enumerate() {
            lines.push(Line::from(format!("{} {text}", if index == 0 { '-' } else { ' ' })));
        }
    }
    if snapshot.notes.is_empty() {
        lines.push(Line::from("none"));
    }
    heading(&mut lines, "Records");
    let loss = &snapshot.loss;
    let mut text = format!(
        "produced {}, drained {}, dropped {}{}, late {}",
        number_format::count(loss.records_produced),
        number_format::count(loss.records_drained),
        if loss.at_least { "at least " } else { "" },
        number_format::count(loss.records_dropped),
        number_format::count(loss.records_late),
    );
    if loss.records_unreadable > 0 {
        text.push_str(", unreadable ");
        text.push_str(&number_format::count(loss.records_unreadable));
    }
    let lossy = loss.records_dropped > 0 || loss.records_late > 0 || loss.records_unreadable > 0;
    lines.push(if lossy { Line::styled(text, theme.alert()) } else { Line::from(text) });
    if !loss.dropped_by_cpu.is_empty() {
        let cpus = loss
            .dropped_by_cpu
            .iter()
            .map(|(cpu, count)| format!("cpu{cpu}\u{a0}{}", number_format::count(*count)));
        let text = format!("dropped by {}", cpus.collect::<Vec<_>>().join(", "));
        lines.extend(wrap(&text, columns).into_iter().map(Line::from));
    }
    if !loss.incomplete.is_empty() {
        let text = "incomplete: what is made of single records, such as percentiles, functions and clusters; \
                    the JSON names all (loss.incomplete)";
        lines.extend(wrap(text, columns).into_iter().map(Line::from));
    }
    heading(&mut lines, "Diagnostics");
    for row in &snapshot.diagnostics {
        let text = format!(
            "{} {} first{}: {}",
            right(&number_format::count(row.count), COUNT_WIDTH),
            left(row.kind.name(), 20),
            row.place().map(|place| format!(" {place}")).unwrap_or_default(),
            row.example
        );
        lines.push(Line::from(left(&text, columns)));
    }
    if snapshot.diagnostics.is_empty() {
        lines.push(Line::from("none"));
    }
    heading(&mut lines, "Cost");
    lines.extend(wrap(&cost(health), columns).into_iter().map(Line::from));
    if !health.tables.is_empty() {
        heading(&mut lines, "Tables of the kernel programs");
        lines.extend(health.tables.iter().map(|table| of_table(table, theme)));
    }
    if !snapshot.source.engines.is_empty() {
        heading(&mut lines, "Engines");
        for engine in &snapshot.source.engines {
            lines.extend(wrap(&of_engine(engine), columns).into_iter().map(Line::from));
        }
    }
    lines
}

/// Cost of profiling, in one line.
fn cost(health: &Health) -> String {
    let each = |ns| number_format::or_unknown(ns, number_format::duration_ns);
    let share = health
        .probe_share
        .map_or_else(String::new, |share| format!(", {:.0}% of the time that they measure", share * 100.0));
    format!(
        "the profiler {:.1}% of a CPU; in the kernel {} for each mark, {} for each power event; probes {}{share}",
        health.collector_cpu_percent,
        each(health.ns_per_mark),
        each(health.ns_per_power_event),
        health.probes,
    )
}

fn of_table(table: &TableUse, theme: Theme) -> Line<'static> {
    let used = format!(
        "{} {} of {}",
        left(&table.table, 10),
        right(&number_format::count(table.entries), COUNT_WIDTH + 2),
        number_format::count(table.capacity)
    );
    match table.turned_away {
        0 => Line::from(used),
        more => {
            let text = format!("{used}, without room for {} more", number_format::count(more));
            Line::styled(text, theme.alert())
        }
    }
}

fn of_engine(engine: &ProbedEngine) -> String {
    let version = engine.version.as_ref().map_or_else(String::new, |version| format!(" {version}"));
    format!(
        "{}{version}: {} probed, {} hooked, in {}",
        engine.engine,
        number_format::plural(engine.functions as u64, "function"),
        engine.hooked,
        engine.file
    )
}
