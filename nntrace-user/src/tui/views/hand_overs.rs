//! The hand-overs view: how long work takes from one thread to another, the parts of the selected kind of hand-over, and the time
//! of outermost sections that no section covers.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;

use super::ViewState;
use crate::report::number_format::{self, COUNT_WIDTH, DURATION_WIDTH, PERCENT_WIDTH, UNKNOWN, or_unknown};
use crate::report::snapshot::{
    HandOverEvidence, HandOverPair, HandOverPart, MissingRow, Snapshot, SourceKind,
};
use crate::tui::drawing::states::StateTimes;
use crate::tui::drawing::text::{below_first, left, list, put, right, rule, say};
use crate::tui::drawing::theme::Theme;
use crate::tui::lists::table::{Column, Table};
use crate::tui::sample::Sample;

/// Lines of the selected pair: a rule, titles, and its parts.
const DETAILS: u16 = 8;
/// Height from which on there is room for these.
const WITH_DETAILS: u16 = 20;
/// Lines of the time in no section at most: a rule, titles, and the rows.
const MISSING: u16 = 7;

/// Identity of a row from one snapshot to the next: layers and phase in words, function, evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PairKey {
    layers: String,
    name: Option<String>,
    evidence: HandOverEvidence,
}

/// The columns that hand-overs can be sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PairSort {
    /// Sum of the latencies, or of the time until the work starts where no result is seen.
    Sum,
    /// Number of hand-overs.
    Count,
    /// Median.
    P50,
    /// 95th percentile.
    P95,
    /// Longest.
    Max,
    /// The order of the snapshot: evidence, layers, phase, function.
    Name,
}

/// Figures of a row: those from the dispatch to the result, or to the start of the work where no result is seen.
fn shown(pair: &HandOverPair) -> Option<&HandOverPart> {
    pair.latency.as_ref().or(pair.head.as_ref())
}

fn pairs(snapshot: &Snapshot) -> &[HandOverPair] {
    snapshot.hand_over_split.as_ref().map_or(&[], |split| &split.pairs)
}

impl Column for PairSort {
    const ALL: &'static [Self] = &[Self::Sum, Self::Count, Self::P50, Self::P95, Self::Max, Self::Name];

    fn value(self, sample: &Sample, row: usize) -> Option<u64> {
        let pair = &pairs(&sample.snapshot)[row];
        let part = shown(pair);
        match self {
            Self::Sum => part.map(HandOverPart::sum),
            Self::Count => Some(pair.count),
            Self::P50 => part.map(|part| part.p50_ns),
            Self::P95 => part.map(|part| part.p95_ns),
            Self::Max => part.map(|part| part.max_ns),
            Self::Name => None,
        }
    }
}

/// The state of the hand-overs view.
pub(crate) type HandOvers = Table<PairKey, PairSort>;

impl ViewState for HandOvers {
    fn refresh(&mut self, sample: &Sample) {
        let pairs = pairs(&sample.snapshot);
        self.arrange(sample, 0..pairs.len());
        self.identify(|row| {
            let HandOverPair { name, evidence, .. } = &pairs[row];
            PairKey { layers: about(&pairs[row]), name: name.clone(), evidence: *evidence }
        });
    }

    fn draw(&mut self, sample: &Sample, _: Theme, area: Rect, buffer: &mut Buffer) {
        let snapshot = &sample.snapshot;
        let missing = &snapshot.missing;
        let rows = missing.len() as u16;
        let of_missing = rows.saturating_add(2).min(MISSING).min(area.height / 3);
        // At least a row, and how many more there are.
        let of_missing = if rows == 0 || of_missing < rows.min(2) + 2 { 0 } else { of_missing };
        let pair = self.selected().and_then(|row| pairs(snapshot).get(row));
        let of_pair = if pair.is_some() && area.height >= WITH_DETAILS { DETAILS } else { 0 };
        let [table_area, pair_area, missing_area] = Layout::vertical([
            Constraint::Fill(1),
            Constraint::Length(of_pair),
            Constraint::Length(of_missing),
        ])
        .areas(area);
        match pair {
            None => say(buffer, table_area, no_hand_overs(snapshot)),
            Some(pair) => {
                table(self, snapshot, table_area, buffer);
                parts(pair, pair_area, buffer);
            }
        }
        in_no_section(missing, missing_area, buffer);
    }
}

/// Text in the place of an empty table.
fn no_hand_overs(snapshot: &Snapshot) -> &'static str {
    match (&snapshot.hand_over_split, snapshot.source.kind) {
        (Some(_), SourceKind::Live) => "waiting for work that one thread hands to another...",
        (Some(_), _) => "no work was handed over that marks or wake-ups show",
        (None, SourceKind::Live) => {
            "hand-overs are not recorded: start with --handoff (with --level sched also those that only wake-ups show); --missing \
             adds the time that no section covers"
        }
        (None, _) => {
            "hand-overs are not computed: start with --handoff; --missing adds the time that no section covers"
        }
    }
}

/// Layers and phase: `IPC > Driver, Execution`.
fn about(pair: &HandOverPair) -> String {
    let phase = pair.phase.map_or(UNKNOWN, nntrace_common::layer::Phase::name);
    format!("{}, {phase}", pair.layers())
}

fn table(state: &mut HandOvers, snapshot: &Snapshot, area: Rect, buffer: &mut Buffer) {
    let columns = usize::from(area.width);
    let title = |title, sort, width| right(&format!("{title}{}", state.arrow(sort)), width);
    let titles = format!(
        " {} {} {} {} {}  from, to, function{}",
        title("sum", PairSort::Sum, DURATION_WIDTH),
        title("count", PairSort::Count, COUNT_WIDTH),
        title("p50", PairSort::P50, DURATION_WIDTH),
        title("p95", PairSort::P95, DURATION_WIDTH),
        title("max", PairSort::Max, DURATION_WIDTH),
        state.arrow(PairSort::Name),
    );
    put(buffer, area, 0, &Line::styled(left(&titles, columns), Theme::heading()));
    let page = usize::from(area.height).saturating_sub(1);
    let first = state.list.scroll(state.order.len(), state.list.index(), page);
    for (position, &row) in state.order.iter().enumerate().skip(first).take(page) {
        let pair = &pairs(snapshot)[row];
        let part = shown(pair);
        let of = |value: fn(&HandOverPart) -> u64| {
            right(&or_unknown(part.map(value), number_format::duration_ns), DURATION_WIDTH)
        };
        let (sign, style) = Theme::line(position == state.list.index());
        let until = if pair.latency.is_some() { "" } else { " (until it starts)" };
        let text = format!(
            "{sign}{} {} {} {} {}  {}: {}{until}",
            of(HandOverPart::sum),
            right(&number_format::count(pair.count), COUNT_WIDTH),
            of(|part| part.p50_ns),
            of(|part| part.p95_ns),
            of(|part| part.max_ns),
            about(pair),
            pair.name.as_deref().unwrap_or(UNKNOWN),
        );
        put(buffer, area, position - first + 1, &Line::styled(left(&text, columns), style));
    }
}

/// The parts of a kind of hand-over, each in a line.
fn parts(pair: &HandOverPair, area: Rect, buffer: &mut Buffer) {
    let columns = usize::from(area.width);
    let name = pair.name.as_deref().unwrap_or(UNKNOWN);
    let counts = [(pair.gated, "gated"), (pair.hb_violations, "taken before given")];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let mut note: Vec<String> =
        counts.map(|(count, what)| format!("{} {what}", number_format::count(*count))).collect();
    note.push(pair.evidence.words().to_owned());
    put(buffer, area, 0, &rule(&format!("{}: {name}", about(pair)), &note.join(", "), columns));
    let line = |cells: [&str; 6]| {
        let [name, count, p50, p95, max, sum] = cells;
        format!(
            " {} {} {} {} {} {}",
            left(name, 12),
            right(count, COUNT_WIDTH),
            right(p50, DURATION_WIDTH),
            right(p95, DURATION_WIDTH),
            right(max, DURATION_WIDTH),
            right(sum, DURATION_WIDTH)
        )
    };
    let titles = line(["part", "count", "p50", "p95", "max", "sum"]);
    put(buffer, area, 1, &Line::styled(left(&titles, columns), Theme::heading()));
    let rows = pair.parts().map(|(name, part)| {
        let of = |value: fn(&HandOverPart) -> u64| or_unknown(part.map(value), number_format::duration_ns);
        let count = or_unknown(part.map(|part| part.count), number_format::count);
        let sum = of(HandOverPart::sum);
        line([name, &count, &of(|part| part.p50_ns), &of(|part| part.p95_ns), &of(|part| part.max_ns), &sum])
    });
    let rows: Vec<String> = rows.into_iter().collect();
    list(buffer, below_first(below_first(area)), &rows);
}

/// The time of outermost sections that no section in them covers.
fn in_no_section(rows: &[MissingRow], area: Rect, buffer: &mut Buffer) {
    if rows.is_empty() {
        return;
    }
    let columns = usize::from(area.width);
    put(buffer, area, 0, &rule("time in no section", "of outermost sections", columns));
    let titles = format!(
        " {} {} {} {}  function",
        right("missing", DURATION_WIDTH),
        right("share", PERCENT_WIDTH),
        right("count", COUNT_WIDTH),
        right("most", DURATION_WIDTH),
    );
    let below = below_first(area);
    put(buffer, below, 0, &Line::styled(left(&titles, columns), Theme::heading()));
    let mut rows: Vec<&MissingRow> = rows.iter().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.missing_ns));
    let line = |row: &&MissingRow| {
        let states = row.states.as_ref().map(StateTimes::from);
        let states = states.map_or_else(String::new, |states| format!(": {}", states.shares()));
        format!(
            " {} {} {} {}  {}{states}",
            right(&number_format::duration_ns(row.missing_ns), DURATION_WIDTH),
            right(&number_format::percent(row.missing_ns, row.total_ns), PERCENT_WIDTH),
            right(&number_format::count(row.count), COUNT_WIDTH),
            right(&number_format::duration_ns(row.max_missing_ns), DURATION_WIDTH),
            row.site.name,
        )
    };
    list(buffer, below_first(below), &rows.iter().map(line).collect::<Vec<_>>());
}
