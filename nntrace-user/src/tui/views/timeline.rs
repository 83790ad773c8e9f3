//! The timeline view: a lane for each thread with what it did lately, and the section at the cursor in full.

mod axis;
mod cells;
mod details;
mod pieces;

use nntrace_common::layer::Layer;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use self::cells::Cell;
use self::pieces::Piece;
use super::ViewState;
use crate::model::scheduling::Activity;
use crate::report::snapshot::{RecentActivity, RecentSectionRow, RecentThread, Snapshot};
use crate::tui::actions::{Action, Motion, Travel};
use crate::tui::drawing::names::{no_marks, thread_name};
use crate::tui::drawing::text::{left, put, say};
use crate::tui::drawing::theme::Theme;
use crate::tui::lists::Lines;
use crate::tui::lists::list::List;
use crate::tui::sample::Sample;

/// Time on the screen while a run goes on and the user has chosen none, ns.
const USUAL_SPAN: u64 = 2_000_000_000;
/// Time on the screen at least and at most, ns.
const SPANS: (u64, u64) = (1_000, 3_600_000_000_000);

/// The state of the timeline view.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    /// Threads by process and id.
    pub threads: List<(u32, u32)>,
    /// Time on the screen, ns; `None` where the user has chosen none.
    span: Option<u64>,
    /// Last instant on the screen, ns; `None` while that is the newest one.
    until: Option<u64>,
    /// Instant of the cursor, ns; `None` where there is none.
    pub cursor: Option<u64>,
    /// Columns of a lane; the view sets it.
    pub columns: usize,
    has_ended: bool,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { threads: List::default(), span: None, until: None, cursor: None, columns: 1, has_ended: false }
    }
}

/// Part of a run on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeSpan {
    /// First instant, ns.
    pub begin: u64,
    /// Length, ns; never 0.
    pub length: u64,
}

impl TimeSpan {
    /// Returns the first instant after it, ns.
    #[must_use]
    pub(crate) const fn end(self) -> u64 {
        self.begin.saturating_add(self.length)
    }
}

impl Timeline {
    /// Returns what is on the screen.
    #[must_use]
    pub(crate) fn shown(&self, recent: &RecentActivity) -> TimeSpan {
        let until = self.until.unwrap_or(recent.until_ns);
        let usual = if self.has_ended { until.saturating_sub(recent.since_ns) } else { USUAL_SPAN };
        let length = self.span.unwrap_or(usual).clamp(SPANS.0, SPANS.1);
        TimeSpan { begin: until.saturating_sub(length), length }
    }

    /// Returns the selected thread.
    #[must_use]
    pub(crate) fn thread<'a>(&self, recent: &'a RecentActivity) -> Option<&'a RecentThread> {
        find(recent, *self.threads.selected()?)
    }

    /// Returns the innermost section of the selected thread at the cursor.
    #[must_use]
    pub(crate) fn picked<'a>(&self, recent: &'a RecentActivity) -> Option<&'a RecentSectionRow> {
        let at = self.cursor?;
        // Inner ones follow those around them.
        self.thread(recent)?.sections.iter().rfind(|section| section.holds(at))
    }

    /// Shows the newest again; returns whether it did not.
    pub(in crate::tui) fn follow(&mut self) -> bool {
        let was_fixed = self.until.take().is_some();
        self.cursor.take().is_some() || was_fixed
    }

    /// Moves the cursor, or zooms.
    pub(in crate::tui) fn travel(&mut self, travel: Travel, recent: &RecentActivity) {
        let shown = self.shown(recent);
        let step = (shown.length / self.columns.max(1) as u64).max(1);
        let at = self.cursor.unwrap_or_else(|| shown.end().saturating_sub(1));
        let begins = || {
            let sections = self.thread(recent).map_or(&[][..], |thread| &thread.sections);
            sections.iter().map(|section| section.begin_ns)
        };
        let next = match travel {
            Travel::Earlier => at.saturating_sub(step),
            Travel::Later => at.saturating_add(step),
            Travel::PreviousSection => begins().rfind(|begin| *begin < at).unwrap_or(at),
            Travel::NextSection => begins().find(|begin| *begin > at).unwrap_or(at),
            Travel::ZoomIn => return self.zoom(shown, shown.length / 2),
            Travel::ZoomOut => return self.zoom(shown, shown.length.saturating_mul(2)),
        };
        let last = recent.until_ns.saturating_sub(1);
        let next = next.clamp(recent.since_ns.min(last), last);
        // From now on the thread stays selected, whatever comes before it.
        self.threads.select(self.threads.index());
        self.cursor = Some(next);
        let is_seen = (shown.begin..shown.end()).contains(&next);
        let middle = next.saturating_add(shown.length / 2).max(shown.length);
        self.until = Some(if is_seen { shown.end() } else { middle.min(recent.until_ns) });
        self.span = Some(shown.length);
    }

    /// Shows this much time (ns); the cursor stays where it is on the screen.
    fn zoom(&mut self, shown: TimeSpan, length: u64) {
        let length = length.clamp(SPANS.0, SPANS.1);
        self.span = Some(length);
        if let Some(at) = self.cursor {
            let after = u128::from(shown.end().saturating_sub(at)) * u128::from(length);
            let after = u64::try_from(after / u128::from(shown.length)).unwrap_or(u64::MAX);
            self.until = Some(at.saturating_add(after).max(length));
        }
    }
}

/// Returns a thread by its process and id.
#[must_use]
pub(crate) fn find(recent: &RecentActivity, key: (u32, u32)) -> Option<&RecentThread> {
    let at = recent.threads.binary_search_by_key(&key, |thread| (thread.pid, thread.tid)).ok()?;
    recent.threads.get(at)
}

impl Lines for Timeline {
    fn go(&mut self, motion: Motion) {
        self.threads.go(motion);
    }

    fn position(&self) -> (usize, usize) {
        Lines::position(&self.threads)
    }
}

/// Height from which on there is room for the section at the cursor.
const WITH_DETAILS: u16 = 12;
/// Lines of the section at the cursor.
const DETAILS: u16 = 4;
/// Greatest width of the names before the lanes, columns.
const WIDEST_NAME: usize = 24;
/// Lanes of the selected thread at most: its innermost levels.
const MOST_DEPTHS: usize = 8;
/// Least width of a section that shows its name, columns.
const NAMED: usize = 4;

/// A line of the view.
enum Lane {
    /// Innermost sections of a thread.
    Thread { index: usize, is_selected: bool },
    /// Sections of the selected thread with this many around them.
    Depth { index: usize, depth: u8, is_first: bool },
    /// States of the selected thread.
    States(usize),
    /// Traced threads on a CPU.
    Cpu(u32),
}

impl ViewState for Timeline {
    fn refresh(&mut self, sample: &Sample) {
        self.has_ended = sample.health.ended.is_some();
        let Some(recent) = &sample.snapshot.recent else {
            self.threads.set_keys(Vec::new());
            return;
        };
        let mut threads: Vec<&RecentThread> = recent.threads.iter().collect();
        // Those without any section come last in their process.
        threads.sort_by_key(|thread| (thread.pid, thread.sections.is_empty(), thread.tid));
        self.threads.set_keys(threads.into_iter().map(|thread| (thread.pid, thread.tid)).collect());
    }

    fn draw(&mut self, sample: &Sample, theme: Theme, area: Rect, buffer: &mut Buffer) {
        draw(self, sample, theme, area, buffer);
    }

    fn offers(&self, action: Action) -> bool {
        matches!(action, Action::Open | Action::Travel(_))
    }
}

fn draw(state: &mut Timeline, sample: &Sample, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let snapshot = &sample.snapshot;
    let Some(recent) = snapshot.recent.as_deref().filter(|recent| !recent.threads.is_empty()) else {
        say(buffer, area, no_marks(snapshot, sample.health.ended.is_some()));
        return;
    };
    let details = if area.height < WITH_DETAILS { 0 } else { DETAILS };
    let [axis_area, lanes_area, details_area] =
        Layout::vertical([Constraint::Length(1), Constraint::Fill(1), Constraint::Length(details)])
            .areas(area);
    let name_width = (usize::from(area.width) / 4).min(WIDEST_NAME);
    state.columns = usize::from(area.width).saturating_sub(name_width).max(1);
    let shown = state.shown(recent);
    let view = View { snapshot, recent, shown, columns: state.columns, name_width, theme };
    let cursor = state.cursor.and_then(|at| view.column(at));
    let axis = axis::line(snapshot.window.begin_ns, shown, view.columns, cursor);
    let heading = Span::styled(left(" thread", name_width), Theme::heading());
    put(buffer, axis_area, 0, &Line::from(vec![heading, Span::raw(axis)]));
    let (lanes, selected) = view.lanes(state);
    let first = state.threads.scroll(lanes.len(), selected, usize::from(lanes_area.height));
    for (row, lane) in lanes.iter().skip(first).take(usize::from(lanes_area.height)).enumerate() {
        put(buffer, lanes_area, row, &view.line(lane));
    }
    if let Some(column) = cursor {
        let x = area.x.saturating_add((name_width + column) as u16);
        let column = Rect { x, width: 1, ..lanes_area }.intersection(lanes_area);
        buffer.set_style(column, Style::new().add_modifier(Modifier::REVERSED));
    }
    details::draw(state, sample, recent, details_area, buffer);
}

/// What is drawn, and where.
struct View<'a> {
    snapshot: &'a Snapshot,
    recent: &'a RecentActivity,
    shown: TimeSpan,
    columns: usize,
    name_width: usize,
    theme: Theme,
}

impl View<'_> {
    /// Returns the column of an instant (ns) that is on the screen.
    fn column(&self, at: u64) -> Option<usize> {
        let is_shown = (self.shown.begin..self.shown.end()).contains(&at);
        is_shown.then(|| cells::column(self.shown, self.columns, at))
    }

    /// Returns the lanes, and the place of the first one of the selected thread.
    fn lanes(&self, state: &Timeline) -> (Vec<Lane>, usize) {
        let (mut lanes, mut selected) = (Vec::new(), 0);
        for (position, key) in state.threads.keys().iter().enumerate() {
            let threads = &self.recent.threads;
            let Ok(index) = threads.binary_search_by_key(key, |thread| (thread.pid, thread.tid)) else {
                continue;
            };
            let thread = &threads[index];
            if position != state.threads.index() {
                lanes.push(Lane::Thread { index, is_selected: false });
                continue;
            }
            selected = lanes.len();
            let depths = pieces::depths(&thread.sections, self.shown);
            if depths.is_empty() {
                lanes.push(Lane::Thread { index, is_selected: true });
            }
            let left_out = depths.len().saturating_sub(MOST_DEPTHS);
            let rows = depths.into_iter().skip(left_out).enumerate();
            lanes.extend(rows.map(|(row, depth)| Lane::Depth { index, depth, is_first: row == 0 }));
            if !thread.states.is_empty() {
                lanes.push(Lane::States(index));
            }
        }
        lanes.extend(pieces::cpus(self.recent).into_iter().map(Lane::Cpu));
        (lanes, selected)
    }

    fn line(&self, lane: &Lane) -> Line<'static> {
        match *lane {
            Lane::Thread { index, is_selected } => {
                let thread = &self.recent.threads[index];
                let cells = self.cells(pieces::innermost(&thread.sections, self.shown), thread);
                self.with_name(&self.name(thread), is_selected, self.sections(&cells, thread))
            }
            Lane::Depth { index, depth, is_first } => {
                let thread = &self.recent.threads[index];
                let cells = self.cells(pieces::at_depth(&thread.sections, depth, self.shown), thread);
                let name = if is_first { self.name(thread) } else { String::new() };
                self.with_name(&name, is_first, self.sections(&cells, thread))
            }
            Lane::States(index) => {
                let thread = &self.recent.threads[index];
                self.with_name("  thread state", false, self.states(thread))
            }
            Lane::Cpu(cpu) => self.with_name(&format!("cpu{cpu}"), false, self.threads_on(cpu)),
        }
    }

    fn name(&self, thread: &RecentThread) -> String {
        thread_name(self.snapshot, thread.pid, thread.tid)
    }

    fn with_name(&self, name: &str, is_selected: bool, lane: Vec<Span<'static>>) -> Line<'static> {
        let (sign, style) = Theme::line(is_selected);
        let name = left(&format!("{sign}{name}"), self.name_width.saturating_sub(1));
        let mut line = Line::from(vec![Span::styled(name, style), Span::raw(" ")]);
        line.spans.extend(lane);
        line
    }

    fn cells(&self, pieces: impl Iterator<Item = Piece>, thread: &RecentThread) -> Vec<Cell> {
        let layer = |of: usize| thread.sections[of].tag.layer() as usize;
        cells::fill(pieces, self.shown, self.columns, layer)
    }

    /// Returns sections by column: by name where there is room, else by the letter of their layer, lowercase where less than half of
    /// the column is covered.
    fn sections(&self, cells: &[Cell], thread: &RecentThread) -> Vec<Span<'static>> {
        self.spans(cells, |of, count| {
            let section = &thread.sections[of];
            let style = self.theme.layer(section.tag.layer());
            let opening = if section.begin_ns < self.shown.begin { '<' } else { '[' };
            let goes_on = section.exclusive_ns.is_none() || section.end_ns > self.shown.end();
            let closing = if goes_on { '>' } else { ']' };
            let is_named = count >= NAMED;
            let name =
                is_named.then(|| format!("{opening}{}{closing}", left(self.recent.name(section), count - 2)));
            (name, letter(section.tag.layer()), style)
        })
    }

    /// Threads that ran on a CPU.
    fn threads_on(&self, cpu: u32) -> Vec<Span<'static>> {
        let pieces = pieces::on_cpu(self.recent, cpu, self.shown);
        let cells = cells::fill(pieces.into_iter(), self.shown, self.columns, |_| 0);
        self.spans(&cells, |of, count| {
            let thread = &self.recent.threads[of];
            let name = (count >= NAMED).then(|| format!("[{}]", left(&self.name(thread), count - 2)));
            (name, 'X', self.theme.running())
        })
    }

    /// Merges neighbouring columns with the same content. `look` returns the text for that many columns where they have room for one, and the
    /// letter and the style of each otherwise.
    fn spans(
        &self,
        cells: &[Cell],
        look: impl Fn(usize, usize) -> (Option<String>, char, Style),
    ) -> Vec<Span<'static>> {
        let (mut spans, mut at) = (Vec::new(), 0);
        while let Some(cell) = cells.get(at) {
            let Some(of) = cell.of else {
                spans.push(self.empty(at));
                at += 1;
                continue;
            };
            let covers = |cell: &&Cell| cell.of == Some(of) && cell.is_mostly_one;
            let count = cells[at..].iter().take_while(covers).count().max(1);
            let (name, letter, style) = look(of, count);
            let small = || if cell.is_mostly_covered { letter } else { letter.to_ascii_lowercase() };
            spans.push(match name {
                Some(name) => Span::styled(name, style),
                None if count == 1 => Span::styled(String::from(small()), style),
                None => Span::styled(String::from(letter).repeat(count), style),
            });
            at += count;
        }
        spans
    }

    /// Returns a column without a section: shaded where sections are no longer kept.
    fn empty(&self, column: usize) -> Span<'static> {
        let begin = cells::begin(self.shown, self.columns, column);
        let is_unknown = begin < self.recent.since_ns && self.recent.since_ns > self.snapshot.window.begin_ns;
        if is_unknown { Span::styled("░", Theme::dim()) } else { Span::raw(" ") }
    }

    /// The states of a thread, its CPUs as digits.
    fn states(&self, thread: &RecentThread) -> Vec<Span<'static>> {
        let states = &thread.states;
        let pieces = states.iter().enumerate().map(|(of, state)| Piece {
            begin: state.begin_ns,
            end: state.end_ns,
            of,
        });
        let kind = |of: usize| match states[of].activity {
            Activity::Unknown => 0,
            Activity::Asleep => 1,
            Activity::Runnable => 2,
            Activity::OnCpu(cpu) => 3 + cpu as usize,
        };
        let cells = cells::fill(pieces, self.shown, self.columns, kind);
        let sign = |(column, cell): (usize, &Cell)| match cell.of.map(|of| states[of].activity) {
            None => self.empty(column),
            Some(Activity::Unknown) => Span::styled("?", self.theme.unknown()),
            Some(Activity::Asleep) => Span::styled("·", Theme::dim()),
            Some(Activity::Runnable) => Span::styled("▒", self.theme.unknown()),
            Some(Activity::OnCpu(cpu)) => {
                let digit = char::from_digit(cpu.min(36), 36).unwrap_or('+');
                Span::styled(String::from(digit), self.theme.running())
            }
        };
        cells.iter().enumerate().map(sign).collect()
    }
}

/// Letter of a layer.
const fn letter(layer: Layer) -> char {
    match layer {
        Layer::Application => 'A',
        Layer::Runtime => 'R',
        Layer::Ipc => 'I',
        Layer::Driver => 'D',
        Layer::CpuFallback => 'C',
        Layer::Utility => 'U',
        Layer::Other => 'O',
    }
}
