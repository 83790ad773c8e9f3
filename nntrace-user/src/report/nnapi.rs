//! The contract's tables as the reference prints them, so that its readers and its expected outputs stay of
//! use.

use std::{fmt::Write as _, ops::RangeInclusive};

use nntrace_common::layer::{Layer, Phase};

use super::{
    snapshot::{ReportRow, TableRow, TimesByLayer},
    terminal_text::{Text, line},
};

/// Which times a table shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shown {
    /// Each layer's time less that of the next lower one.
    #[default]
    SelfTimes,
    /// Each layer's time with all that it called.
    TotalTimes,
}

/// How tables are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Which times.
    pub times: Shown,
    /// Only execution, divided by how many there were; where there was a benchmark, only that.
    pub per_execution: bool,
    /// Whether the numbers lack what was lost: `~` stands before each.
    pub incomplete: bool,
}

/// One column; a cell ends where its heading ends.
struct Column {
    heading: &'static str,
    /// Places from the end of the column before to its own.
    step: usize,
    /// Places of its heading that are underlined.
    underline: usize,
    cell: Cell,
}

/// Content of a column.
#[derive(Clone, Copy)]
enum Cell {
    /// The time of a phase.
    Time(Phase),
    /// Execution without inputs, outputs and results.
    Compute,
    /// Execution in percent of the Total row's.
    Share,
}

impl Column {
    const fn time(heading: &'static str, step: usize, underline: usize, phase: Phase) -> Self {
        Self { heading, step, underline, cell: Cell::Time(phase) }
    }
}

/// One of the two tables.
struct Layout {
    columns: &'static [Column],
    /// The columns under the heading `Execution`.
    execution: RangeInclusive<usize>,
    /// Places of a line across.
    width: usize,
    /// Explains the asterisk, in lines.
    footnote: &'static [&'static str],
}

/// All phases of one program.
static ALL_PHASES: Layout = Layout {
    columns: &[
        Column::time("Initialization", 28, 14, Phase::Initialization),
        Column::time("Preparation", 14, 11, Phase::Preparation),
        Column::time("Compilation", 14, 11, Phase::Compilation),
        Column::time("I/O", 14, 11, Phase::InputsOutputs),
        Column { heading: "Compute", step: 14, underline: 12, cell: Cell::Compute },
        Column::time("Results", 13, 11, Phase::Results),
        Column::time("Ex. total", 14, 11, Phase::Execution),
        Column::time("Termination", 14, 11, Phase::Termination),
        Column::time("Total", 13, 10, Phase::Overall),
    ],
    execution: 3..=6,
    width: 139,
    footnote: &["* This total ignores missing (n/a) values and thus is not necessarily consistent \
                 with the rest of the numbers"],
};

/// One execution, on average.
static ONE_EXECUTION: Layout = Layout {
    columns: &[
        Column::time("I/O", 25, 11, Phase::InputsOutputs),
        Column { heading: "Compute", step: 14, underline: 12, cell: Cell::Compute },
        Column::time("Results", 13, 11, Phase::Results),
        Column::time("Total", 14, 11, Phase::Execution),
        Column { heading: "Percentage", step: 14, underline: 11, cell: Cell::Share },
    ],
    execution: 0..=4,
    width: 80,
    footnote: &[
        "* This total ignores missing (n/a) values and thus is not necessarily consistent",
        "  with the rest of the numbers",
    ],
};

/// The tables of all reports, one after the other.
#[must_use]
pub fn render(reports: &[ReportRow], options: Options) -> Text {
    let mut text = Text::new();
    if reports.is_empty() {
        line!(text, "there is no NN mark");
    }
    for report in reports {
        one(&mut text, report, options);
    }
    text
}

fn one(text: &mut Text, report: &ReportRow, options: Options) {
    let layout = if options.per_execution { &ONE_EXECUTION } else { &ALL_PHASES };
    let numbers = Numbers::new(report, options);
    match report.open_sections {
        0 => {}
        1 => line!(text, "1 section was still open at the end: it is in no total of this table"),
        more => line!(text, "{more} sections were still open at the end: they are in no total of this table"),
    }
    line!(text, "{}", report.starting_mark);
    line!(text, "");
    let across = "=".repeat(layout.width);
    line!(text, "{across}");
    layout.heading(text, options.times, numbers.is_benchmark);
    for layer in [Layer::Application, Layer::Runtime, Layer::Ipc, Layer::Driver, Layer::CpuFallback] {
        if layer != Layer::CpuFallback || numbers.has_any(layer) {
            layout.row(text, TableRow::Layer(layer), &numbers);
        }
    }
    line!(text, "");
    layout.row(text, TableRow::Total, &numbers);
    line!(text, "{across}");
    for part in layout.footnote {
        line!(text, "{part}");
    }
}

impl Layout {
    /// The title and the headings, four lines.
    fn heading(&self, text: &mut Text, times: Shown, is_benchmark: bool) {
        let end = |columns: &[Column]| columns.iter().map(|column| column.step).sum::<usize>();
        let (first, last) = (*self.execution.start(), *self.execution.end());
        let group_end = end(&self.columns[..=last]);
        let group = group_end - end(&self.columns[..=first]) + self.columns[first].underline;
        let times = match times {
            Shown::SelfTimes => "self-times",
            Shown::TotalTimes => "total time",
        };
        let title = format!("NNAPI timing summary ({times}, ms wall-clock)");
        let word = if is_benchmark { "Benchmark" } else { "Execution" };
        line!(text, "{title}{word:>places$}", places = group_end - title.len());
        line!(text, "{:>group_end$}", "-".repeat(group));
        let cell = |column: &Column, text: &str| format!("{text:>places$}", places = column.step);
        let headings = self.columns.iter().map(|column| cell(column, column.heading));
        line!(text, "{}", headings.collect::<String>());
        let lines = self.columns.iter().map(|column| cell(column, &"-".repeat(column.underline)));
        line!(text, "{}", lines.collect::<String>());
    }

    fn row(&self, text: &mut Text, row: TableRow, numbers: &Numbers) {
        let label = row.label();
        let mut line = String::from(label);
        // An asterisk stands in the gap before the next cell.
        let mut taken = label.len();
        for column in self.columns {
            let cell = numbers.shown_cell(row, column.cell);
            // What needs more places moves the rest of the row, but never touches the cell before.
            // Writing to a string cannot fail.
            let _ = write!(line, " {cell:>places$}", places = column.step - taken - 1);
            taken = 0;
            if row.ignores_missing(column.cell, numbers.per_execution) {
                line.push('*');
                taken = 1;
            }
        }
        line!(text, "{line}");
    }
}

impl TableRow {
    const fn label(self) -> &'static str {
        match self {
            Self::Layer(layer) => layer.name(),
            Self::Total => "Total",
        }
    }

    /// Whether a cell gets the asterisk: it is a total of numbers that may be missing.
    const fn ignores_missing(self, cell: Cell, per_execution: bool) -> bool {
        match self {
            Self::Total => !(per_execution && matches!(cell, Cell::Time(Phase::Execution) | Cell::Share)),
            Self::Layer(layer) => {
                matches!(layer, Layer::Application) && matches!(cell, Cell::Time(Phase::Overall))
            }
        }
    }

    /// Whether nothing measured means not known: applications mark only what they choose to, and drivers do
    /// not mark the parts of an execution.
    const fn may_be_missing(self, phase: Phase) -> bool {
        match self {
            Self::Layer(Layer::Application) => true,
            Self::Layer(Layer::Driver) => phase.is_execution_part(),
            _ => false,
        }
    }
}

/// Totals, and the times to show, which may be the same.
#[derive(Clone, Copy)]
struct Tables<'a> {
    total: &'a TimesByLayer,
    shown: &'a TimesByLayer,
}

/// Nothing measured.
static NOTHING: TimesByLayer = TimesByLayer::new();

/// The numbers of one table.
struct Numbers<'a> {
    /// Tables of the whole report.
    whole: Tables<'a>,
    /// For execution and its parts: of the whole report, or of the benchmark alone.
    execution: Tables<'a>,
    is_benchmark: bool,
    per_execution: bool,
    incomplete: bool,
    /// Divisor of times; 0 leaves them unknown.
    executions: u64,
}

impl<'a> Numbers<'a> {
    fn new(report: &'a ReportRow, options: Options) -> Self {
        let tables = |total, self_times| match options.times {
            Shown::SelfTimes => Tables { total, shown: self_times },
            Shown::TotalTimes => Tables { total, shown: total },
        };
        let whole = tables(&report.total_ns, &report.self_ns);
        let counts = report.executions;
        let is_benchmark = options.per_execution && counts.pbm > 0;
        let (execution, executions) = if is_benchmark {
            let benchmark = report.app_phases.benchmark.as_ref();
            let empty = tables(&NOTHING, &NOTHING);
            (benchmark.map_or(empty, |times| tables(&times.total_ns, &times.self_ns)), counts.pbm)
        } else if options.per_execution {
            // A warm-up without a benchmark is a part of the whole like any other.
            (whole, counts.po.saturating_add(counts.pwu))
        } else {
            (whole, 1)
        };
        Self {
            whole,
            execution,
            is_benchmark,
            per_execution: options.per_execution,
            incomplete: options.incomplete,
            executions,
        }
    }

    /// Time of a row in a phase, ns; `None` where it is missing.
    fn ns(&self, row: TableRow, phase: Phase) -> Option<i128> {
        let tables = if phase.is_execution() { self.execution } else { self.whole };
        if tables.total.get(row, phase) == 0 && row.may_be_missing(phase) {
            None
        } else {
            Some(i128::from(tables.shown.get(row, phase)))
        }
    }

    /// Execution without inputs, outputs and results, ns; `None` where any of them is missing.
    fn compute_ns(&self, row: TableRow) -> Option<i128> {
        let [whole, ends, results] =
            [Phase::Execution, Phase::InputsOutputs, Phase::Results].map(|phase| self.ns(row, phase));
        Some(whole? - ends? - results?)
    }

    /// Whether a layer has any time in the table of all phases.
    fn has_any(&self, layer: Layer) -> bool {
        let any = |column: &Column| match column.cell {
            Cell::Time(phase) => self.ns(TableRow::Layer(layer), phase).is_some_and(|ns| ns != 0),
            // Both follow from times.
            Cell::Compute | Cell::Share => false,
        };
        ALL_PHASES.columns.iter().any(any)
    }

    /// A cell with `~` before a number that lacks what was lost.
    fn shown_cell(&self, row: TableRow, cell: Cell) -> String {
        let cell = self.cell(row, cell);
        if self.incomplete && !cell.starts_with(MISSING) { format!("~{cell}") } else { cell }
    }

    fn cell(&self, row: TableRow, cell: Cell) -> String {
        let ns = match cell {
            Cell::Time(phase) => self.ns(row, phase),
            Cell::Compute => self.compute_ns(row),
            Cell::Share => return self.share(row),
        };
        // 10,000 ns are 0.01 ms.
        let unit = 10_000 * i128::from(self.executions);
        ns.filter(|_| unit > 0).map_or_else(|| MISSING.to_owned(), |ns| two_decimals(ns, unit))
    }

    fn share(&self, row: TableRow) -> String {
        if row == TableRow::Total {
            return "100%".to_owned();
        }
        let whole = self.ns(TableRow::Total, Phase::Execution).filter(|whole| *whole > 0);
        match whole.zip(self.ns(row, Phase::Execution)) {
            None => format!("{MISSING}%"),
            Some((whole, part)) => match two_decimals(part * 10_000, whole) {
                // The dash stands for all of `0.00%`.
                none if none == NONE => none,
                percent => percent + "%",
            },
        }
    }
}

/// Stands for a number that is not known.
const MISSING: &str = "n/a";
/// Stands for 0.00.
const NONE: &str = "-";

/// `numerator / denominator` hundredths with two decimals.
///
/// A tie goes to the even digit. The reference prints binary fractions of a second, on which side of the tie
/// they happen to lie: its 533.045 ms are `533.04`, its 0.495 ms are `0.50`, and of the rules that look at
/// the number alone this is the usual one that gives both. Like the reference, what rounds to 0 from below is
/// `-0.00`.
fn two_decimals(numerator: i128, denominator: i128) -> String {
    let magnitude = numerator.abs();
    let (floor, rest) = (magnitude / denominator, magnitude % denominator);
    let up = match (rest * 2).cmp(&denominator) {
        std::cmp::Ordering::Less => 0,
        std::cmp::Ordering::Equal => floor % 2,
        std::cmp::Ordering::Greater => 1,
    };
    let hundredths = floor + up;
    match (numerator < 0, hundredths) {
        (false, 0) => NONE.to_owned(),
        (negative, _) => {
            format!("{}{}.{:02}", if negative { "-" } else { "" }, hundredths / 100, hundredths % 100)
        }
    }
}

#[cfg(test)]
mod tests;
