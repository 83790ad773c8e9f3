//! The functions view: a table of functions, such as the operators of an engine, and the selected one in full.

mod details;

use nntrace_common::layer::Tag;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use super::ViewState;
use super::phases::PhaseKey;
use crate::report::incomplete_figures::Figures;
use crate::report::number_format::{self, COUNT_WIDTH, DURATION_WIDTH, PERCENT_WIDTH};
use crate::report::snapshot::{FunctionRow, Snapshot};
use crate::tui::actions::{Action, Motion};
use crate::tui::drawing::names::{no_marks, process_name};
use crate::tui::drawing::text::{bar, left, put, right, rule, say, width};
use crate::tui::drawing::theme::Theme;
use crate::tui::lists::Lines;
use crate::tui::lists::table::{Column, Table};
use crate::tui::sample::Sample;

/// Identity of a function from one snapshot to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FunctionKey {
    /// Layer, phase and process.
    pub phase: PhaseKey,
    /// Name.
    pub name: String,
}

impl FunctionKey {
    fn of(row: &FunctionRow) -> Self {
        Self { phase: phase(row), name: row.name.clone() }
    }
}

fn phase(row: &FunctionRow) -> PhaseKey {
    PhaseKey { pid: row.pid, layer: row.layer, phase: row.phase }
}

/// The columns that rows can be sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FunctionSort {
    /// Exclusive time.
    Exclusive,
    /// Exclusive time since the snapshot before.
    Now,
    /// Number of calls.
    Count,
    /// Median.
    P50,
    /// 99th percentile.
    P99,
    /// Longest.
    Max,
    /// The order of the snapshot: process, layer, phase, name.
    Name,
}

impl Column for FunctionSort {
    const ALL: &'static [Self] =
        &[Self::Exclusive, Self::Now, Self::Count, Self::P50, Self::P99, Self::Max, Self::Name];

    fn value(self, sample: &Sample, index: usize) -> Option<u64> {
        let row = &sample.snapshot.functions[index];
        match self {
            Self::Exclusive => Some(row.exclusive_ns),
            Self::Now => sample.added.functions.get(index).copied(),
            Self::Count => Some(row.count),
            Self::P50 => row.of_sections(row.p50_ns),
            Self::P99 => row.of_sections(row.p99_ns),
            Self::Max => row.of_sections(row.max_ns),
            Self::Name => None,
        }
    }
}

/// The state of the functions view.
#[derive(Clone, Debug, Default)]
pub(crate) struct Functions {
    /// The functions that are shown.
    pub table: Table<FunctionKey, FunctionSort>,
    /// The only layer and phase whose functions are shown.
    pub of: Option<PhaseKey>,
    /// Part of the names that are shown.
    pub text: String,
    /// Whether keys are letters of `text`.
    pub is_typing: bool,
    /// Whether the selected function takes the whole view.
    pub is_open: bool,
}

impl Functions {
    /// Selects a function by its process, its layer and phase as written, and its name; returns whether it is among those that are
    /// shown. Where it is accounted under another layer or phase, its name decides.
    pub(crate) fn select(&mut self, pid: u32, tag: Tag, name: &str) -> bool {
        let keys = self.table.list.keys();
        let is_named = |key: &FunctionKey| key.phase.pid == pid && key.name == name;
        let is_same = |key: &FunctionKey| is_named(key) && Tag::new(key.phase.layer, key.phase.phase) == tag;
        let found = keys.iter().position(is_same).or_else(|| keys.iter().position(is_named));
        if let Some(at) = found {
            self.table.list.select(at);
        }
        found.is_some()
    }

    /// Opens the selected function, or closes it.
    pub(crate) fn toggle(&mut self) {
        self.is_open = !self.is_open && self.table.selected().is_some();
    }

    /// Whether functions may be left out.
    #[must_use]
    pub(crate) fn is_filtered(&self) -> bool {
        self.of.is_some() || !self.text.is_empty()
    }

    /// Shows all functions.
    pub(crate) fn show_all(&mut self) {
        self.of = None;
        self.text.clear();
        self.is_typing = false;
    }
}

/// Width from which on there is room for bars.
const BARS: usize = 130;
/// Columns of a bar.
const BAR: usize = 20;
/// Lines of the selected function: a rule, its name, and two lines of figures.
const DETAILS: u16 = 5;

impl Lines for Functions {
    fn go(&mut self, motion: Motion) {
        self.table.go(motion);
    }

    fn position(&self) -> (usize, usize) {
        self.table.position()
    }

    fn next_sort(&mut self) {
        self.table.next_sort();
    }

    fn reverse(&mut self) {
        self.table.reverse();
    }
}

impl ViewState for Functions {
    fn refresh(&mut self, sample: &Sample) {
        let rows = &sample.snapshot.functions;
        let text = self.text.to_lowercase();
        let is_shown = |row: &FunctionRow| {
            self.of.is_none_or(|of| of == phase(row))
                && (text.is_empty() || row.name.to_lowercase().contains(&text))
        };
        self.table.arrange(sample, (0..rows.len()).filter(|&row| is_shown(&rows[row])));
        self.table.identify(|row| FunctionKey::of(&rows[row]));
        self.is_open &= self.table.selected().is_some();
    }

    fn draw(&mut self, sample: &Sample, theme: Theme, area: Rect, buffer: &mut Buffer) {
        draw(self, sample, theme, area, buffer);
    }

    fn offers(&self, action: Action) -> bool {
        action.sorts() && !self.is_open || matches!(action, Action::Open | Action::Filter)
    }
}

fn draw(state: &mut Functions, sample: &Sample, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let snapshot = &sample.snapshot;
    if snapshot.functions.is_empty() {
        say(buffer, area, no_marks(snapshot, sample.health.ended.is_some()));
        return;
    }
    if state.is_open
        && let Some(index) = state.table.selected()
    {
        let added = sample.added.functions.get(index).copied();
        details::draw(&snapshot.functions[index], added, snapshot, theme, area, buffer);
        return;
    }
    let chosen = u16::from(state.is_filtered() || state.is_typing);
    let details = if area.height < 14 { 0 } else { DETAILS };
    let [choice_area, table_area, details_area] =
        Layout::vertical([Constraint::Length(chosen), Constraint::Fill(1), Constraint::Length(details)])
            .areas(area);
    choice(state, snapshot, theme, choice_area, buffer);
    table(state, sample, theme, table_area, buffer);
    if let Some(index) = state.table.selected() {
        let added = sample.added.functions.get(index).copied();
        selected(&snapshot.functions[index], added, snapshot, details_area, buffer);
    }
}

/// Which functions are shown, where it is not all.
fn choice(state: &Functions, snapshot: &Snapshot, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let of = state
        .of
        .map(|of| format!(" {} {} in {}", of.layer.name(), of.phase.name(), process_name(snapshot, of.pid)));
    let cursor = if state.is_typing { "_" } else { "" };
    let text = match (state.text.is_empty(), state.is_typing) {
        (true, false) => String::new(),
        _ => format!(" /{}{cursor}", state.text),
    };
    let number = format!(
        "  {} of {}",
        number_format::count(state.table.order.len() as u64),
        number_format::count(snapshot.functions.len() as u64)
    );
    let hint = if state.is_typing { "  Enter keeps, Esc shows all" } else { "  Esc shows all" };
    let room = usize::from(area.width).saturating_sub(width(&number) + width(hint));
    // What is typed has to be seen: the other part is cut first.
    let of = of.unwrap_or_default();
    let room_of_phase = room.saturating_sub(width(&text));
    let of = if width(&of) > room_of_phase { left(&of, room_of_phase) } else { of };
    let shown = of + &text;
    let shown = if width(&shown) > room { left(&shown, room) } else { shown };
    let line =
        Line::from(vec![Span::styled(shown + &number, Theme::heading()), Span::styled(hint, theme.key())]);
    put(buffer, area, 0, &line);
}

fn table(state: &mut Functions, sample: &Sample, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let Sample { snapshot, added, .. } = sample;
    let added_ns = &added.functions;
    let columns = usize::from(area.width);
    let page = usize::from(area.height).saturating_sub(1);
    let Table { list, order, .. } = &mut state.table;
    let first = list.scroll(order.len(), list.index(), page);
    put(buffer, area, 0, &Line::styled(header(state, snapshot, columns), Theme::heading()));
    if state.table.order.is_empty() {
        let below = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
        say(buffer, below, "no function matches; Esc shows all");
        return;
    }
    let sums = Sums {
        exclusive_ns: snapshot.functions.iter().map(|row| row.exclusive_ns).sum(),
        added_ns: added_ns.iter().sum(),
    };
    for (position, &index) in state.table.order.iter().enumerate().skip(first).take(page) {
        let function = Function { row: &snapshot.functions[index], added_ns: added_ns.get(index).copied() };
        let is_selected = position == state.table.list.index();
        let line = function_line(&function, &sums, columns, is_selected, theme);
        put(buffer, area, position - first + 1, &line);
    }
}

/// Times of all functions together.
struct Sums {
    exclusive_ns: u64,
    added_ns: u64,
}

/// A function, and the time that was added to it last.
struct Function<'a> {
    row: &'a FunctionRow,
    added_ns: Option<u64>,
}

/// A column of figures.
struct Figure {
    title: &'static str,
    sort: Option<FunctionSort>,
    width: usize,
    text: fn(&Function<'_>, &Sums) -> String,
    /// Width of the table from which on it is shown.
    from: usize,
    /// Whether it is a share, which is one of what was seen, whatever was lost.
    is_share: bool,
}

const fn figure(
    title: &'static str,
    sort: Option<FunctionSort>,
    width: usize,
    from: usize,
    text: fn(&Function<'_>, &Sums) -> String,
) -> Figure {
    Figure { title, sort, width, text, from, is_share: false }
}

const fn share(
    title: &'static str,
    sort: Option<FunctionSort>,
    from: usize,
    text: fn(&Function<'_>, &Sums) -> String,
) -> Figure {
    Figure { title, sort, width: PERCENT_WIDTH, text, from, is_share: true }
}

/// Columns before the bar and the name.
const FIGURES: [Figure; 8] = [
    figure("excl", Some(FunctionSort::Exclusive), DURATION_WIDTH, 0, |function, _| {
        number_format::duration_ns(function.row.exclusive_ns)
    }),
    share("share", None, 0, |function, sums| {
        number_format::percent(function.row.exclusive_ns, sums.exclusive_ns)
    }),
    share("now", Some(FunctionSort::Now), 70, |function, sums| {
        number_format::or_unknown(function.added_ns, |added| number_format::percent(added, sums.added_ns))
    }),
    figure("count", Some(FunctionSort::Count), COUNT_WIDTH, 0, |function, _| {
        number_format::count(function.row.count)
    }),
    figure("total", None, DURATION_WIDTH, 110, |function, _| {
        number_format::duration_ns(function.row.total_ns)
    }),
    figure("p50", Some(FunctionSort::P50), DURATION_WIDTH, 0, |function, _| {
        function.time(function.row.p50_ns)
    }),
    figure("p99", Some(FunctionSort::P99), DURATION_WIDTH, 76, |function, _| {
        function.time(function.row.p99_ns)
    }),
    figure("max", Some(FunctionSort::Max), DURATION_WIDTH, 0, |function, _| {
        function.time(function.row.max_ns)
    }),
];

impl Function<'_> {
    /// A figure of those that have ended.
    fn time(&self, ns: u64) -> String {
        number_format::or_unknown(self.row.of_sections(ns), number_format::duration_ns)
    }
}

/// The columns for a table of that width.
fn figures(columns: usize) -> impl Iterator<Item = &'static Figure> {
    FIGURES.iter().filter(move |figure| columns >= figure.from)
}

/// The titles; `~` before them where records were lost.
fn header(state: &Functions, snapshot: &Snapshot, columns: usize) -> String {
    let incomplete = Figures::under(snapshot, "functions");
    let mut text = String::new();
    for figure in figures(columns) {
        let sign = figure.sort.map_or("", |sort| state.table.arrow(sort));
        text.push(' ');
        let title = if figure.is_share { figure.title.to_owned() } else { incomplete.text(figure.title) };
        text.push_str(&right(&format!("{title}{sign}"), figure.width));
    }
    if columns >= BARS {
        text.push_str(&" ".repeat(BAR + 1));
    }
    text + "  function" + state.table.arrow(FunctionSort::Name)
}

fn function_line(
    function: &Function<'_>,
    sums: &Sums,
    columns: usize,
    is_selected: bool,
    theme: Theme,
) -> Line<'static> {
    let (sign, style) = Theme::line(is_selected);
    let mut text = String::from(sign);
    for (number, figure) in figures(columns).enumerate() {
        if number > 0 {
            text.push(' ');
        }
        text.push_str(&right(&(figure.text)(function, sums), figure.width));
    }
    let mut line = Line::from(Span::styled(text, style));
    let row = function.row;
    if columns >= BARS {
        let share =
            if sums.exclusive_ns == 0 { 0.0 } else { row.exclusive_ns as f64 / sums.exclusive_ns as f64 };
        line.push_span(Span::styled(format!(" {}", bar(share, BAR)), theme.bar()));
    }
    let name = format!("  {} {}", Tag::new(row.layer, row.phase), row.name);
    let room = columns.saturating_sub(line.width());
    line.push_span(Span::styled(left(&name, room), style));
    line
}

/// The selected function: what a line of the table has no room for.
fn selected(row: &FunctionRow, added_ns: Option<u64>, snapshot: &Snapshot, area: Rect, buffer: &mut Buffer) {
    let columns = usize::from(area.width);
    let title = format!("{} {} in {}", row.layer.name(), row.phase.name(), process_name(snapshot, row.pid));
    put(buffer, area, 0, &rule(&title, "Enter: details", columns));
    let lines = details::summary(row, added_ns, snapshot, columns.saturating_sub(2));
    for (screen, line) in lines.into_iter().enumerate() {
        put(buffer, area, screen + 1, &Line::from(format!(" {}", left(&line, columns.saturating_sub(1)))));
    }
}
