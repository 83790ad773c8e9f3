//! Tables of measurements, plain and as markdown.

use std::fmt::Write;

use crate::bench::spread::Spread;

/// Style of a table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// For a terminal.
    Plain,
    /// For a document.
    Markdown,
}

/// Table of a title, rows of subject, median and range, and notes for the reader.
pub struct Table {
    title: &'static str,
    rows: Vec<[String; 3]>,
    notes: Vec<String>,
}

impl Table {
    /// Creates an empty table.
    pub fn new(title: &'static str) -> Self {
        Self { title, rows: Vec::new(), notes: Vec::new() }
    }

    /// Adds repeated measurements. A figure that is not a number, a time per event without events, is left out.
    pub fn row(&mut self, subject: &str, values: &[f64]) {
        let values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        if values.is_empty() {
            return self.missing(subject, "nothing seen");
        }
        let Spread { median, min, max } = Spread::of(&values);
        self.rows.push([subject.into(), figure(median), format!("{} .. {}", figure(min), figure(max))]);
    }

    /// Adds a measurement that was not possible.
    pub fn missing(&mut self, subject: &str, why: &str) {
        self.rows.push([subject.into(), why.into(), String::new()]);
    }

    /// Adds a line below the table.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Renders the table as text, with a closing newline.
    pub fn render(&self, style: Style) -> String {
        let head = [self.title, "median", "min .. max"];
        let mut widths = head.map(|cell| cell.chars().count());
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut text = String::new();
        push_row(&mut text, style, &head, widths);
        match style {
            Style::Plain => {
                push_row(&mut text, style, &widths.map(|width| "-".repeat(width)), widths);
            }
            Style::Markdown => text.push_str("|:--|--:|--:|\n"),
        }
        for row in &self.rows {
            push_row(&mut text, style, row, widths);
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

fn push_row(text: &mut String, style: Style, cells: &[impl AsRef<str>; 3], widths: [usize; 3]) {
    let [subject, median, range] = cells.each_ref().map(AsRef::as_ref);
    let [first, second, third] = widths;
    let (edge, between) = if style == Style::Markdown { ("| ", " | ") } else { ("", "  ") };
    let line = format!(
        "{edge}{subject:first$}{between}{median:>second$}{between}{range:>third$} {}",
        edge.trim_end()
    );
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
}
