//! The energy view: energy by cluster, for each execution, and by layer and phase; measured rails.

use nntrace_common::layer::{Layer, Phase, Tag};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use super::ViewState;
use crate::report::headline::main_function;
use crate::report::incomplete_figures::Figures;
use crate::report::number_format::{self, PERCENT_WIDTH, UNKNOWN};
use crate::report::snapshot::{EnergyPartsRow, EnergyRow, PhaseEnergyRow, Snapshot};
use crate::tui::drawing::names::{no_context_switches, process_name};
use crate::tui::drawing::rails;
use crate::tui::drawing::text::{bar, below_first, left, list, put, right, rule, say};
use crate::tui::drawing::theme::Theme;
use crate::tui::lists::table::{Column, Table};
use crate::tui::sample::Sample;

/// Identity of a row from one snapshot to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EnergyKey {
    /// Process; `None` for all that no thread of a traced process ran.
    pub pid: Option<u32>,
    /// Layer and phase; `None` outside of sections.
    pub tag: Option<(Layer, Phase)>,
}

/// The columns that rows can be sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EnergySort {
    /// Energy.
    Energy,
    /// The order of the snapshot: process, layer, phase.
    Name,
}

impl Column for EnergySort {
    const ALL: &'static [Self] = &[Self::Energy, Self::Name];

    fn value(self, sample: &Sample, row: usize) -> Option<u64> {
        match self {
            // The bits of numbers that are not negative have their order.
            Self::Energy => Some((rows(&sample.snapshot)[row].energy.total + 0.0).max(0.0).to_bits()),
            Self::Name => None,
        }
    }
}

/// Rows of the energy by layer and phase.
pub(crate) fn rows(snapshot: &Snapshot) -> &[PhaseEnergyRow] {
    snapshot.energy.as_ref().map_or(&[], |energy| &energy.phases)
}

/// The state of the energy view.
pub(crate) type Energy = Table<EnergyKey, EnergySort>;

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

impl ViewState for Energy {
    fn refresh(&mut self, sample: &Sample) {
        let rows = rows(&sample.snapshot);
        self.arrange(sample, 0..rows.len());
        self.identify(|row| {
            let PhaseEnergyRow { pid, layer, phase, .. } = rows[row];
            EnergyKey { pid, tag: layer.zip(phase) }
        });
    }

    fn draw(&mut self, sample: &Sample, theme: Theme, area: Rect, buffer: &mut Buffer) {
        draw(self, sample, theme, area, buffer);
    }
}

fn draw(state: &mut Energy, sample: &Sample, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let snapshot = &sample.snapshot;
    let rails_height = rails::height(snapshot, area.height);
    let [area, rails_area] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(rails_height)]).areas(area);
    if rails_height > 0 {
        rails::draw(snapshot, rails_area, buffer);
    }
    let Some(energy) = &snapshot.energy else {
        let text = "no energy model: write one with `nntrace-bpf energy-model init`, then pass it with --energy-model FILE";
        say(buffer, area, text);
        return;
    };
    let of_clusters = energy.clusters.len() as u16 + 1;
    let [summary_area, clusters_area, phases_area] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(of_clusters.min(area.height / 2)),
        Constraint::Fill(1),
    ])
    .areas(area);
    let amounts = Amounts { energy, figures: Figures::under(snapshot, "energy") };
    summary(amounts, snapshot, summary_area, buffer);
    clusters(amounts, clusters_area, buffer);
    phases(state, amounts, snapshot, theme, phases_area, buffer);
}

/// Energies as text, marked where records were lost.
#[derive(Clone, Copy)]
struct Amounts<'a> {
    energy: &'a EnergyRow,
    figures: Figures,
}

impl Amounts<'_> {
    fn of(self, value: f64) -> String {
        self.figures.text(&number_format::energy(value, self.energy.unit))
    }

    /// A partly unknown energy that is at most `most`.
    fn known(self, value: f64, most: f64) -> String {
        self.figures.text(&number_format::known_energy(value, most, self.energy.unit))
    }

    /// The range of an energy that is known in part, in brackets.
    fn range(self, least: f64, most: f64, words: &str) -> String {
        if least < most {
            format!(" ({} to {}{words})", self.of(least), self.of(most))
        } else {
            String::new()
        }
    }
}

/// All of it, and that of each call.
fn summary(amounts: Amounts<'_>, snapshot: &Snapshot, area: Rect, buffer: &mut Buffer) {
    let columns = usize::from(area.width);
    let EnergyRow { total, total_min, total_max, ref model, .. } = *amounts.energy;
    let known = amounts.known(total, total_max);
    let range = amounts.range(total_min, total_max, " including unknown states");
    let all = format!(" total {known}{range}, model {model}");
    put(buffer, area, 0, &Line::styled(left(&all, columns), Theme::heading()));
    if let Some(function) = main_function(&snapshot.functions) {
        let calls = function.count as f64;
        let (tag, name) = (Tag::new(function.layer, function.phase), &function.name);
        let known = amounts.known(total / calls, total_max);
        let range = amounts.range(total_min / calls, total_max / calls, "");
        let calls = number_format::calls(function.count);
        let each = format!(" {known} per call of {tag} {name}{range}, {calls}");
        put(buffer, area, 1, &Line::from(left(&each, columns)));
    }
}

fn clusters(amounts: Amounts<'_>, area: Rect, buffer: &mut Buffer) {
    let columns = usize::from(area.width);
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
    let rows = amounts.energy.clusters.iter().map(|cluster| {
        let EnergyPartsRow { cluster_idle, cluster_active, cpu_idle, cpu_active, wakeups } = cluster.parts;
        let known = amounts.known(cluster.total, cluster.total_max);
        let [least, most] = [cluster.total_min, cluster.total_max].map(|value| amounts.of(value));
        let parts = [cpu_active, cpu_idle, cluster_active, cluster_idle, wakeups];
        line(&cluster.cluster, [known, least, most], parts.map(|value| amounts.of(value)))
    });
    list(buffer, below_first(area), &rows.collect::<Vec<_>>());
}

fn phases(
    state: &mut Energy,
    amounts: Amounts<'_>,
    snapshot: &Snapshot,
    theme: Theme,
    area: Rect,
    buffer: &mut Buffer,
) {
    let columns = usize::from(area.width);
    put(buffer, area, 0, &rule("by layer and phase", "without nested sections", columns));
    let below = below_first(area);
    let rows = rows(snapshot);
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
        let total = amounts.energy.total;
        let share = if total > 0.0 { row.energy.total / total } else { 0.0 };
        let percent = if total > 0.0 { number_format::percent_of(share) } else { UNKNOWN.to_owned() };
        let text = format!(
            "{sign}{} {}",
            right(&amounts.known(row.energy.total, row.energy.total_max), FIGURE),
            right(&percent, PERCENT_WIDTH),
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
    let Some(pid) = row.pid else { return "everything else: idle CPUs, other processes".to_owned() };
    let process = process_name(snapshot, pid);
    match row.layer.zip(row.phase) {
        Some((layer, phase)) => format!("{} {} in {process}", layer.name(), phase.name()),
        None => format!("outside of sections in {process}"),
    }
}
