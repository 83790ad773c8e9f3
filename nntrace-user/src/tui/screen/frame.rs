//! The lines around every view: header, health, tabs, end and footer.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::report::number_format;
use crate::report::snapshot::TableUse;
use crate::tui::Health;
use crate::tui::actions::Action;
use crate::tui::drawing::text::{left, put, right, width};
use crate::tui::drawing::theme::Theme;
use crate::tui::keys::BINDINGS;
use crate::tui::sample::Sample;
use crate::tui::state::State;
use crate::tui::view_list::View;

/// Interval that is not worth a word.
const USUAL_INTERVAL: Duration = Duration::from_secs(1);

fn interval_text(interval: Duration) -> String {
    match (interval.as_secs(), interval.subsec_millis()) {
        (seconds, 0) => format!("{seconds} s"),
        _ => format!("{} ms", interval.as_millis()),
    }
}

/// Tool, target, interval, time, pause.
pub(crate) fn header(state: &State, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let Some(sample) = &state.shown else {
        put(buffer, area, 0, &Line::styled(" nntrace-bpf", Theme::heading()));
        return;
    };
    let tool = &sample.snapshot.tool;
    let name = format!(" {} {}  ", tool.name, tool.version);
    let paused = if state.paused { " PAUSED " } else { "" };
    let seconds = sample.health.elapsed.as_secs();
    let elapsed = format!("  {}:{:02}:{:02} ", seconds / 3600, seconds / 60 % 60, seconds % 60);
    let recorded = sample.health.recorded.as_ref().map_or_else(String::new, |size| format!("  REC {size}"));
    let interval = sample.health.interval.filter(|interval| *interval != USUAL_INTERVAL);
    let interval =
        interval.map_or_else(String::new, |interval| format!("  every {}", interval_text(interval)));
    let taken = [&name, &interval, &elapsed, &recorded, paused].map(width).iter().sum();
    let line = Line::from(vec![
        Span::styled(name, Theme::heading()),
        Span::raw(left(&sample.health.target, usize::from(area.width).saturating_sub(taken))),
        Span::styled(paused, theme.alert()),
        Span::styled(recorded, theme.alert()),
        Span::raw(interval),
        Span::raw(elapsed),
    ]);
    put(buffer, area, 0, &line);
}

/// Cost and losses of measuring, and the use of the fullest table. Parts that do not fit are left out, never cut: the probes, then the
/// costs of events (and the probes return if they fit), then parts from the end.
pub(crate) fn health(state: &State, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let Some(Sample { health, .. }) = &state.shown else {
        return;
    };
    let lost = if health.records_lost > 0 {
        Span::styled(format!(" LOST {} records! ", number_format::count(health.records_lost)), theme.alert())
    } else {
        Span::raw(" lost 0")
    };
    let turned_away: u64 = health.tables.iter().map(|table| table.turned_away).sum();
    let full = if turned_away > 0 {
        Span::styled(
            format!(" FULL tables, {} turned away! ", number_format::count(turned_away)),
            theme.alert(),
        )
    } else {
        Span::raw("")
    };
    let mut room = usize::from(area.width).saturating_sub(lost.width() + full.width());
    let whole = |parts: &[String]| parts.iter().map(|part| width(part)).sum::<usize>();
    let mut parts = health_parts(health, true);
    if whole(&parts) > room {
        parts.pop();
    }
    if whole(&parts) > room {
        parts = health_parts(health, false);
    }
    let mut line = Line::from(vec![lost, full]);
    for part in parts {
        let Some(left) = room.checked_sub(width(&part)) else {
            break;
        };
        room = left;
        line.push_span(Span::raw(part));
    }
    put(buffer, area, 0, &line);
}

/// The parts of the health line after the losses, the probes last.
fn health_parts(health: &Health, costs: bool) -> Vec<String> {
    let rate = |name, per_second: f64, cost| {
        // Negative and NaN become 0.
        #[allow(clippy::cast_sign_loss, reason = "`as` saturates")]
        let per_second = number_format::count(per_second.round() as u64);
        let cost = if costs {
            format!(" ({})", number_format::or_unknown(cost, number_format::duration_ns))
        } else {
            String::new()
        };
        format!("  {name} {per_second}/s{cost}")
    };
    let fullest = health.tables.iter().map(TableUse::percent).reduce(f64::max);
    vec![
        format!("  cpu {:.1}%", health.collector_cpu_percent),
        rate("marks", health.marks_per_second, health.ns_per_mark),
        rate("power", health.power_events_per_second, health.ns_per_power_event),
        fullest.map_or_else(String::new, |percent| format!("  tables {percent:.0}%")),
        match health.probe_share {
            Some(share) => format!("  probes {}: {:.0}% of the time", health.probes, share * 100.0),
            None => format!("  probes {}", health.probes),
        },
    ]
}

/// Columns for the number of findings, after the views.
const FINDINGS: usize = 15;

/// How much room the names of views take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tabs {
    /// Blanks around each.
    Roomy,
    /// A blank between two.
    Usual,
    /// No blank after the numbers of others either, and no names of those that have nothing to show.
    Dense,
    /// Numbers of others only.
    Numbers,
}

/// The views in a line.
fn tab_line(state: &State, position: &str, tabs: Tabs) -> Line<'static> {
    let mut line = Line::default();
    for (number, view) in (1..).zip(View::ALL) {
        let name = view.name();
        let has_lines = state.views.get(view).position().1 > 0;
        line.push_span(match (view == state.view, tabs) {
            (true, _) => Span::styled(format!("[{number} {name}{position}]"), Theme::selected()),
            (false, Tabs::Roomy) => Span::raw(format!(" {number} {name} ")),
            (false, Tabs::Usual) => Span::raw(format!("{number} {name}")),
            (false, Tabs::Dense) if has_lines => Span::raw(format!("{number}{name}")),
            (false, Tabs::Dense | Tabs::Numbers) => Span::raw(number.to_string()),
        });
        line.push_span(Span::raw(" "));
    }
    line
}

/// The views, and how much there is to read in the diagnostics.
pub(crate) fn tabs(state: &State, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let (index, count) = state.position();
    let position = if count > 0 { format!(" {}/{count}", index + 1) } else { String::new() };
    let room = usize::from(area.width).saturating_sub(FINDINGS);
    let forms = [
        (Tabs::Roomy, &*position),
        (Tabs::Usual, &position),
        (Tabs::Dense, &position),
        (Tabs::Dense, ""),
        (Tabs::Numbers, &position),
    ];
    let mut lines = forms.map(|(tabs, position)| tab_line(state, position, tabs)).into_iter();
    let mut line = lines.next().unwrap_or_default();
    for shorter in lines {
        if line.width() <= room {
            break;
        }
        line = shorter;
    }
    if let Some(sample) = &state.shown {
        let plural = |count: u64, one: &str, more: &str| {
            format!("{} {}", number_format::count(count), if count == 1 { one } else { more })
        };
        let notes = sample.snapshot.notes.len() as u64;
        let diagnostics: u64 = sample.snapshot.diagnostics.iter().map(|row| row.count).sum();
        let text = format!(
            "{}, {}: ",
            plural(notes, "note", "notes"),
            plural(diagnostics, "diagnostic", "diagnostics")
        );
        let room = usize::from(area.width).saturating_sub(line.width() + 2);
        let short = || format!("{}: ", plural(notes + diagnostics, "finding", "findings"));
        let text = [text, short()].into_iter().find(|text| width(text) <= room).unwrap_or_default();
        line.push_span(Span::raw(right(&text, room)));
        line.push_span(Span::styled("d ", theme.key()));
    }
    put(buffer, area, 0, &line);
}

/// How the run ended.
pub(crate) fn ended(state: &State, theme: Theme, area: Rect, buffer: &mut Buffer) {
    if let Some(text) = state.ended() {
        put(
            buffer,
            area,
            0,
            &Line::styled(left(&format!(" {text}"), usize::from(area.width)), theme.alert()),
        );
    }
}

/// Hints from the key table, as many as fit; where there is a message, that.
pub(crate) fn footer(state: &State, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let is_open = state.view == View::Functions && state.views.functions.is_open;
    let word = if state.view == View::Functions && state.views.functions.is_typing {
        Some(" letters are part of the filter; Backspace takes the last one back".to_owned())
    } else {
        state.message.as_ref().map(|message| format!(" {message}"))
    };
    if let Some(text) = word {
        put(buffer, area, 0, &Line::styled(left(&text, usize::from(area.width)), Theme::heading()));
        return;
    }
    let mut line = Line::default();
    for binding in BINDINGS.iter().filter(|binding| state.can(binding.action)) {
        let Some(hint) = binding.hint else { continue };
        let hint = if is_open && binding.action == Action::Open { "close" } else { hint };
        let key = binding.label.split(' ').next().unwrap_or(binding.label);
        if line.width() + width(key) + width(hint) + 3 > usize::from(area.width) {
            break;
        }
        line.push_span(Span::raw(" "));
        line.push_span(Span::styled(key, theme.key()));
        line.push_span(Span::raw(format!(" {hint} ")));
    }
    put(buffer, area, 0, &line);
}
