//! The stacks view: every stack of layers and phases, and the selected one frame by frame.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use super::ViewState;
use super::phases::PhaseKey;
use crate::report::number_format::{self, COUNT_WIDTH, DURATION_WIDTH, PERCENT_WIDTH};
use crate::report::snapshot::{FramePart, Snapshot, StackFrame, StackRow};
use crate::tui::actions::Action;
use crate::tui::drawing::names::{no_marks, process_name};
use crate::tui::drawing::text::{bar, left, put, right, rule, say, tail, width};
use crate::tui::drawing::theme::Theme;
use crate::tui::lists::table::{Column, Table};
use crate::tui::sample::Sample;

/// Identity of a stack from one snapshot to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StackKey {
    /// Process.
    pub pid: u32,
    /// Frames from the outermost in.
    pub path: Vec<StackFrame>,
}

/// The columns that stacks can be sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StackSort {
    /// Exclusive time.
    Exclusive,
    /// Total time.
    Total,
    /// Number of frames.
    Count,
    /// The order of the snapshot.
    Path,
}

impl Column for StackSort {
    const ALL: &'static [Self] = &[Self::Exclusive, Self::Total, Self::Count, Self::Path];

    fn value(self, sample: &Sample, row: usize) -> Option<u64> {
        let row = &sample.snapshot.stacks[row];
        match self {
            Self::Exclusive => Some(row.exclusive_ns),
            Self::Total => Some(row.total_ns),
            Self::Count => Some(row.count),
            Self::Path => None,
        }
    }
}

/// The state of the stacks view.
pub(crate) type Stacks = Table<StackKey, StackSort>;

impl Stacks {
    /// The selected stack.
    #[must_use]
    pub(crate) fn row<'a>(&self, snapshot: &'a Snapshot) -> Option<&'a StackRow> {
        snapshot.stacks.get(self.selected()?)
    }
}

/// Width from which on there is room for bars.
const BARS: usize = 110;
/// Columns of a bar.
const BAR: usize = 20;

impl ViewState for Stacks {
    fn refresh(&mut self, sample: &Sample) {
        let rows = &sample.snapshot.stacks;
        self.arrange(sample, 0..rows.len());
        self.identify(|row| StackKey { pid: rows[row].pid, path: rows[row].path.clone() });
    }

    fn draw(&mut self, sample: &Sample, theme: Theme, area: Rect, buffer: &mut Buffer) {
        draw(self, sample, theme, area, buffer);
    }

    fn offers(&self, action: Action) -> bool {
        action.sorts() || action == Action::Open
    }

    fn phase(&self, snapshot: &Snapshot) -> Option<PhaseKey> {
        self.row(snapshot).and_then(PhaseKey::of_stack)
    }
}

fn draw(state: &mut Stacks, sample: &Sample, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let snapshot = &sample.snapshot;
    let Some(row) = state.row(snapshot) else {
        say(buffer, area, no_marks(snapshot, sample.health.ended.is_some()));
        return;
    };
    let wanted = row.path.len() as u16 + 1;
    let height = if area.height < 14 { 0 } else { wanted.min(area.height * 2 / 5) };
    let [table_area, frames_area] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(height)]).areas(area);
    table(state, snapshot, theme, table_area, buffer);
    frames(row, snapshot, frames_area, buffer);
}

fn table(state: &mut Stacks, snapshot: &Snapshot, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let columns = usize::from(area.width);
    let page = usize::from(area.height).saturating_sub(1);
    let first = state.list.scroll(state.order.len(), state.list.index(), page);
    put(buffer, area, 0, &Line::styled(header(state, columns), Theme::heading()));
    let all: u64 = snapshot.stacks.iter().map(|row| row.exclusive_ns).sum();
    for (index, &row) in state.order.iter().enumerate().skip(first).take(page) {
        let screen = index - first + 1;
        let selected = index == state.list.index();
        put(buffer, area, screen, &stack_line(&snapshot.stacks[row], all, columns, selected, theme));
    }
}

fn header(state: &Stacks, columns: usize) -> String {
    let title = |title, sort, width| right(&format!("{title}{}", state.arrow(sort)), width);
    format!(
        " {} {} {}{} {} {:>7}  stack{}",
        title("excl", StackSort::Exclusive, DURATION_WIDTH),
        right("share", PERCENT_WIDTH),
        " ".repeat(if columns >= BARS { BAR + 1 } else { 0 }),
        title("total", StackSort::Total, DURATION_WIDTH),
        title("count", StackSort::Count, COUNT_WIDTH),
        "pid",
        state.arrow(StackSort::Path),
    )
}

fn stack_line(row: &StackRow, all: u64, columns: usize, selected: bool, theme: Theme) -> Line<'static> {
    let (sign, style) = Theme::line(selected);
    let text = format!(
        "{sign}{} {} ",
        right(&number_format::duration_ns(row.exclusive_ns), DURATION_WIDTH),
        right(&number_format::percent(row.exclusive_ns, all), PERCENT_WIDTH),
    );
    let mut line = Line::from(Span::styled(text, style));
    if columns >= BARS {
        let share = if all == 0 { 0.0 } else { row.exclusive_ns as f64 / all as f64 };
        line.push_span(Span::styled(bar(share, BAR) + " ", theme.bar()));
    }
    let text = format!(
        "{} {} {:>7}  ",
        right(&number_format::duration_ns(row.total_ns), DURATION_WIDTH),
        right(&number_format::count(row.count), COUNT_WIDTH),
        row.pid,
    );
    let room = columns.saturating_sub(line.width() + width(&text));
    line.push_span(Span::styled(text + &left(&path(&row.path, room), room), style));
    line
}

/// A path in at most `columns`; of too long a one the innermost tags are shown: `… > LR_PE > LC_PCO`.
fn path(frames: &[StackFrame], columns: usize) -> String {
    let tags: Vec<String> = frames.iter().map(ToString::to_string).collect();
    let whole = tags.join(" > ");
    if width(&whole) <= columns {
        return whole;
    }
    (1..tags.len())
        .map(|outer| format!("… > {}", tags[outer..].join(" > ")))
        .find(|shorter| width(shorter) <= columns)
        .unwrap_or_else(|| tail(&whole, columns))
}

/// The frames of a stack in words, each in a line. Of too many, the innermost ones are shown.
fn frames(row: &StackRow, snapshot: &Snapshot, area: Rect, buffer: &mut Buffer) {
    let columns = usize::from(area.width);
    let title = format!("stack in {}", process_name(snapshot, row.pid));
    let room = usize::from(area.height).saturating_sub(1);
    let hidden = row.path.len().saturating_sub(room);
    let note = if hidden > 0 { format!("{hidden} outer left out") } else { String::new() };
    put(buffer, area, 0, &rule(&title, &note, columns));
    for (depth, &frame) in row.path.iter().enumerate().skip(hidden) {
        let indent = "  ".repeat((depth - hidden).min(columns / 4));
        put(
            buffer,
            area,
            depth - hidden + 1,
            &Line::from(left(&format!(" {indent}{}", frame_name(frame)), columns)),
        );
    }
}

/// A frame in words: `LR_PE  Runtime, Execution (subtracted)`.
fn frame_name(frame: StackFrame) -> String {
    let part = match frame.part {
        FramePart::Inside => "",
        FramePart::Subtracted => " (subtracted)",
        FramePart::Handed => " (on another thread)",
        FramePart::Part => " (of an asynchronous run)",
    };
    let bare = StackFrame { part: FramePart::Inside, ..frame };
    match frame.tag {
        Some(tag) => format!("{bare}  {}, {}{part}", tag.layer().name(), tag.phase().name()),
        None => format!("{bare}{part}"),
    }
}
