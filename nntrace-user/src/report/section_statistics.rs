//! Statistics of sections as a table, CSV and JSON.

use std::{borrow::Cow, cmp::Ordering};

use nntrace_common::layer::{Layer, Phase};
use serde::Serialize;

use super::{
    number_format::{self, UNKNOWN},
    power::{CsvError, to_csv},
    terminal_text::{Text, clean, line},
};
use crate::model::{
    plurals::one_or_many,
    section_filter::Hidden,
    section_statistics::{Property, SectionSums},
};

/// Row of the table. What it was not summed by is `None`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StatisticsRow {
    /// Process; 0 stands for those that there was no room for.
    pub pid: Option<u32>,
    /// Name of the process.
    pub comm: Option<String>,
    /// Thread.
    pub tid: Option<u32>,
    /// Name of the thread by its ancestry.
    pub thread: Option<String>,
    /// Layer.
    pub layer: Option<Layer>,
    /// Phase.
    pub phase: Option<Phase>,
    /// Name of the function; `(others)` stands for those that there was no room for.
    pub name: Option<String>,
    /// Number of sections.
    pub count: u64,
    /// Sum of their durations, less what is subtracted from them, ns.
    pub total_ns: u128,
    /// Sum of their durations without the marked sections in them, ns.
    pub exclusive_ns: u128,
    /// Shortest, ns.
    pub min_ns: u64,
    /// Median, ns: as all percentiles, of two significant digits.
    pub p50_ns: u64,
    /// 95th percentile, ns.
    pub p95_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// Longest, ns.
    pub max_ns: u64,
    /// Mean, ns.
    pub mean_ns: f64,
    /// Standard deviation, ns.
    pub deviation_ns: f64,
    /// Standard deviation as a share of the mean; null where that is 0.
    pub relative_deviation: Option<f64>,
    /// Whether earlier sections of it may be in `(others)`.
    pub is_partial: bool,
}

impl StatisticsRow {
    /// Creates a row with these names of its process and of its thread.
    #[must_use]
    pub fn new(sums: SectionSums, comm: Option<String>, thread: Option<String>) -> Self {
        Self {
            comm,
            thread,
            pid: sums.pid.or(sums.thread.map(|(pid, _)| pid)),
            tid: sums.thread.map(|(_, tid)| tid),
            layer: sums.layer,
            phase: sums.phase,
            count: sums.count,
            total_ns: sums.total_ns,
            exclusive_ns: sums.exclusive_ns,
            min_ns: sums.min_ns,
            p50_ns: sums.p50_ns,
            p95_ns: sums.p95_ns,
            p99_ns: sums.p99_ns,
            max_ns: sums.max_ns,
            mean_ns: sums.mean_ns(),
            deviation_ns: sums.deviation_ns,
            relative_deviation: sums.relative_deviation(),
            is_partial: sums.is_partial,
            name: sums.name,
        }
    }
}

/// Statistics of sections with everything that is shown of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statistics {
    /// Properties by which they were summed.
    #[serde(serialize_with = "names_of")]
    pub by: Vec<Property>,
    /// Whether sections are missing, which were lost or cannot be read.
    pub is_incomplete: bool,
    /// Rows that were summed as `(others)`, for want of room.
    pub summed: u64,
    /// Sections that the filter hid.
    pub hidden_sections: u64,
    /// Sum of their durations, ns.
    pub hidden_ns: u128,
    /// Rows.
    pub rows: Vec<StatisticsRow>,
}

/// Order of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortBy {
    /// The largest total first.
    #[default]
    Total,
    /// The largest exclusive time first.
    Exclusive,
    /// The largest number of sections first.
    Count,
    /// The longest minimum first.
    Min,
    /// The longest mean first.
    Mean,
    /// The longest median first.
    P50,
    /// The longest 95th percentile first.
    P95,
    /// The longest 99th percentile first.
    P99,
    /// The longest maximum first.
    Max,
    /// The largest standard deviation first.
    Deviation,
    /// The largest relative deviation first.
    RelativeDeviation,
    /// By name.
    Name,
    /// By the properties, in the order in which they were chosen.
    Properties,
}

impl Statistics {
    /// Creates the statistics of these rows, which are in the order of their properties.
    #[must_use]
    pub fn new(by: Vec<Property>, mut rows: Vec<StatisticsRow>, sort: SortBy, hidden: Hidden) -> Self {
        // What is equal stays in its order.
        rows.sort_by(|a, b| compare(a, b, sort));
        Self {
            by,
            is_incomplete: false,
            summed: 0,
            hidden_sections: hidden.sections,
            hidden_ns: hidden.ns,
            rows,
        }
    }

    /// Returns the table, for people.
    #[must_use]
    pub fn text(&self) -> Text {
        let mut text = Text::new();
        if self.rows.is_empty() {
            line!(text, "no section is shown");
            return text;
        }
        let columns: Vec<Column> = self.by.iter().flat_map(|property| Column::of(*property, self)).collect();
        let rows: Vec<Vec<Cow<'_, str>>> =
            self.rows.iter().map(|row| columns.iter().map(|column| (column.cell)(row)).collect()).collect();
        let widths: Vec<usize> = columns
            .iter()
            .enumerate()
            .map(|(place, column)| {
                let cells = rows.iter().map(|row| row[place].chars().count());
                cells.max().unwrap_or_default().max(column.heading.len())
            })
            .collect();
        let before = |cells: &[Cow<'_, str>]| {
            let cells = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}  "));
            cells.collect::<String>()
        };
        let headings: Vec<Cow<'_, str>> = columns.iter().map(|column| column.heading.into()).collect();
        let has_names = self.by.contains(&Property::Function);
        let figures = ["count", "total", "exclusive", "min", "p50", "p95", "p99", "max", "sd", "rsd"];
        let [count, total, exclusive, min, p50, p95, p99, max, sd, rsd] = figures;
        let name = if has_names { "  function" } else { "" };
        line!(
            text,
            "{}{count:>7}{total:>9}{exclusive:>10}{min:>9}{p50:>9}{p95:>9}{p99:>9}{max:>9}{sd:>9}{rsd:>8}{name}",
            before(&headings)
        );
        for (row, cells) in self.rows.iter().zip(&rows) {
            self.line(&mut text, row, &before(cells), has_names);
        }
        if self.is_incomplete {
            line!(text, "~ lacks what was lost");
        }
        if self.summed > 0 {
            let summed = number_format::plural(self.summed, "row");
            let are = one_or_many(self.summed, "is", "are");
            line!(text, "{summed} {are} summed as (others): --memory gives them more room");
        }
        text
    }

    fn line(&self, text: &mut Text, row: &StatisticsRow, before: &str, has_names: bool) {
        let mark = if self.is_incomplete || row.is_partial { "~" } else { "" };
        let time = |ns: u64| format!("{mark}{}", number_format::duration_ns(ns));
        // Longer than 584 years together is shown as that.
        let sum = |ns: u128| time(u64::try_from(ns).unwrap_or(u64::MAX));
        let relative = match row.relative_deviation {
            None => UNKNOWN.to_owned(),
            Some(share) if share >= 100.0 => format!("{mark}>9999%"),
            Some(share) => format!("{mark}{}", number_format::percent(whole(share * 1e6), 1_000_000)),
        };
        line!(
            text,
            "{before}{:>7}{:>9}{:>10}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>8}{}{}",
            format!("{mark}{}", number_format::count(row.count)),
            sum(row.total_ns),
            sum(row.exclusive_ns),
            time(row.min_ns),
            time(row.p50_ns),
            time(row.p95_ns),
            time(row.p99_ns),
            time(row.max_ns),
            time(whole(row.deviation_ns)),
            relative,
            if has_names { "  " } else { "" },
            row.name.as_deref().filter(|_| has_names).unwrap_or_default(),
        );
    }

    /// Returns the rows as CSV.
    ///
    /// # Errors
    /// When a row cannot be written.
    pub fn csv(&self) -> Result<String, CsvError> {
        // A row is a line, and no character in it acts.
        let clean = |text: &Option<String>| text.as_deref().map(|text| clean(text).into_owned());
        to_csv(self.rows.iter().map(|row| StatisticsRow {
            comm: clean(&row.comm),
            name: clean(&row.name),
            ..row.clone()
        }))
    }
}

fn compare(a: &StatisticsRow, b: &StatisticsRow, sort: SortBy) -> Ordering {
    match sort {
        SortBy::Total => b.total_ns.cmp(&a.total_ns),
        SortBy::Exclusive => b.exclusive_ns.cmp(&a.exclusive_ns),
        SortBy::Count => b.count.cmp(&a.count),
        SortBy::Min => b.min_ns.cmp(&a.min_ns),
        SortBy::Mean => b.mean_ns.total_cmp(&a.mean_ns),
        SortBy::P50 => b.p50_ns.cmp(&a.p50_ns),
        SortBy::P95 => b.p95_ns.cmp(&a.p95_ns),
        SortBy::P99 => b.p99_ns.cmp(&a.p99_ns),
        SortBy::Max => b.max_ns.cmp(&a.max_ns),
        SortBy::Deviation => b.deviation_ns.total_cmp(&a.deviation_ns),
        SortBy::RelativeDeviation => {
            let share = |row: &StatisticsRow| row.relative_deviation.unwrap_or_default();
            share(b).total_cmp(&share(a))
        }
        SortBy::Name => a.name.cmp(&b.name),
        SortBy::Properties => Ordering::Equal,
    }
}

/// Column of a property.
struct Column {
    heading: &'static str,
    cell: fn(&StatisticsRow) -> Cow<'_, str>,
}

impl Column {
    /// Returns the columns of a property; the function is the last one of the table.
    fn of(property: Property, statistics: &Statistics) -> Vec<Self> {
        let text = |heading, cell| vec![Self { heading, cell }];
        match property {
            Property::Process => {
                let mut columns = text("pid", |row| row.pid.map_or("".into(), |pid| pid.to_string().into()));
                columns.extend(text("comm", |row| clean(or_unknown(row.comm.as_deref()))));
                columns
            }
            Property::Thread => {
                let mut columns = text("tid", |row| row.tid.map_or("".into(), |tid| tid.to_string().into()));
                // Threads of different processes may have one name.
                if !statistics.by.contains(&Property::Process) {
                    columns.splice(
                        0..0,
                        text("pid", |row| row.pid.map_or("".into(), |pid| pid.to_string().into())),
                    );
                }
                columns.extend(text("thread", |row| clean(or_unknown(row.thread.as_deref()))));
                columns
            }
            Property::Layer => text("layer", |row| row.layer.map_or("", Layer::name).into()),
            Property::Phase => text("phase", |row| row.phase.map_or("", Phase::name).into()),
            Property::Function => Vec::new(),
        }
    }
}

fn or_unknown(text: Option<&str>) -> &str {
    text.filter(|text| !text.is_empty()).unwrap_or(UNKNOWN)
}

/// Returns a number that is not negative, rounded.
#[expect(clippy::cast_sign_loss, reason = "it has no sign; what is too large is the largest number")]
fn whole(number: f64) -> u64 {
    number.round() as u64
}

/// Serializes properties by their names.
fn names_of<S: serde::Serializer>(properties: &[Property], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(properties.iter().map(|property| match property {
        Property::Process => "pid",
        Property::Thread => "thread",
        Property::Layer => "layer",
        Property::Phase => "phase",
        Property::Function => "function",
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, count: u64, total_ns: u128) -> StatisticsRow {
        let sums = SectionSums {
            pid: Some(1234),
            thread: Some((1234, 1240)),
            layer: Some(Layer::Runtime),
            phase: Some(Phase::Execution),
            name: Some(name.into()),
            count,
            total_ns,
            exclusive_ns: total_ns / 2,
            min_ns: 900,
            p50_ns: 1_500,
            p95_ns: 2_500_000,
            p99_ns: 2_900_000,
            max_ns: 3_000_000_000,
            deviation_ns: 1_234.4,
            is_partial: name == "late",
        };
        StatisticsRow::new(sums, Some("app".into()), Some("main_0".into()))
    }

    fn statistics(by: &[Property], sort: SortBy) -> Statistics {
        let rows = vec![
            row("conv2d", 12, 12_345_678),
            row("late", 3, 99_999_999_999),
            row("a\x1b[2J,b", 100_000, 5),
            row("(others)", 0, 0),
        ];
        Statistics::new(by.to_vec(), rows, sort, Hidden { sections: 3, ns: 7 })
    }

    const ALL: [Property; 5] =
        [Property::Process, Property::Thread, Property::Layer, Property::Phase, Property::Function];

    #[test]
    fn tables_have_the_columns_that_were_asked_for() {
        let by_total = statistics(&ALL, SortBy::Total);
        let lost = Statistics { is_incomplete: true, summed: 7, ..statistics(&ALL[3..4], SortBy::Name) };
        let none = Statistics { rows: Vec::new(), ..by_total.clone() };
        insta::assert_snapshot!(format!("{}\n{}\n{}", by_total.text(), lost.text(), none.text()));
    }

    #[test]
    fn csv_has_a_line_for_each_row() {
        let csv = statistics(&ALL, SortBy::Count).csv().unwrap();
        assert_eq!(csv.lines().count(), 5);
        let first = csv.lines().nth(1).unwrap();
        assert!(first.starts_with("1234,app,1240,main_0,LR,PE,\"a\\x1b[2J,b\",100000,5,2,900,"), "{first}");
    }

    #[test]
    fn json_is_read_back() {
        let json = serde_json::to_vec(&statistics(&ALL[2..], SortBy::Name)).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(value["by"], serde_json::json!(["layer", "phase", "function"]));
        assert_eq!((&value["hidden_sections"], &value["hidden_ns"]), (&3.into(), &7.into()));
        assert_eq!(value["rows"][1]["name"], "a\x1b[2J,b");
        assert_eq!(value["rows"][0]["relative_deviation"], serde_json::Value::Null);
    }
}
