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
use super::text::{left, put, say};
use super::theme::Theme;
use super::{no_marks, thread_name};
use crate::model::scheduling::Activity;
use crate::report::snapshot::{RecentActivity, RecentThread, Snapshot};
use crate::tui::state::Sample;
use crate::tui::state::timeline::{TimeSpan, Timeline, find};

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

/// Draws the view.
pub(crate) fn draw(state: &mut Timeline, sample: &Sample, theme: Theme, area: Rect, buffer: &mut Buffer) {
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
