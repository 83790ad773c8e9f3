//! The phases view: a table of layers and phases by process, and the distribution of the selected row.

mod open_sections;

use std::collections::BTreeSet;

use nntrace_common::layer::{Layer, Phase};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use super::ViewState;
use crate::model::histogram;
use crate::report::incomplete_figures::Figures;
use crate::report::number_format::{self, COUNT_WIDTH, DURATION_WIDTH, PERCENT_WIDTH};
use crate::report::snapshot::{LanguageModelRow, PhaseRow, Snapshot, StackRow};
use crate::tui::actions::Action;
use crate::tui::drawing::chart;
use crate::tui::drawing::names::{no_marks, process_name};
use crate::tui::drawing::text::{bar, left, put, right, rule, say, width};
use crate::tui::drawing::theme::Theme;
use crate::tui::lists::table::{Column, Table};
use crate::tui::sample::Sample;

/// Identity of a row from one snapshot to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PhaseKey {
    /// Process.
    pub pid: u32,
    /// Layer.
    pub layer: Layer,
    /// Phase.
    pub phase: Phase,
}

impl PhaseKey {
    fn of(row: &PhaseRow) -> Self {
        Self { pid: row.pid, layer: row.layer, phase: row.phase }
    }

    /// Returns the innermost layer and phase of a stack; `None` if all its frames are untagged.
    pub(super) fn of_stack(row: &StackRow) -> Option<Self> {
        let tag = row.path.iter().rev().find_map(|frame| frame.tag)?;
        Some(Self { pid: row.pid, layer: tag.layer(), phase: tag.phase() })
    }
}

/// The columns that rows can be sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PhaseSort {
    /// Exclusive time.
    Exclusive,
    /// Total time.
    Total,
    /// Number of frames.
    Count,
    /// Median.
    P50,
    /// 99th percentile.
    P99,
    /// Longest.
    Max,
    /// The order of the snapshot: layer, then phase.
    Name,
}

impl Column for PhaseSort {
    const ALL: &'static [Self] =
        &[Self::Exclusive, Self::Total, Self::Count, Self::P50, Self::P99, Self::Max, Self::Name];

    fn value(self, sample: &Sample, row: usize) -> Option<u64> {
        let row = &sample.snapshot.phases[row];
        match self {
            Self::Exclusive => Some(row.exclusive_ns),
            Self::Total => Some(row.total_ns),
            Self::Count => Some(row.count),
            Self::P50 => row.p50_ns,
            Self::P99 => row.p99_ns,
            Self::Max => row.max_ns,
            Self::Name => None,
        }
    }
}

/// The state of the phases view. Rows of one process stand together.
pub(crate) type Phases = Table<PhaseKey, PhaseSort>;

impl Phases {
    /// The selected row.
    #[must_use]
    pub(crate) fn row<'a>(&self, snapshot: &'a Snapshot) -> Option<&'a PhaseRow> {
        snapshot.phases.get(self.selected()?)
    }
}

/// Width from which on the distribution stands beside the table, and not below it.
const BESIDE: u16 = 150;
/// Width from which on layers and phases are written out.
const WORDS: usize = 80;

/// A line of the table's body.
enum Row<'a> {
    Process(u32),
    LanguageModel(&'a LanguageModelRow),
    Open(String),
    Phase(&'a PhaseRow),
}

impl ViewState for Phases {
    fn refresh(&mut self, sample: &Sample) {
        let rows = &sample.snapshot.phases;
        let mut processes = Vec::new();
        for row in rows {
            if !processes.contains(&row.pid) {
                processes.push(row.pid);
            }
        }
        self.arrange(sample, 0..rows.len());
        self.order.sort_by_key(|&row| processes.iter().position(|&pid| pid == rows[row].pid));
        self.identify(|row| PhaseKey::of(&rows[row]));
    }

    fn draw(&mut self, sample: &Sample, theme: Theme, area: Rect, buffer: &mut Buffer) {
        draw(self, sample, theme, area, buffer);
    }

    fn offers(&self, action: Action) -> bool {
        action.sorts() || action == Action::Open
    }

    fn phase(&self, _: &Snapshot) -> Option<PhaseKey> {
        self.list.selected().copied()
    }
}

fn draw(state: &mut Phases, sample: &Sample, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let snapshot = &sample.snapshot;
    if snapshot.phases.is_empty() && open_sections::processes(snapshot).next().is_none() {
        say(buffer, area, no_marks(snapshot, sample.health.ended.is_some()));
        return;
    }
    let (table_area, chart_area) = split(area);
    table(state, snapshot, theme, table_area, buffer);
    if let Some(area) = chart_area {
        details(state, snapshot, theme, area, buffer);
    }
}

/// The table's area, and the distribution's if there is room for one.
fn split(area: Rect) -> (Rect, Option<Rect>) {
    if area.width >= BESIDE {
        let [table, _, chart] =
            Layout::horizontal([Constraint::Fill(3), Constraint::Length(2), Constraint::Fill(2)]).areas(area);
        return (table, Some(Rect { height: chart.height.min(24), ..chart }));
    }
    if area.height < 14 {
        return (area, None);
    }
    let height = (area.height * 2 / 5).clamp(6, 16);
    let [table, chart] = Layout::vertical([Constraint::Fill(1), Constraint::Length(height)]).areas(area);
    (table, Some(chart))
}

fn table(state: &mut Phases, snapshot: &Snapshot, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let columns = usize::from(area.width);
    // A process may be in its first section, and has nothing to select then.
    let others: BTreeSet<u32> = open_sections::processes(snapshot)
        .filter(|pid| snapshot.phases.iter().all(|row| row.pid != *pid))
        .collect();
    let mut rows: Vec<Row<'_>> = others.into_iter().flat_map(|pid| heading(snapshot, pid)).collect();
    let mut selected = 0;
    let mut process = None;
    for (position, &index) in state.order.iter().enumerate() {
        let row = &snapshot.phases[index];
        if process.replace(row.pid) != Some(row.pid) {
            rows.extend(heading(snapshot, row.pid));
        }
        if position == state.list.index() {
            selected = rows.len();
        }
        rows.push(Row::Phase(row));
    }
    put(buffer, area, 0, &Line::styled(header(state, snapshot, columns), Theme::heading()));
    let page = usize::from(area.height).saturating_sub(1);
    let mut first = state.list.scroll(rows.len(), selected, page);
    // The heading of the uppermost row is worth a line.
    if first == selected {
        let heading = rows[..first].iter().rev().take_while(|row| !matches!(row, Row::Phase(_))).count();
        first -= heading.min(page.saturating_sub(1));
    }
    let all: u64 = snapshot.phases.iter().map(|row| row.exclusive_ns).sum();
    for (line, row) in rows.iter().enumerate().skip(first).take(page) {
        let screen = line - first + 1;
        match row {
            Row::Process(pid) => put(buffer, area, screen, &process_line(snapshot, *pid, all, columns)),
            Row::LanguageModel(row) => {
                let figures = Figures::under(snapshot, "language_models");
                put(buffer, area, screen, &Line::raw(tokens(row, figures, columns)));
            }
            Row::Open(text) => put(buffer, area, screen, &Line::raw(left(text, columns))),
            Row::Phase(row) => {
                put(buffer, area, screen, &phase_line(row, all, columns, line == selected, theme));
            }
        }
    }
}

/// Lines above the layers and phases of a process: its name, its tokens, and what has not ended yet.
fn heading(snapshot: &Snapshot, pid: u32) -> Vec<Row<'_>> {
    let models = snapshot.language_models.iter().filter(|model| model.pid == pid).map(Row::LanguageModel);
    let open = open_sections::lines(snapshot, pid).into_iter().map(Row::Open);
    std::iter::once(Row::Process(pid)).chain(models).chain(open).collect()
}

/// A column of numbers.
struct Figure {
    title: &'static str,
    /// Its key in the snapshot.
    key: &'static str,
    sort: Option<PhaseSort>,
    width: usize,
    text: fn(&PhaseRow) -> String,
    /// Left out where it would cost the bar its place.
    extra: bool,
}

const fn figure(
    title: &'static str,
    key: &'static str,
    sort: Option<PhaseSort>,
    width: usize,
    text: fn(&PhaseRow) -> String,
) -> Figure {
    Figure { title, key, sort, width, text, extra: sort.is_none() }
}

/// Columns between the names and the bar.
const FIGURES: [Figure; 8] = [
    figure("count", "phases.count", Some(PhaseSort::Count), COUNT_WIDTH, |row| {
        number_format::count(row.count)
    }),
    figure("total", "phases.total_ns", Some(PhaseSort::Total), DURATION_WIDTH, |row| {
        number_format::duration_ns(row.total_ns)
    }),
    figure("excl", "phases.exclusive_ns", Some(PhaseSort::Exclusive), DURATION_WIDTH, |row| {
        number_format::duration_ns(row.exclusive_ns)
    }),
    figure("min", "phases.min_ns", None, DURATION_WIDTH, |row| time(row.min_ns)),
    figure("p50", "phases.p50_ns", Some(PhaseSort::P50), DURATION_WIDTH, |row| time(row.p50_ns)),
    figure("p90", "phases.p90_ns", None, DURATION_WIDTH, |row| time(row.p90_ns)),
    figure("p99", "phases.p99_ns", Some(PhaseSort::P99), DURATION_WIDTH, |row| time(row.p99_ns)),
    figure("max", "phases.max_ns", Some(PhaseSort::Max), DURATION_WIDTH, |row| time(row.max_ns)),
];

fn time(ns: Option<u64>) -> String {
    number_format::or_unknown(ns, number_format::duration_ns)
}

/// The columns for a table of that width.
fn figures(columns: usize) -> impl Iterator<Item = &'static Figure> {
    let roomy = columns >= WORDS + 2 * (DURATION_WIDTH + 1);
    FIGURES.iter().filter(move |figure| roomy || !figure.extra)
}

/// Columns of the layer and of the phase.
const fn names(columns: usize) -> (usize, usize) {
    if columns >= WORDS { (11, 14) } else { (3, 3) }
}

/// The titles; `~` before those of columns that lack what was lost.
fn header(state: &Phases, snapshot: &Snapshot, columns: usize) -> String {
    let (layer, phase) = names(columns);
    let by_name = state.arrow(PhaseSort::Name);
    let layer_title = if columns >= WORDS { "layer" } else { "la" };
    let phase_title = if columns >= WORDS { "phase" } else { "ph" };
    let mut text =
        format!(" {} {}", left(&format!("{layer_title}{by_name}"), layer), left(phase_title, phase));
    for figure in figures(columns) {
        let sign = figure.sort.map_or("", |sort| state.arrow(sort));
        text.push(' ');
        let title = Figures::under(snapshot, figure.key).text(figure.title);
        text.push_str(&right(&format!("{title}{sign}"), figure.width));
    }
    let titles = [" share of exclusive", " share", ""];
    let room = columns.saturating_sub(width(&text));
    text + titles.into_iter().find(|title| title.len() <= room).unwrap_or_default()
}

fn process_line(snapshot: &Snapshot, pid: u32, all: u64, columns: usize) -> Line<'static> {
    let rows = snapshot.phases.iter().filter(|row| row.pid == pid);
    let role = rows.clone().map(|row| row.role.to_string()).next().unwrap_or_default();
    let exclusive = rows.map(|row| row.exclusive_ns).sum();
    let note =
        format!("excl {}, {}", number_format::duration_ns(exclusive), number_format::percent(exclusive, all));
    rule(format!("{} {role}", process_name(snapshot, pid)).trim_end(), &note, columns)
}

/// The tokens of a process in one line: as many figures as fit, the most important first.
fn tokens(row: &LanguageModelRow, figures: Figures, columns: usize) -> String {
    let rate = |tokens, ns| figures.text(&number_format::per_second(tokens, ns));
    let time = |ns| figures.known(ns, number_format::duration_ns);
    let parts = [
        format!(" decoding {} tokens/s", rate(row.decode.count, row.decode.total_ns)),
        format!(", prompts {}/s", rate(row.prompt_tokens, row.prompt_ns)),
        format!(", first token {}", time(row.first_token.p50_ns)),
        format!(", next {}", time(row.between_tokens.p50_ns)),
        format!(" (p99 {})", time(row.between_tokens.p99_ns)),
    ];
    let mut text = String::new();
    for part in parts {
        if width(&text) + width(&part) > columns {
            break;
        }
        text.push_str(&part);
    }
    text
}

fn phase_line(row: &PhaseRow, all: u64, columns: usize, selected: bool, theme: Theme) -> Line<'static> {
    let (layer, phase) = names(columns);
    let (layer_text, phase_text) = if columns >= WORDS {
        (row.layer.name(), row.phase.name())
    } else {
        (row.layer.code(), row.phase.code())
    };
    let (sign, style) = Theme::line(selected);
    let mut text = format!("{sign}{} {}", left(layer_text, layer), left(phase_text, phase));
    for figure in figures(columns) {
        text.push(' ');
        text.push_str(&right(&(figure.text)(row), figure.width));
    }
    text.push(' ');
    let mut room = columns.saturating_sub(width(&text));
    if room >= 2 * PERCENT_WIDTH {
        text.push_str(&right(&number_format::percent(row.exclusive_ns, all), PERCENT_WIDTH));
        text.push(' ');
        room -= PERCENT_WIDTH + 1;
    }
    let share = if all == 0 { 0.0 } else { row.exclusive_ns as f64 / all as f64 };
    Line::from(vec![Span::styled(text, style), Span::styled(bar(share, room), theme.bar())])
}

fn details(state: &Phases, snapshot: &Snapshot, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let Some(row) = state.row(snapshot) else { return };
    let title = format!("{} {} in {}", row.layer.name(), row.phase.name(), process_name(snapshot, row.pid));
    let note = format!("min {}  p90 {}", time(row.min_ns), time(row.p90_ns));
    put(buffer, area, 0, &rule(&title, &note, usize::from(area.width)));
    let below = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    match &row.histogram {
        Some(times) => chart::draw(&histogram::buckets(times), theme, below, buffer),
        None => say(buffer, below, "no times of single frames"),
    }
}
