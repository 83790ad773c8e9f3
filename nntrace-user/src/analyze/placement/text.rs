//! Where operators ran, as text for people.

use super::{OperatorKind, Page, PlaceRow, Placement, Process};
use crate::report::{
    incomplete_figures::Figures,
    number_format::{UNKNOWN, count, duration_ns, percent},
    terminal_text::{Text, line},
};

/// Operators that are shown of each process.
const MOST_OPERATORS: usize = 20;

impl Page {
    /// Returns the page as text of some 80 columns.
    #[must_use]
    pub fn text(&self) -> Text {
        let mut text = Text::new();
        line!(text, "{}", self.run);
        if self.placement.processes.is_empty() {
            line!(text, "{}", without_operators(0));
        }
        for process in &self.placement.processes {
            line!(text, "");
            line!(text, "{}", process.headline(self.placement.figures()));
            process.summary(&mut text, self.placement.figures());
            process.operators(&mut text, self.placement.figures());
        }
        self.placement.left_out(&mut text);
        for note in &self.notes {
            line!(text, "note: {note}");
        }
        text
    }
}

impl Placement {
    /// Adds the places of each process that has operators; nothing where none has.
    pub(in crate::analyze) fn summary(&self, text: &mut Text) {
        let processes = self.processes.iter().filter(|process| !process.places.is_empty());
        for process in processes {
            line!(text, "");
            process.summary(text, self.figures());
        }
        self.left_out(text);
    }

    fn figures(&self) -> Figures {
        Figures::new(self.is_incomplete)
    }

    fn left_out(&self, text: &mut Text) {
        if self.sections_left_out > 0 {
            line!(
                text,
                "note: {} sections found no room, and are not counted here: give more with --memory",
                count(self.sections_left_out)
            );
        }
    }
}

impl Process {
    fn headline(&self, figures: Figures) -> String {
        let comm = if self.comm.is_empty() { UNKNOWN } else { &self.comm };
        let runs = match self.runs {
            0 => "no run of a model ended".to_owned(),
            1 => format!("1 run of a model, {}", figures.time(self.runs_ns)),
            runs => {
                let mean = figures.time(self.runs_ns / runs);
                format!("{} runs of models, {mean} on average", figures.count(runs))
            }
        };
        format!("{comm} ({}): {runs}", self.pid)
    }

    /// Adds the verdict, and a line for each place.
    fn summary(&self, text: &mut Text, figures: Figures) {
        if self.places.is_empty() {
            line!(text, "{}", without_operators(self.runs));
            return;
        }
        line!(text, "{}", self.verdict());
        line!(text, "");
        line!(text, "where operators ran");
        line!(
            text,
            "  {:>6}{:>10}{:>10}{:>11}{:>7}{:>10}  {:<11}provider",
            "share",
            "time",
            "a run",
            "operators",
            "parts",
            "calls",
            "processor"
        );
        for row in &self.places {
            line!(
                text,
                "  {:>6}{:>10}{:>10}{:>11}{:>7}{:>10}  {:<11}{}",
                percent(row.total_ns, self.operators_ns()),
                figures.time(row.total_ns),
                self.a_run(row.total_ns, figures),
                count(row.operators),
                count(row.parts),
                figures.count(row.calls),
                row.processor.map_or(UNKNOWN, super::Processor::name),
                row.provider_name()
            );
            if row.on_cpu_inside > 0 {
                line!(
                    text,
                    "{:18}{} of it in operators on the CPU, {} a call",
                    "",
                    percent(row.on_cpu_inside_ns, row.total_ns),
                    tenths(row.on_cpu_inside, row.calls)
                );
            }
            for calls in &row.driver_calls {
                line!(
                    text,
                    "{:18}{} of it in calls of the driver of {}, {} a call",
                    "",
                    percent(calls.total_ns, row.total_ns),
                    calls.device,
                    tenths(calls.count, row.calls)
                );
            }
        }
        if self.runs > 0 {
            line!(
                text,
                "  outside of operators: {} a run, {} of the runs",
                self.a_run(self.outside_operators_ns, figures),
                percent(self.outside_operators_ns, self.runs_ns)
            );
        }
        if self.crossings > 0 {
            line!(
                text,
                "  changes of place: {} a run, with {} a run between the operators",
                tenths(self.crossings, self.runs),
                self.a_run(self.crossings_ns, figures)
            );
        }
    }

    /// Returns the answer in a sentence.
    fn verdict(&self) -> String {
        let (handed, own): (Vec<&PlaceRow>, Vec<&PlaceRow>) =
            self.places.iter().partition(|row| row.is_handed_over);
        let all = self.operators_ns();
        let own_count: u64 = own.iter().map(|row| row.operators).sum();
        let operators = plural(own_count, "operator");
        if handed.is_empty() {
            return format!(
                "{operators}: the engine's own code ran all of them on the CPU; no provider, delegate or driver took any"
            );
        }
        let parts = handed.iter().map(|row| {
            let what = if row.parts + row.operators > 0 {
                plural(row.parts + row.operators, "part")
            } else {
                "calls".to_owned()
            };
            let on = match row.processor {
                Some(processor) => format!(" on the {}", processor.name()),
                None if row.is_mostly_on_cpu() => " on the CPU".to_owned(),
                None => String::new(),
            };
            format!("{} ran {what}{on}, {} of the time of operators", row.whose(), percent(row.total_ns, all))
        });
        let mut verdict = parts.collect::<Vec<_>>().join("; ");
        if own_count == 0 {
            return verdict + "; nothing was left to the engine's own code";
        }
        let own_ns = own.iter().fold(0, |sum: u64, row| sum.saturating_add(row.total_ns));
        verdict += &format!("; the engine's own code ran {operators} on the CPU, {}", percent(own_ns, all));
        let costliest = self.operators.iter().find(|row| row.kind == OperatorKind::Operator);
        if let Some(row) = costliest {
            verdict += &format!("; the costliest of these is {}, {}", row.name, percent(row.total_ns, all));
        }
        verdict
    }

    fn operators(&self, text: &mut Text, figures: Figures) {
        if self.operators.is_empty() {
            return;
        }
        line!(text, "");
        line!(
            text,
            "  {:>6}{:>10}{:>10}{:>10}{:>10}  {:<11}operator",
            "share",
            "time",
            "calls",
            "mean",
            "max",
            "processor"
        );
        for row in self.operators.iter().take(MOST_OPERATORS) {
            let remark = match row.kind {
                OperatorKind::Around => " (around others)",
                OperatorKind::Operator | OperatorKind::Part | OperatorKind::DriverCall => "",
            };
            line!(
                text,
                "  {:>6}{:>10}{:>10}{:>10}{:>10}  {:<11}{}{remark}",
                percent(row.total_ns, self.operators_ns()),
                figures.time(row.total_ns),
                figures.count(row.calls),
                row.total_ns.checked_div(row.calls).map_or_else(|| UNKNOWN.to_owned(), duration_ns),
                duration_ns(row.max_ns),
                row.processor.map_or(UNKNOWN, super::Processor::name),
                row.name
            );
        }
        let more = self.operators.len().saturating_sub(MOST_OPERATORS);
        if more > 0 {
            let rest = self.operators[MOST_OPERATORS..].iter().map(|row| row.total_ns);
            let rest = rest.fold(0, u64::saturating_add);
            line!(
                text,
                "  {:>6}{:>10}{:42}{} more: --json has them",
                percent(rest, self.operators_ns()),
                figures.time(rest),
                "",
                count(more as u64)
            );
        }
    }

    /// Returns a time by run; `-` without runs.
    fn a_run(&self, ns: u64, figures: Figures) -> String {
        ns.checked_div(self.runs).map_or_else(|| UNKNOWN.to_owned(), |ns| figures.time(ns))
    }
}

impl PlaceRow {
    fn provider_name(&self) -> &str {
        match &self.provider {
            Some(name) => name,
            None if self.is_handed_over => "(a driver)",
            None => "(the engine)",
        }
    }

    fn whose(&self) -> &str {
        match &self.provider {
            Some(name) => name,
            None => "a driver",
        }
    }

    /// Whether most of the time is in operators on the CPU.
    fn is_mostly_on_cpu(&self) -> bool {
        self.on_cpu_inside_ns > self.total_ns / 2
    }
}

fn without_operators(runs: u64) -> String {
    let seen =
        if runs > 0 { "no operator was seen in the runs" } else { "neither runs nor operators were seen" };
    format!(
        "{seen}: a recording has operators with --engine-level op, where the program runs an engine that is known"
    )
}

/// Returns a number of things.
fn plural(number: u64, thing: &str) -> String {
    format!("{} {thing}{}", count(number), if number == 1 { "" } else { "s" })
}

/// Returns a quotient with one decimal; `-` where there is nothing to divide by.
fn tenths(number: u64, by: u64) -> String {
    if by == 0 {
        return UNKNOWN.to_owned();
    }
    let quotient = number as f64 / by as f64;
    format!("{quotient:.1}")
}
