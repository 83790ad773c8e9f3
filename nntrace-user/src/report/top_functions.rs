//! The functions with the most exclusive time, such as operators of an engine.

use std::cmp::Reverse;

use serde::Serialize;

use super::{
    incomplete_figures::Figures,
    number_format::{self, duration_ns, or_unknown, percent},
    snapshot::FunctionRow,
    terminal_text::{Text, line},
};

/// Functions that are shown.
const MOST: usize = 10;

/// The functions with the most exclusive time.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TopFunctions {
    /// The largest first.
    functions: Vec<Function>,
    /// Exclusive time of all functions, ns.
    exclusive_ns: u64,
    /// Functions that are not among these.
    functions_left_out: usize,
}

/// A function.
#[derive(Clone, Debug, Serialize)]
struct Function {
    pid: u32,
    layer: String,
    phase: String,
    name: String,
    count: u64,
    p50_ns: Option<u64>,
    p99_ns: Option<u64>,
    max_ns: Option<u64>,
    exclusive_ns: u64,
}

impl TopFunctions {
    /// Returns the top ones of all functions of a run.
    #[must_use]
    pub(crate) fn of(rows: &[FunctionRow]) -> Self {
        let mut rows: Vec<&FunctionRow> = rows.iter().collect();
        rows.sort_by_key(|row| (Reverse(row.exclusive_ns), row.pid));
        Self {
            functions: rows.iter().take(MOST).map(|row| Function::new(row)).collect(),
            exclusive_ns: rows.iter().map(|row| row.exclusive_ns).fold(0, u64::saturating_add),
            functions_left_out: rows.len().saturating_sub(MOST),
        }
    }

    /// Whether there are none.
    pub(crate) const fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// Their table under a headline; nothing where there are none.
    pub(crate) fn table(&self, text: &mut Text, headline: &str, figures: Figures) {
        let Some(first) = self.functions.first() else { return };
        line!(text, "{headline}");
        line!(
            text,
            "  {:>6}{:>10}{:>9}{:>9}{:>9}{:>9}  function",
            "share",
            "exclusive",
            "count",
            "p50",
            "p99",
            "max"
        );
        let several = self.functions.iter().any(|row| row.pid != first.pid);
        for row in &self.functions {
            let time = |ns: Option<u64>| or_unknown(ns, duration_ns);
            let of = if several { format!(" ({})", row.pid) } else { String::new() };
            line!(
                text,
                "  {:>6}{:>10}{:>9}{:>9}{:>9}{:>9}  {}_{} {}{of}",
                percent(row.exclusive_ns, self.exclusive_ns),
                figures.time(row.exclusive_ns),
                figures.count(row.count),
                time(row.p50_ns),
                time(row.p99_ns),
                time(row.max_ns),
                row.layer,
                row.phase,
                row.name
            );
        }
        if self.functions_left_out > 0 {
            let shown: u64 = self.functions.iter().map(|row| row.exclusive_ns).sum();
            let rest = self.exclusive_ns.saturating_sub(shown);
            line!(
                text,
                "  {:>6}{:>10}{:36}  {} more",
                percent(rest, self.exclusive_ns),
                figures.time(rest),
                "",
                number_format::count(self.functions_left_out as u64)
            );
        }
    }
}

impl Function {
    fn new(row: &FunctionRow) -> Self {
        Self {
            pid: row.pid,
            layer: row.layer.code().to_owned(),
            phase: row.phase.code().to_owned(),
            name: row.name.clone(),
            count: row.count,
            p50_ns: row.of_sections(row.p50_ns),
            p99_ns: row.of_sections(row.p99_ns),
            max_ns: row.of_sections(row.max_ns),
            exclusive_ns: row.exclusive_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use nntrace_common::layer::{Layer, Phase};

    use super::*;

    fn row(name: &str, count: u64, exclusive_ns: u64) -> FunctionRow {
        FunctionRow {
            pid: 7,
            layer: Layer::CpuFallback,
            phase: Phase::Computation,
            name: name.to_owned(),
            count,
            total_ns: exclusive_ns,
            exclusive_ns,
            p50_ns: 1_200,
            p99_ns: 34_000,
            max_ns: 560_000,
            is_partial: false,
            details: None,
        }
    }

    fn table(rows: &[FunctionRow], is_incomplete: bool) -> String {
        let mut text = Text::new();
        let figures = Figures::new(is_incomplete);
        TopFunctions::of(rows).table(&mut text, "functions with the most exclusive time", figures);
        text.to_string()
    }

    #[test]
    fn what_takes_most_comes_first_and_the_rest_is_summed() {
        let mut rows = vec![row("Softmax", 3, 2_000), row("Conv2D of a\u{1b}[31m name", 12_345, 6_000_000)];
        rows.push(FunctionRow { pid: 8, ..row("in itself only", 0, 500) });
        insta::assert_snapshot!("functions", table(&rows, false));
        rows.extend((1..=20).map(|number| row(&format!("small {number}"), 1, 100_000 * number)));
        insta::assert_snapshot!("functions_many", table(&rows, true));
        assert_eq!(table(&[], false), "");
    }
}
