//! Tables of measurements, plain and as markdown.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use crate::bench::spread::Spread;

/// Style of a table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// For a terminal.
    Plain,
    /// For a document.
    Markdown,
}

/// Table of a title, rows of subject, median, range and goal, and notes for the reader.
pub struct Table {
    title: &'static str,
    rows: Vec<Row>,
    notes: Vec<String>,
}

/// Row of a table.
pub struct Row {
    subject: String,
    /// Why there is none, where there is none.
    spread: Result<Spread, String>,
    better: Better,
    goal: Option<Goal>,
}

/// Which of two values of a figure is the better one, on any machine.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Better {
    /// Unknown: it depends on the machine.
    Unknown,
    Less,
    More,
}

/// Bound on a median.
#[derive(Clone, Copy)]
enum Goal {
    AtMost(f64),
    AtLeast(f64),
}

impl Table {
    /// Creates an empty table.
    pub fn new(title: &'static str) -> Self {
        Self { title, rows: Vec::new(), notes: Vec::new() }
    }

    /// Adds repeated measurements. A figure that is not a number, a time per event without events, is left out.
    pub fn row(&mut self, subject: &str, values: &[f64]) -> &mut Row {
        self.push(subject, values, Better::Unknown)
    }

    /// Adds a ratio of measurements on one machine, of which less is better on any.
    pub fn ratio(&mut self, subject: &str, values: &[f64]) -> &mut Row {
        self.push(subject, values, Better::Less)
    }

    /// Adds a ratio of measurements on one machine, of which more is better on any.
    pub fn gain(&mut self, subject: &str, values: &[f64]) -> &mut Row {
        self.push(subject, values, Better::More)
    }

    fn push(&mut self, subject: &str, values: &[f64], better: Better) -> &mut Row {
        let values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        let spread = if values.is_empty() { Err("nothing seen".into()) } else { Ok(Spread::of(&values)) };
        self.rows.push_mut(Row { subject: subject.into(), spread, better, goal: None })
    }

    /// Adds a measurement that was not possible.
    pub fn missing(&mut self, subject: &str, why: &str) {
        self.rows.push(Row {
            subject: subject.into(),
            spread: Err(why.into()),
            better: Better::Unknown,
            goal: None,
        });
    }

    /// Adds a line below the table.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Returns the title.
    pub fn title(&self) -> &'static str {
        self.title
    }

    /// Returns all figures by their subjects: median, range, and for ratios which is better, `less` or `more`.
    pub fn figures(&self) -> Value {
        let figure = |row: &Row| {
            let Spread { median, min, max } = *row.spread.as_ref().ok()?;
            let mut figure = json!({ "median": median, "min": min, "max": max });
            match row.better {
                Better::Unknown => {}
                Better::Less => figure["better"] = "less".into(),
                Better::More => figure["better"] = "more".into(),
            }
            Some((row.subject.trim().to_owned(), figure))
        };
        Value::Object(self.rows.iter().filter_map(figure).collect::<Map<_, _>>())
    }

    /// Renders the table as text, with a closing newline.
    pub fn render(&self, style: Style) -> String {
        let columns = if self.rows.iter().any(|row| row.goal.is_some()) { 4 } else { 3 };
        let head = [self.title, "median", "min .. max", "goal"].map(str::to_owned);
        let rows: Vec<[String; 4]> = self.rows.iter().map(Row::cells).collect();
        let mut widths = head.each_ref().map(|cell| cell.chars().count());
        for row in &rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut text = String::new();
        let mut line = |cells: &[String; 4]| push_row(&mut text, style, &cells[..columns], &widths);
        line(&head);
        match style {
            Style::Plain => line(&widths.map(|width| "-".repeat(width))),
            Style::Markdown => {
                text.push_str("|:--");
                text.push_str(&"|--:".repeat(columns - 1));
                text.push_str("|\n");
            }
        }
        for row in &rows {
            push_row(&mut text, style, &row[..columns], &widths);
        }
        if style == Style::Markdown && !self.notes.is_empty() {
            text.push('\n');
        }
        for note in &self.notes {
            let bullet = if style == Style::Markdown { "- " } else { "  " };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{bullet}{note}");
        }
        text
    }
}

impl Row {
    /// Sets the largest median that is good enough.
    pub fn at_most(&mut self, bound: f64) {
        self.goal = Some(Goal::AtMost(bound));
    }

    /// Sets the smallest median that is good enough.
    pub fn at_least(&mut self, bound: f64) {
        self.goal = Some(Goal::AtLeast(bound));
    }

    fn cells(&self) -> [String; 4] {
        let (median, range) = match &self.spread {
            Ok(Spread { median, min, max }) => {
                (figure(*median), format!("{} .. {}", figure(*min), figure(*max)))
            }
            Err(why) => (why.clone(), String::new()),
        };
        let goal = self.goal.map_or_else(String::new, |goal| {
            let (word, bound) = match goal {
                Goal::AtMost(bound) => ("at most", bound),
                Goal::AtLeast(bound) => ("at least", bound),
            };
            let outcome = match (&self.spread, goal) {
                (Err(_), _) => "not known",
                (Ok(spread), Goal::AtMost(bound)) if spread.median <= bound => "met",
                (Ok(spread), Goal::AtLeast(bound)) if spread.median >= bound => "met",
                _ => "missed",
            };
            format!("{word} {bound}: {outcome}")
        });
        [self.subject.clone(), median, range, goal]
    }
}

fn push_row(text: &mut String, style: Style, cells: &[String], widths: &[usize]) {
    let (edge, between) = if style == Style::Markdown { ("| ", " | ") } else { ("", "  ") };
    let mut line = edge.to_owned();
    for (column, (cell, &width)) in cells.iter().zip(widths).enumerate() {
        // Writing to a string cannot fail.
        let _ = match column {
            0 => write!(line, "{cell:width$}"),
            _ => write!(line, "{between}{cell:>width$}"),
        };
    }
    line.push(' ');
    line.push_str(edge);
    text.push_str(line.trim_end());
    text.push('\n');
}

/// Formats a number with about three significant digits.
fn figure(value: f64) -> String {
    let digits = match value.abs() {
        magnitude if magnitude < 10.0 => 2,
        magnitude if magnitude < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new("ns per mark");
        table.row("a", &[1.234, 120.4, 56.78]);
        table.missing("b", "not installed");
        table.row("c", &[f64::NAN, 3.0]);
        table.row("d", &[f64::NAN]);
        table.note("noisy");
        table
    }

    #[test]
    fn plain_columns_are_aligned() {
        let expected = "\
ns per mark         median    min .. max
-----------  -------------  ------------
a                     56.8   1.23 .. 120
b            not installed
c                     3.00  3.00 .. 3.00
d             nothing seen
  noisy
";
        assert_eq!(table().render(Style::Plain), expected);
    }

    #[test]
    fn markdown_is_a_table_and_a_list() {
        let expected = "\
| ns per mark |        median |   min .. max |
|:--|--:|--:|
| a           |          56.8 |  1.23 .. 120 |
| b           | not installed |              |
| c           |          3.00 | 3.00 .. 3.00 |
| d           |  nothing seen |              |

- noisy
";
        assert_eq!(table().render(Style::Markdown), expected);
    }

    #[test]
    fn goals_have_a_column_where_there_are_some() {
        let mut table = Table::new("ns");
        table.row("a", &[39.0, 40.0, 41.0]).at_most(40.0);
        table.row("b", &[41.0]).at_most(40.0);
        table.row("c", &[4.0]).at_least(5.0);
        table.row("d", &[f64::NAN]).at_least(5.0);
        let expected = "\
ns        median    min .. max                   goal
--  ------------  ------------  ---------------------
a           40.0  39.0 .. 41.0        at most 40: met
b           41.0  41.0 .. 41.0     at most 40: missed
c           4.00  4.00 .. 4.00     at least 5: missed
d   nothing seen                at least 5: not known
";
        assert_eq!(table.render(Style::Plain), expected);
    }

    #[test]
    fn figures_of_what_was_seen_have_their_sense() {
        let mut table = table();
        table.ratio("  ours / theirs", &[2.0]);
        table.gain("theirs / ours", &[0.5]);
        let figures = table.figures();
        assert_eq!(figures["a"], json!({ "median": 56.78, "min": 1.234, "max": 120.4 }));
        assert_eq!(figures["ours / theirs"]["better"], "less");
        assert_eq!(figures["theirs / ours"]["better"], "more");
        assert_eq!(figures.get("b"), None);
    }
}
