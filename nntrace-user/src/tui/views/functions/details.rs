//! A function in full: its distribution, its slowest calls, its threads, and whether it ran or waited.

use std::cmp::Reverse;

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;

use crate::report::incomplete_figures::Figures;
use crate::report::number_format::{self, COUNT_WIDTH, DURATION_WIDTH};
use crate::report::snapshot::{FunctionDetails, FunctionRow, SiteRow, SlowCallRow, Snapshot};
use crate::tui::drawing::chart;
use crate::tui::drawing::names::{no_context_switches, process_name, thread_name};
use crate::tui::drawing::states::StateTimes;
use crate::tui::drawing::text::{below_first, left, list, put, right, rule, say, wrap};
use crate::tui::drawing::theme::Theme;

/// Height from which on there is room for the distribution.
const CHART: u16 = 16;
/// Height of the distribution at most: more adds no detail.
const TALLEST: u16 = 14;
/// Lines of the lists: a heading, and the slowest calls.
const LISTS: u16 = 6;

/// Draws the function. `added_ns` is its exclusive time of the last interval.
pub(crate) fn draw(
    row: &FunctionRow,
    added_ns: Option<u64>,
    snapshot: &Snapshot,
    theme: Theme,
    area: Rect,
    buffer: &mut Buffer,
) {
    let columns = usize::from(area.width);
    let mut lines = summary(row, added_ns, snapshot, columns.saturating_sub(2));
    lines.push(states(row, snapshot));
    let title = format!("{} {} in {}", row.layer.name(), row.phase.name(), process_name(snapshot, row.pid));
    let taken = LISTS + lines.len() as u16 + 1;
    let chart = if area.height < CHART { 0 } else { area.height.saturating_sub(taken).min(TALLEST) };
    let [text_area, chart_area, lists_area] = Layout::vertical([
        Constraint::Length(lines.len() as u16 + 1),
        Constraint::Length(chart),
        Constraint::Fill(1),
    ])
    .areas(area);
    put(buffer, text_area, 0, &rule(&title, "Esc: back to the list", columns));
    for (screen, line) in lines.into_iter().enumerate() {
        put(
            buffer,
            text_area,
            screen + 1,
            &Line::from(format!(" {}", left(&line, columns.saturating_sub(1)))),
        );
    }
    if row.count == 0 {
        say(buffer, lists_area, "its outermost call has not ended");
        return;
    }
    let Some(details) = row.details.as_deref() else { return };
    chart::draw(&details.times, theme, chart_area, buffer);
    let [slowest_area, threads_area] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(lists_area);
    slowest(row, details, snapshot, slowest_area, buffer);
    threads(row, details, snapshot, threads_area, buffer);
}

/// The name and the figures of a function, in lines of that width.
pub(super) fn summary(
    row: &FunctionRow,
    added_ns: Option<u64>,
    snapshot: &Snapshot,
    columns: usize,
) -> Vec<String> {
    let mut lines = wrap(&row.name, columns);
    if lines.len() > 2 {
        lines.truncate(1);
        lines.push("…".to_owned());
    }
    let figures = Figures::under(snapshot, "functions");
    let time = |ns| figures.known(row.of_sections(ns), number_format::duration_ns);
    let all: u64 = snapshot.functions.iter().map(|row| row.exclusive_ns).sum();
    let share = number_format::percent(row.exclusive_ns, all);
    let added =
        added_ns.map_or_else(String::new, |added| format!(", {} in the last interval", figures.time(added)));
    let partial = if row.is_partial { "; earlier ones may be in (others)" } else { "" };
    lines.push(format!(
        "{}{partial}: p50 {}  p99 {}  max {}",
        figures.text(&number_format::calls(row.count)),
        time(row.p50_ns),
        time(row.p99_ns),
        time(row.max_ns)
    ));
    let (total, exclusive) = (figures.time(row.total_ns), figures.time(row.exclusive_ns));
    lines.push(format!("total {total}, exclusive {exclusive} ({share} of all){added}"));
    lines
}

/// Whether the threads ran or waited in it.
fn states(row: &FunctionRow, snapshot: &Snapshot) -> String {
    let Some(usage) = &snapshot.usage else {
        return no_context_switches(snapshot).to_owned();
    };
    let is_of_function = |SiteRow { pid, layer, phase, name }: &SiteRow| {
        (*pid, *layer, *phase, name) == (row.pid, row.layer, row.phase, &row.name)
    };
    let known = usage.functions.iter().find(|of| is_of_function(&of.site)).map(|of| &of.usage);
    let Some(usage) = known else {
        return "thread states in this function: unknown".to_owned();
    };
    let parts = StateTimes::from(usage).shares();
    if parts.is_empty() { "no exclusive time".to_owned() } else { format!("exclusive time: {parts}") }
}

/// The slowest calls, with when they began.
fn slowest(
    row: &FunctionRow,
    details: &FunctionDetails,
    snapshot: &Snapshot,
    area: Rect,
    buffer: &mut Buffer,
) {
    let title = Figures::under(snapshot, "functions").text("slowest calls");
    put(buffer, area, 0, &Line::styled(format!(" {title}"), Theme::heading()));
    let line = |call: &SlowCallRow| {
        let begin = call.begin_ns.saturating_sub(snapshot.window.begin_ns);
        format!(
            " {}  at {}.{:03} s  {}",
            right(&number_format::duration_ns(call.ns), DURATION_WIDTH),
            begin / 1_000_000_000,
            begin / 1_000_000 % 1_000,
            thread_name(snapshot, row.pid, call.tid)
        )
    };
    list(buffer, below_first(area), &details.slowest.iter().map(line).collect::<Vec<_>>());
}

/// The threads that ran it, those with the most time first.
fn threads(
    row: &FunctionRow,
    details: &FunctionDetails,
    snapshot: &Snapshot,
    area: Rect,
    buffer: &mut Buffer,
) {
    let figures = Figures::under(snapshot, "functions");
    let mut rows: Vec<_> = details.threads.iter().collect();
    rows.sort_by_key(|row| Reverse(row.total_ns));
    let titles = format!(
        " {} {}  thread",
        right(&figures.text("total"), DURATION_WIDTH),
        right(&figures.text("count"), COUNT_WIDTH)
    );
    put(buffer, area, 0, &Line::styled(titles, Theme::heading()));
    let line = |total_ns, count, name: &str| {
        format!(
            " {} {}  {name}",
            right(&number_format::duration_ns(total_ns), DURATION_WIDTH),
            right(&number_format::count(count), COUNT_WIDTH),
        )
    };
    let name = |tid| if tid == 0 { "other threads".to_owned() } else { thread_name(snapshot, row.pid, tid) };
    let mut lines: Vec<String> =
        rows.iter().map(|thread| line(thread.total_ns, thread.count, &name(thread.tid))).collect();
    // Rows of threads that had no room are in those of all functions.
    let count = row.count.saturating_sub(rows.iter().map(|thread| thread.count).sum());
    if count > 0 {
        let total_ns = row.total_ns.saturating_sub(rows.iter().map(|thread| thread.total_ns).sum());
        lines.push(line(total_ns, count, "unknown"));
    }
    list(buffer, below_first(area), &lines);
}
