//! The CPUs view: a bar over the window for every cluster and CPU, a legend, and the details of the selected one; below,
//! use of devices, measured rails.

mod concurrency;
mod details;

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::ViewState;
use crate::report::cpu_or_cluster::{
    self, CpuOrCluster, CpuOrClusterRow, CpuState, cpu_state_name, find, frequencies, shares,
};
use crate::report::number_format;
use crate::report::snapshot::Snapshot;
use crate::tui::actions::Action;
use crate::tui::drawing::text::{left, percent_of_tenths, put, right, say, width};
use crate::tui::drawing::theme::Theme;
use crate::tui::drawing::{device_usage, rails};
use crate::tui::lists::list::List;
use crate::tui::sample::Sample;

/// The state of the CPUs view: each cluster followed by its CPUs; CPUs without a cluster come last.
pub(crate) type Cpus = List<CpuOrCluster>;

/// Columns of a name, with the sign of the selection.
const NAME: usize = 13;
/// Columns of the three percentages.
const FIGURES: usize = 3 * 7;

impl ViewState for Cpus {
    fn refresh(&mut self, sample: &Sample) {
        self.set_keys(cpu_or_cluster::all(&sample.snapshot));
    }

    fn draw(&mut self, sample: &Sample, theme: Theme, area: Rect, buffer: &mut Buffer) {
        draw(self, sample, theme, area, buffer);
    }

    fn offers(&self, _: Action) -> bool {
        false
    }
}

fn draw(state: &mut Cpus, sample: &Sample, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let snapshot = &sample.snapshot;
    let [of_devices, of_rails] =
        [device_usage::height(snapshot, area.height), rails::height(snapshot, area.height)];
    let [area, devices_area, rails_area] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(of_devices), Constraint::Length(of_rails)])
            .areas(area);
    if of_devices > 0 {
        device_usage::draw(snapshot, devices_area, buffer);
    }
    if of_rails > 0 {
        rails::draw(snapshot, rails_area, buffer);
    }
    let Some(unit) = state.selected().cloned() else {
        let ended = sample.health.ended.is_some();
        let text = if ended { "no power events were seen" } else { "waiting for power events..." };
        say(buffer, area, text);
        return;
    };
    let Some(row) = find(snapshot, &unit) else { return };
    let legend = legend(snapshot, row.cluster, theme, usize::from(area.width));
    let legend_rows = legend.len().min(if area.height < 16 { 1 } else { 3 }) as u16;
    let wanted = details::height(&row, usize::from(area.width)) as u16;
    let all = state.keys().len() as u16 + 1;
    // The list gives way to the details, but not below half.
    let least = all.min(area.height * 5 / 9);
    let listed = all.min(area.height.saturating_sub(legend_rows + wanted)).max(least);
    let [list_area, legend_area, details_area] =
        Layout::vertical([Constraint::Length(listed), Constraint::Length(legend_rows), Constraint::Fill(1)])
            .areas(area);
    list(state, snapshot, theme, list_area, buffer);
    for (index, line) in legend.iter().take(usize::from(legend_rows)).enumerate() {
        put(buffer, legend_area, index, line);
    }
    details::draw(&unit, &row, snapshot, theme, details_area, buffer);
}

fn list(state: &mut Cpus, snapshot: &Snapshot, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let columns = usize::from(area.width);
    let bar = columns.saturating_sub(NAME + 1 + FIGURES);
    let page = usize::from(area.height).saturating_sub(1);
    let count = state.keys().len();
    let first = state.scroll(count, state.index(), page);
    let window = format!("window {}", number_format::duration_ns(snapshot.window.length_ns()));
    let header =
        format!("{} {}{:>7}{:>7}{:>7}", left(" unit", NAME), left(&window, bar), "run", "idle", "other");
    put(buffer, area, 0, &Line::styled(header, Theme::heading()));
    for (index, unit) in state.keys().iter().enumerate().skip(first).take(page) {
        let Some(row) = find(snapshot, unit) else { continue };
        let screen = index - first + 1;
        let (sign, style) = Theme::line(index == state.index());
        let name = match unit {
            CpuOrCluster::Cluster(name) => {
                Span::styled(left(&format!("{sign}{name}"), NAME), Theme::heading().patch(style))
            }
            CpuOrCluster::Cpu(cpu) => Span::styled(left(&format!("{sign}  cpu{cpu}"), NAME), style),
        };
        let mut line = Line::from(vec![name, Span::raw(" ")]);
        line.extend(segments(&row, snapshot, theme, bar));
        line.push_span(Span::raw(summary(&row)));
        put(buffer, area, screen, &line);
    }
}

/// The bar of a row.
fn segments(
    row: &CpuOrClusterRow<'_>,
    snapshot: &Snapshot,
    theme: Theme,
    columns: usize,
) -> Vec<Span<'static>> {
    let parts = row.parts();
    let known = frequencies(snapshot, row.cluster);
    let cells = shares(&parts.iter().map(|part| part.1).collect::<Vec<_>>(), columns as u64);
    if cells.iter().sum::<u64>() == 0 {
        return vec![Span::styled(left(number_format::UNKNOWN, columns), Theme::dim())];
    }
    let segment = |(&(state, _), &cells): (&(CpuState, u64), &u64)| {
        let (glyph, style) = theme.glyph(state, &known);
        Span::styled(glyph.to_string().repeat(cells as usize), style)
    };
    parts.iter().zip(&cells).map(segment).collect()
}

/// Shares of running, idle and everything else; together 100.
fn summary(row: &CpuOrClusterRow<'_>) -> String {
    let parts = row.parts();
    let tenths = shares(&parts.iter().map(|part| part.1).collect::<Vec<_>>(), 1000);
    if tenths.iter().sum::<u64>() == 0 {
        return right(number_format::UNKNOWN, 7).repeat(3);
    }
    let mut sums = [0; 3];
    for ((state, _), tenths) in parts.iter().zip(tenths) {
        let place = match state {
            CpuState::Running(_) => 0,
            CpuState::Idle(_) | CpuState::IdleUnknown => 1,
            CpuState::Offline | CpuState::Unknown => 2,
        };
        sums[place] += tenths;
    }
    sums.map(|tenths| right(&percent_of_tenths(tenths), 7)).concat()
}

/// Meanings of the characters in the bars of `cluster`: those that occur there, in the order of a bar.
fn legend(snapshot: &Snapshot, cluster: &str, theme: Theme, columns: usize) -> Vec<Line<'static>> {
    let known = frequencies(snapshot, cluster);
    let units = snapshot
        .clusters
        .iter()
        .filter(|row| row.cluster == cluster)
        .map(|row| CpuOrCluster::Cluster(row.cluster.clone()))
        .chain(
            snapshot.cpus.iter().filter(|row| row.cluster == cluster).map(|row| CpuOrCluster::Cpu(row.cpu)),
        );
    let mut present: Vec<(CpuState, String)> = Vec::new();
    for row in units.filter_map(|unit| find(snapshot, &unit)) {
        for (state, ns) in row.parts() {
            if ns > 0 && !present.iter().any(|(other, _)| *other == state) {
                present.push((state, cpu_state_name(state, row.idle)));
            }
        }
    }
    present.sort_by_key(|&(state, _)| match state {
        CpuState::Running(Some(khz)) => (0, u32::MAX - khz),
        CpuState::Running(None) => (1, 0),
        CpuState::Idle(state) => (2, state),
        CpuState::IdleUnknown => (3, 0),
        CpuState::Offline => (4, 0),
        CpuState::Unknown => (5, 0),
    });
    // More than eight frequencies share heights: then one entry tells the range.
    let mut entries: Vec<(char, Style, String, String)> = Vec::new();
    for (state, name) in present {
        let (sign, style) = theme.glyph(state, &known);
        match entries.last_mut() {
            Some((last, _, _, slowest)) if *last == sign => *slowest = name,
            _ => entries.push((sign, style, name.clone(), name)),
        }
    }
    let title = if cluster.is_empty() { " legend:".to_owned() } else { format!(" {cluster}:") };
    let mut lines = vec![Line::from(Span::styled(title, Theme::heading()))];
    for (sign, style, fastest, slowest) in entries {
        let text = format!(" {} ", range(&slowest, &fastest));
        let used = lines.last().map_or(0, Line::width);
        if used + 2 + width(&text) > columns {
            lines.push(Line::default());
        }
        if let Some(line) = lines.last_mut() {
            line.push_span(Span::raw(" "));
            line.push_span(Span::styled(sign.to_string(), style));
            line.push_span(Span::raw(text));
        }
    }
    lines
}

/// `400-600 MHz`, `800 MHz-1.00 GHz`, or the one name if there is only one.
fn range(slowest: &str, fastest: &str) -> String {
    if slowest == fastest {
        return fastest.to_owned();
    }
    match (slowest.split_once(' '), fastest.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => format!("{number}-{fastest}"),
        _ => format!("{slowest}-{fastest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_to_eight_frequencies_look_different() {
        let theme = Theme::new(false);
        for count in 1..=8 {
            let known: Vec<u32> = (1..=count).map(|step| step * 100_000).collect();
            let mut signs: Vec<char> =
                known.iter().map(|&khz| theme.glyph(CpuState::Running(Some(khz)), &known).0).collect();
            assert_eq!(signs.last(), Some(&'█'));
            signs.dedup();
            assert_eq!(signs.len(), count as usize);
        }
    }

    #[test]
    fn ranges_name_a_common_unit_once() {
        assert_eq!(range("400 MHz", "600 MHz"), "400-600 MHz");
        assert_eq!(range("800 MHz", "1.00 GHz"), "800 MHz-1.00 GHz");
        assert_eq!(range("1.80 GHz", "1.80 GHz"), "1.80 GHz");
    }
}
