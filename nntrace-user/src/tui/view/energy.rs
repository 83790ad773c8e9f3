//! The energy view: energy by cluster, for each execution, and by layer and phase; measured rails.

use nntrace_common::layer::Tag;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use super::text::{bar, left, put, right, rule, say};
use super::theme::Theme;
use super::{no_context_switches, process_name, rails};
use crate::report::headline::main_function;
use crate::report::incomplete_figures::Figures;
use crate::report::number_format::{self, PERCENT_WIDTH};
use crate::report::snapshot::{EnergyPartsRow, EnergyRow, PhaseEnergyRow, Snapshot};
use crate::tui::state::Sample;
use crate::tui::state::energy::{self, Energy, EnergySort};

/// Width from which on there is room for bars, and for what the energy was spent for.
const WIDE: usize = 110;
/// Columns of a bar.
const BAR: usize = 20;
/// Columns of an energy.
const FIGURE: usize = 9;
/// Columns of the name of a cluster.
const NAME: usize = 12;
/// Titles of the parts, each as wide as an energy and its blank or wider.
const PARTS: [&str; 5] = ["CPUs active", "CPUs idle", "cluster active", "cluster idle", "wake-ups"];

/// Draws the view.
pub(crate) fn draw(state: &mut Energy, sample: &Sample, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let snapshot = &sample.snapshot;
    let rails_height = rails::height(snapshot, area.height);
    let [area, rails_area] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(rails_height)]).areas(area);
    if rails_height > 0 {
        rails::draw(snapshot, rails_area, buffer);
    }
    let Some(energy) = &snapshot.energy else {
        let text =
            "no energy model: --energy-model FILE uses one, and `nntrace-bpf energy-model init` writes one";
        say(buffer, area, text);
        return;
    };
    let of_clusters = energy.clusters.len() as u16 + 1;
    let [summary_area, clusters_area, phases_area] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(of_clusters.min(area.height / 3)),
        Constraint::Fill(1),
    ])
    .areas(area);
    summary(energy, snapshot, summary_area, buffer);
    clusters(energy, snapshot, clusters_area, buffer);
    phases(state, energy, snapshot, theme, phases_area, buffer);
}

/// An energy, marked where records were lost.
fn amount(value: f64, energy: &EnergyRow, snapshot: &Snapshot) -> String {
    Figures::under(snapshot, "energy").text(&number_format::energy(value, energy.unit))
}

/// All of it, and for each execution.
fn summary(energy: &EnergyRow, snapshot: &Snapshot, area: Rect, buffer: &mut Buffer) {
    let columns = usize::from(area.width);
    let amount = |value| amount(value, energy, snapshot);
    let range = if energy.total_min < energy.total_max {
        format!(" ({} to {} with what is unknown)", amount(energy.total_min), amount(energy.total_max))
    } else {
        String::new()
    };
    let all = format!(" {} in all{range}, by {}", amount(energy.total), energy.model);
    put(buffer, area, 0, &Line::styled(left(&all, columns), Theme::heading()));
    if let Some(function) = main_function(&snapshot.functions) {
        let each = format!(
            " {} for each of {} of {} {}",
            amount(energy.total / function.count as f64),
            number_format::calls(function.count),
            Tag::new(function.layer, function.phase),
            function.name
        );
        put(buffer, area, 1, &Line::from(left(&each, columns)));
    }
}

fn clusters(energy: &EnergyRow, snapshot: &Snapshot, area: Rect, buffer: &mut Buffer) {
    let columns = usize::from(area.width);
    let amount = |value| amount(value, energy, snapshot);
    let line = |name: &str, figures: [String; 3], parts: [String; 5]| {
        let mut cells = vec![String::new(), left(name, NAME)];
        cells.extend(figures.iter().map(|figure| right(figure, FIGURE)));
        if columns >= WIDE {
            let parts = PARTS.iter().zip(parts);
            cells.extend(parts.map(|(title, part)| right(&part, FIGURE.max(title.len() + 1))));
        }
        cells.join(" ")
    };
    let titles = line("cluster", ["energy", "from", "to"].map(str::to_owned), PARTS.map(str::to_owned));
    put(buffer, area, 0, &Line::styled(titles, Theme::heading()));
    for (row, cluster) in energy.clusters.iter().enumerate() {
        let EnergyPartsRow { cluster_idle, cluster_active, cpu_idle, cpu_active, wakeups } = cluster.parts;
        let text = line(
            &cluster.cluster,
            [cluster.total, cluster.total_min, cluster.total_max].map(amount),
            [cpu_active, cpu_idle, cluster_active, cluster_idle, wakeups].map(amount),
        );
        put(buffer, area, row + 1, &Line::from(text));
    }
}

fn phases(
    state: &mut Energy,
    energy: &EnergyRow,
    snapshot: &Snapshot,
    theme: Theme,
    area: Rect,
    buffer: &mut Buffer,
) {
    let columns = usize::from(area.width);
    put(buffer, area, 0, &rule("by layer and phase", "each without what is nested in it", columns));
    let below = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    let rows = energy::rows(snapshot);
    if rows.is_empty() {
        say(buffer, below, no_context_switches(snapshot));
        return;
    }
    let blank = if columns >= WIDE { BAR + 1 } else { 0 };
    let titles = format!(
        " {} {}{}  layer and phase{}",
        right(&format!("energy{}", state.arrow(EnergySort::Energy)), FIGURE),
        right("share", PERCENT_WIDTH),
        " ".repeat(blank),
        state.arrow(EnergySort::Name),
    );
    put(buffer, below, 0, &Line::styled(titles, Theme::heading()));
    let page = usize::from(below.height).saturating_sub(1);
    let first = state.list.scroll(state.order.len(), state.list.index(), page);
    for (position, &index) in state.order.iter().enumerate().skip(first).take(page) {
        let row = &rows[index];
        let (sign, style) = Theme::line(position == state.list.index());
        let share = if energy.total > 0.0 { row.energy.total / energy.total } else { 0.0 };
        let text = format!(
            "{sign}{} {}",
            right(&amount(row.energy.total, energy, snapshot), FIGURE),
            right(&format!("{:.1}%", share * 100.0), PERCENT_WIDTH),
        );
        let mut line = Line::from(Span::styled(text, style));
        if columns >= WIDE {
            line.push_span(Span::styled(format!(" {}", bar(share, BAR)), theme.bar()));
        }
        let room = columns.saturating_sub(line.width());
        line.push_span(Span::styled(left(&format!("  {}", name(row, snapshot)), room), style));
        put(buffer, below, position - first + 1, &line);
    }
}

fn name(row: &PhaseEnergyRow, snapshot: &Snapshot) -> String {
    let Some(pid) = row.pid else { return "all else: idle CPUs, other processes".to_owned() };
    let process = process_name(snapshot, pid);
    match row.layer.zip(row.phase) {
        Some((layer, phase)) => format!("{} {} in {process}", layer.name(), phase.name()),
        None => format!("outside of sections in {process}"),
    }
}
