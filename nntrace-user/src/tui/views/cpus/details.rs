//! The details of one CPU or cluster: its states as tables.

use std::cmp::Reverse;

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use super::concurrency;
use crate::model::cpu_list;
use crate::report::cpu_or_cluster::{
    CpuOrCluster, CpuOrClusterRow, CpuState, cpu_state_name, frequencies, shares,
};
use crate::report::number_format::{self, COUNT_WIDTH, DURATION_WIDTH};
use crate::report::snapshot::{ConcurrencyRow, Snapshot};
use crate::tui::drawing::text::{left, percent_of_tenths, put, right, rule};
use crate::tui::drawing::theme::Theme;

/// Width from which on there is room for every column, and for the concurrency beside.
const WIDE: usize = 120;
/// Width from which on idle states show their shortest and longest stay.
const STAYS: usize = 44;
/// Width from which on idle states show how many stays were too short or too long for them.
const VERDICTS: usize = 70;

/// Columns of the table of running times.
const RUNNING: u16 = 2 + 8 + 1 + 7 + 1 + 6 + 1 + 6;

/// How many rows the details of `row` need in a view of that many columns.
pub(crate) fn height(row: &CpuOrClusterRow<'_>, columns: usize) -> usize {
    let (running, other) = parts(row, columns >= WIDE);
    let concurrency = row.group.map_or(0, |group| group.concurrency.len());
    let right =
        if columns >= WIDE { other.len().max(concurrency) } else { other.len() + concurrency.div_ceil(3) };
    2 + running.len().max(right).max(1)
}

/// A part of the window, with its share in tenths of a percent.
struct Part {
    state: CpuState,
    ns: u64,
    tenths: u64,
}

/// The running parts, and the others. Empty ones are left out, except idle states: that one was never entered is
/// worth knowing. With `effective`, frequencies that the CPU only ran at because others asked for them are there too.
fn parts(row: &CpuOrClusterRow<'_>, effective: bool) -> (Vec<Part>, Vec<Part>) {
    let parts = row.parts();
    let tenths = shares(&parts.iter().map(|part| part.1).collect::<Vec<_>>(), 1000);
    let (mut running, other): (Vec<_>, Vec<_>) = parts
        .into_iter()
        .zip(tenths)
        .map(|((state, ns), tenths)| Part { state, ns, tenths })
        .filter(|part| part.ns > 0 || matches!(part.state, CpuState::Idle(_)))
        .partition(|part| matches!(part.state, CpuState::Running(_)));
    if let Some(cpu) = row.cpu.filter(|_| effective) {
        for row in cpu.effective.iter().filter(|row| row.ns > 0) {
            let state = CpuState::Running(row.khz);
            if !running.iter().any(|part| part.state == state) {
                running.push(Part { state, ns: 0, tenths: 0 });
            }
        }
        running.sort_by_key(|part| match part.state {
            CpuState::Running(khz) => Reverse(khz),
            _ => Reverse(None),
        });
    }
    (running, other)
}

/// Draws the details into all of `area`.
pub(crate) fn draw(
    unit: &CpuOrCluster,
    row: &CpuOrClusterRow<'_>,
    snapshot: &Snapshot,
    theme: Theme,
    area: Rect,
    buffer: &mut Buffer,
) {
    if area.height < 3 {
        return;
    }
    let columns = usize::from(area.width);
    let title = match unit {
        CpuOrCluster::Cluster(name) => {
            let cpus = row.group.map(|group| cpu_list::format(&group.cpus)).unwrap_or_default();
            format!("cluster {name}: cpu {cpus}")
        }
        CpuOrCluster::Cpu(cpu) if row.cluster.is_empty() => format!("cpu{cpu}"),
        CpuOrCluster::Cpu(cpu) => format!("cpu{cpu} in cluster {}", row.cluster),
    };
    put(buffer, area, 0, &rule(&title, "", columns));
    let below = Rect { y: area.y + 1, height: area.height - 1, ..area };
    let concurrency = row.group.map_or(&[][..], |group| &group.concurrency);
    let beside = columns >= WIDE && !concurrency.is_empty();
    let effective = columns >= WIDE && row.cpu.is_some();
    let spare = area.width.saturating_sub(RUNNING + 1);
    let [running_area, _, idle_area, _, concurrency_area] = Layout::horizontal([
        Constraint::Length(RUNNING + if effective { 11 } else { 0 }),
        Constraint::Length(if columns >= WIDE { 3 } else { 1 }),
        Constraint::Length(spare.min(76)),
        Constraint::Length(if beside { 3 } else { 0 }),
        Constraint::Fill(1),
    ])
    .areas(below);
    let known = frequencies(snapshot, row.cluster);
    let painter = Painter { row, known: &known, theme };
    let (running, other) = parts(row, effective);
    painter.running(&running, effective, running_area, buffer);
    let extra = if beside { &[][..] } else { concurrency };
    painter.idle(&other, extra, idle_area, buffer);
    if beside {
        table(buffer, concurrency_area, "CPUs at once       time  share", concurrency::lines(concurrency));
    }
}

/// Draws a heading and as many of `lines` as fit; the last row tells how many do not.
fn table(buffer: &mut Buffer, area: Rect, heading: &str, mut lines: Vec<Line<'static>>) {
    let room = usize::from(area.height).saturating_sub(1);
    if lines.len() > room {
        let hidden = lines.len() - room.saturating_sub(1);
        lines.truncate(room.saturating_sub(1));
        lines.push(Line::styled(format!("  … {hidden} more"), Theme::dim()));
    }
    put(buffer, area, 0, &Line::styled(heading.to_owned(), Theme::heading()));
    for (index, line) in lines.iter().enumerate() {
        put(buffer, area, index + 1, line);
    }
}

/// Painter of the tables of one CPU or cluster.
struct Painter<'a> {
    row: &'a CpuOrClusterRow<'a>,
    known: &'a [u32],
    theme: Theme,
}

impl Painter<'_> {
    fn sign(&self, state: CpuState) -> Span<'static> {
        let (sign, style) = self.theme.glyph(state, self.known);
        Span::styled(format!("{sign} "), style)
    }

    fn running(&self, parts: &[Part], effective: bool, area: Rect, buffer: &mut Buffer) {
        let mut heading = "running       time  share   hits".to_owned();
        if effective {
            heading.push_str("  effective");
        }
        let line = |&Part { state, ns, tenths }: &Part| {
            let CpuState::Running(khz) = state else {
                return Line::default();
            };
            let hits = self.row.running.iter().filter(|row| row.khz == khz).map(|row| row.hits).sum();
            let name = khz.map_or_else(|| "unknown".to_owned(), number_format::khz);
            let mut text = format!(
                "{} {} {} {}",
                left(&name, 8),
                right(&number_format::duration_ns(ns), DURATION_WIDTH),
                right(&percent_of_tenths(tenths), 6),
                right(&number_format::count(hits), COUNT_WIDTH),
            );
            if let Some(cpu) = self.row.cpu.filter(|_| effective) {
                let ns = cpu.effective.iter().filter(|row| row.khz == khz).map(|row| row.ns).sum();
                text.push_str(&right(&number_format::duration_ns(ns), 11));
            }
            Line::from(vec![self.sign(state), Span::raw(text)])
        };
        let mut lines: Vec<_> = parts.iter().map(line).collect();
        if lines.is_empty() {
            lines.push(Line::from("  never"));
        }
        table(buffer, area, &heading, lines);
    }

    fn idle(&self, parts: &[Part], concurrency: &[ConcurrencyRow], area: Rect, buffer: &mut Buffer) {
        let columns = usize::from(area.width);
        let stays = columns >= STAYS;
        let verdicts = columns >= VERDICTS;
        let fixed = 2 + 8 + 7 + 7 + if stays { 16 } else { 0 } + if verdicts { 14 } else { 0 };
        let name = columns.saturating_sub(fixed).min(20);
        let mut heading = format!("{}    time  share   hits", left("idle", name + 2));
        if stays {
            heading.push_str("     min     max");
        }
        if verdicts {
            heading.push_str("  early   late");
        }
        // The longest of our own names is for the legend, where there is room.
        let cpu_state_name = |state| match state {
            CpuState::IdleUnknown => "idle".to_owned(),
            _ => cpu_state_name(state, self.row.idle),
        };
        let line = |&Part { state, ns, tenths }: &Part| {
            let idle = self.row.idle.iter().find(|row| state == CpuState::Idle(row.state));
            let mut text = format!(
                "{} {} {} {}",
                left(&cpu_state_name(state), name),
                right(&number_format::duration_ns(ns), DURATION_WIDTH),
                right(&percent_of_tenths(tenths), 6),
                right(
                    &number_format::or_unknown(idle.map(|row| row.hits), number_format::count),
                    COUNT_WIDTH
                ),
            );
            let mut push = |value: Option<u64>, format: fn(u64) -> String, width: usize| {
                text.push_str(&right(&number_format::or_unknown(value, format), width));
            };
            if stays {
                push(idle.and_then(|row| row.min_ns), number_format::duration_ns, DURATION_WIDTH + 1);
                push(idle.and_then(|row| row.max_ns), number_format::duration_ns, DURATION_WIDTH + 1);
            }
            if verdicts {
                push(idle.and_then(|row| row.early), number_format::count, COUNT_WIDTH + 1);
                push(idle.and_then(|row| row.late), number_format::count, COUNT_WIDTH + 1);
            }
            Line::from(vec![self.sign(state), Span::raw(text)])
        };
        let mut lines: Vec<_> = parts.iter().map(line).collect();
        lines.extend(concurrency::in_short(concurrency, columns));
        table(buffer, area, &heading, lines);
    }
}
