//! The threads view: whether threads ran, waited or slept, and the selected one with its functions.

use std::cmp::Reverse;

use nntrace_common::layer::Tag;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use super::ViewState;
use crate::report::incomplete_figures::Figures;
use crate::report::number_format::{self, DURATION_WIDTH, PERCENT_WIDTH};
use crate::report::snapshot::{FunctionRow, FunctionThreadRow, Snapshot, ThreadRow};
use crate::tui::drawing::names::{no_context_switches, process_name};
use crate::tui::drawing::text::{left, list, put, right, rule, say};
use crate::tui::drawing::theme::Theme;
use crate::tui::lists::table::{Column, Table};
use crate::tui::sample::{Sample, added::ThreadKey};

/// The columns that threads can be sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadSort {
    /// Time on a CPU.
    OnCpu,
    /// Time on a CPU since the snapshot before.
    Now,
    /// Time waiting for a CPU.
    Runnable,
    /// Time asleep.
    Asleep,
    /// The order of the snapshot: process, thread.
    Id,
}

impl Column for ThreadSort {
    const ALL: &'static [Self] = &[Self::OnCpu, Self::Now, Self::Runnable, Self::Asleep, Self::Id];

    fn value(self, sample: &Sample, index: usize) -> Option<u64> {
        let row = &sample.snapshot.threads[index];
        match self {
            Self::OnCpu => Some(row.on_cpu_ns),
            Self::Now => sample.added.threads.get(index).copied(),
            Self::Runnable => Some(row.runnable_ns),
            Self::Asleep => Some(row.asleep_ns()),
            Self::Id => None,
        }
    }
}

/// The state of the threads view.
pub(crate) type Threads = Table<ThreadKey, ThreadSort>;

impl Threads {
    /// The selected thread.
    #[must_use]
    pub(crate) fn row<'a>(&self, snapshot: &'a Snapshot) -> Option<&'a ThreadRow> {
        snapshot.threads.get(self.selected()?)
    }
}

/// Width from which on there is room for bars.
const BARS: usize = 80;
/// Columns of a bar.
const BAR: usize = 20;
/// Lines of the selected thread: a rule, its states, and its functions.
const DETAILS: u16 = 6;
/// Titles and widths of the figures, each after a blank.
const FIGURES: [(&str, Option<ThreadSort>, usize); 5] = [
    ("on CPU", Some(ThreadSort::OnCpu), DURATION_WIDTH + 1),
    ("share", None, PERCENT_WIDTH),
    ("now", Some(ThreadSort::Now), PERCENT_WIDTH),
    ("runnable", Some(ThreadSort::Runnable), PERCENT_WIDTH + 4),
    ("asleep", Some(ThreadSort::Asleep), PERCENT_WIDTH + 2),
];

impl ViewState for Threads {
    fn refresh(&mut self, sample: &Sample) {
        let rows = &sample.snapshot.threads;
        let keys: Vec<ThreadKey> = ThreadKey::all(rows).collect();
        self.arrange(sample, 0..rows.len());
        self.identify(|row| keys[row]);
    }

    fn draw(&mut self, sample: &Sample, theme: Theme, area: Rect, buffer: &mut Buffer) {
        draw(self, sample, theme, area, buffer);
    }
}

fn draw(state: &mut Threads, sample: &Sample, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let snapshot = &sample.snapshot;
    let Some(thread) = state.row(snapshot) else {
        say(buffer, area, no_context_switches(snapshot));
        return;
    };
    let details = if area.height < 14 { 0 } else { DETAILS };
    let [table_area, details_area] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(details)]).areas(area);
    selected(thread, snapshot, theme, details_area, buffer);
    table(state, sample, theme, table_area, buffer);
}

/// States of a thread: their times (ns), their names, and how they are drawn.
fn states(row: &ThreadRow, theme: Theme) -> [(u64, &'static str, Span<'static>); 5] {
    [
        (row.on_cpu_ns, "on CPU", Span::styled("█", theme.running())),
        (row.runnable_ns, "runnable", Span::styled("▒", theme.unknown())),
        (row.sleeping_ns, "sleeping", Span::styled("·", theme.idle())),
        (row.uninterruptible_ns, "uninterruptible", Span::styled("=", theme.idle())),
        (row.unknown_ns, "unknown", Span::styled("?", theme.unknown())),
    ]
}

fn table(state: &mut Threads, sample: &Sample, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let columns = usize::from(area.width);
    let page = usize::from(area.height).saturating_sub(1);
    let first = state.list.scroll(state.order.len(), state.list.index(), page);
    put(buffer, area, 0, &Line::styled(header(state, &sample.snapshot, columns), Theme::heading()));
    for (position, &index) in state.order.iter().enumerate().skip(first).take(page) {
        let row = &sample.snapshot.threads[index];
        let added = sample.added.threads.get(index).copied();
        let now = number_format::or_unknown(added, |ns| {
            number_format::percent(ns.min(sample.added.interval_ns), sample.added.interval_ns)
        });
        let line = thread_line(row, &now, columns, position == state.list.index(), theme);
        put(buffer, area, position - first + 1, &line);
    }
}

/// The titles; `~` before them where records were lost.
fn header(state: &Threads, snapshot: &Snapshot, columns: usize) -> String {
    let incomplete = Figures::under(snapshot, "threads");
    let mut text = String::new();
    for (title, sort, width) in FIGURES {
        text.push(' ');
        let arrow = sort.map_or("", |sort| state.arrow(sort));
        text.push_str(&right(&format!("{}{arrow}", incomplete.text(title)), width));
    }
    if columns >= BARS {
        text += "  ";
        text += &left("states", BAR);
    }
    text + "  thread" + state.arrow(ThreadSort::Id)
}

fn thread_line(row: &ThreadRow, now: &str, columns: usize, is_selected: bool, theme: Theme) -> Line<'static> {
    let whole = row.lived_ns();
    let share = |ns| number_format::percent(ns, whole);
    let texts = [
        number_format::duration_ns(row.on_cpu_ns),
        share(row.on_cpu_ns),
        now.to_owned(),
        share(row.runnable_ns),
        share(row.asleep_ns()),
    ];
    let (sign, style) = Theme::line(is_selected);
    let mut text = String::from(sign);
    for (number, (figure, (.., width))) in texts.iter().zip(FIGURES).enumerate() {
        if number > 0 {
            text.push(' ');
        }
        text.push_str(&right(figure, width));
    }
    let mut line = Line::from(Span::styled(text, style));
    if columns >= BARS {
        line.push_span(Span::raw("  "));
        line.spans.extend(state_bar(row, theme));
    }
    let room = columns.saturating_sub(line.width());
    line.push_span(Span::styled(left(&format!("  {}", thread_name(row)), room), style));
    line
}

/// The states of a thread as parts of a bar.
fn state_bar(row: &ThreadRow, theme: Theme) -> Vec<Span<'static>> {
    let states = states(row, theme);
    let widths = widths(states.each_ref().map(|(ns, ..)| *ns));
    let parts = states.into_iter().zip(widths);
    parts.map(|((.., sign), width)| Span::styled(sign.content.repeat(width), sign.style)).collect()
}

/// Columns of each part of a bar, which together have all of it: its ends are rounded.
fn widths(times: [u64; 5]) -> [usize; 5] {
    let whole: u128 = times.iter().map(|&ns| u128::from(ns)).sum::<u128>().max(1);
    let (mut until, mut taken) = (0_u128, 0);
    times.map(|ns| {
        until += u128::from(ns);
        let end = usize::try_from((until * BAR as u128 + whole / 2) / whole).unwrap_or(BAR);
        let width = end - taken;
        taken = end;
        width
    })
}

fn thread_name(row: &ThreadRow) -> String {
    if row.tid == row.pid {
        format!("{} ({})", row.comm, row.tid)
    } else {
        format!("{} ({}) of {}", row.comm, row.tid, row.pid)
    }
}

/// The selected thread: its states in full, and the functions in which it spent most time.
fn selected(row: &ThreadRow, snapshot: &Snapshot, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let columns = usize::from(area.width);
    let title = format!("{} ({}) in {}", row.comm, row.tid, process_name(snapshot, row.pid));
    let same = snapshot.threads.iter().filter(|other| (other.pid, other.tid) == (row.pid, row.tid)).count();
    let note = if same > 1 { "functions: of all threads with this id" } else { "" };
    put(buffer, area, 0, &rule(&title, note, columns));
    let figures = Figures::under(snapshot, "threads");
    let mut lines = vec![Line::default()];
    for (ns, name, sign) in states(row, theme).into_iter().filter(|(ns, ..)| *ns > 0) {
        let text = format!(" {name} {}  ", figures.time(ns));
        let line = lines.last_mut().filter(|line| line.width() + 2 + text.len() <= columns);
        let state = [Span::raw(" "), sign, Span::raw(text)];
        match line {
            Some(line) => line.spans.extend(state),
            None => lines.push(Line::from(state.to_vec())),
        }
    }
    lines.iter().enumerate().for_each(|(screen, line)| put(buffer, area, screen + 1, line));
    let first = lines.len() + 1;
    let below = Rect {
        y: area.y + area.height.min(first as u16),
        height: area.height.saturating_sub(first as u16),
        ..area
    };
    let functions = functions(row, snapshot);
    if functions.is_empty() {
        put(buffer, below, 0, &Line::from(" no marked section has ended on this thread"));
    }
    let line = |(function, sum): &(&FunctionRow, FunctionThreadRow)| {
        format!(
            " {} excl in {}  {} {}",
            right(&number_format::duration_ns(sum.exclusive_ns), DURATION_WIDTH),
            number_format::calls(sum.count),
            Tag::new(function.layer, function.phase),
            function.name
        )
    };
    list(buffer, below, &functions.iter().map(line).collect::<Vec<_>>());
}

/// Functions that threads with the id of this one ran, those with the most exclusive time first.
fn functions<'a>(row: &ThreadRow, snapshot: &'a Snapshot) -> Vec<(&'a FunctionRow, FunctionThreadRow)> {
    let of_process = snapshot.functions.iter().filter(|function| function.pid == row.pid);
    let mut functions: Vec<_> = of_process
        .filter_map(|function| {
            let threads = &function.details.as_ref()?.threads;
            Some((function, *threads.iter().find(|thread| thread.tid == row.tid)?))
        })
        .collect();
    functions.sort_by_key(|(_, sum)| Reverse(sum.exclusive_ns));
    functions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_bar_fill_it() {
        assert_eq!(widths([1, 1, 0, 0, 0]), [10, 10, 0, 0, 0]);
        assert_eq!(widths([0; 5]), [0; 5]);
        assert_eq!(widths([1, 1, 1_000_000, 1, 1]), [0, 0, BAR, 0, 0]);
        assert_eq!(widths([u64::MAX; 5]), [4; 5]);
        assert_eq!(widths([1, 1, 1, 0, 0]), [7, 6, 7, 0, 0]);
    }
}
