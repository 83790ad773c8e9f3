//! Where operators ran, as text for people.

use super::{DriverCallRow, Page, PlaceRow, Placement, Process, Processor};
use crate::report::{
    incomplete_figures::Figures,
    number_format::{UNKNOWN, count, duration_ns},
    terminal_text::{Text, line},
};

/// Operators that are shown of each process.
const MOST_OPERATORS: usize = 20;
/// Advice where no operator was seen.
const HOW_TO_SEE_OPERATORS: &str = "operators of engines are recorded with --engine-level op";

impl Page {
    /// Returns the page as text of some 80 columns.
    #[must_use]
    pub fn text(&self) -> Text {
        let mut text = Text::new();
        let figures = self.placement.figures();
        line!(text, "{}", self.run);
        if self.placement.processes.is_empty() {
            line!(text, "neither runs nor operators were seen: {HOW_TO_SEE_OPERATORS}");
        }
        for process in &self.placement.processes {
            line!(text, "");
            line!(text, "{}", process.headline(figures));
            process.verdict(&mut text, figures);
            if !process.places.is_empty() {
                line!(text, "");
            }
            process.places(&mut text, figures);
            process.operators(&mut text, figures);
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
        let figures = self.figures();
        for process in self.processes.iter().filter(|process| !process.places.is_empty()) {
            line!(text, "");
            match self.processes.len() {
                1 => line!(text, "where operators ran"),
                _ => line!(text, "where operators of {} ran", process.title()),
            }
            process.verdict(text, figures);
            process.places(text, figures);
        }
        self.left_out(text);
    }

    fn figures(&self) -> Figures {
        Figures::new(self.is_incomplete)
    }

    fn left_out(&self, text: &mut Text) {
        if self.sections_left_out > 0 {
            let sections = count(self.sections_left_out);
            line!(
                text,
                "note: {sections} sections did not fit in memory and are missing here: raise --memory"
            );
        }
    }
}

impl Process {
    fn headline(&self, figures: Figures) -> String {
        let runs = match self.runs {
            0 => "no run of a model ended".to_owned(),
            1 => format!("1 run of a model, {}", figures.time(self.runs_ns)),
            runs => {
                let mean = figures.time(self.runs_ns / runs);
                format!("{} runs of models, {mean} on average", figures.count(runs))
            }
        };
        format!("{}: {runs}", self.title())
    }

    /// Returns name and id.
    fn title(&self) -> String {
        format!("{} ({})", self.comm.as_deref().unwrap_or(UNKNOWN), self.pid)
    }

    /// Adds the answer in a line for each who ran operators.
    fn verdict(&self, text: &mut Text, figures: Figures) {
        if self.places.is_empty() {
            line!(text, "  no operator was seen; {HOW_TO_SEE_OPERATORS}");
        }
        let all = self.operators_ns();
        let share = |ns| {
            if all == 0 {
                String::new()
            } else {
                format!(": {} of operators' time", figures.percent(ns, all))
            }
        };
        for row in self.places.iter().filter(|row| row.is_handed_over) {
            let who = row.provider.as_deref().unwrap_or("a driver");
            let parts = figures.text(&plural(row.parts, "part"));
            line!(text, "  {who} ran {parts}{}{}", row.on(), share(row.total_ns));
        }
        for row in self.places.iter().filter(|row| !row.is_handed_over) {
            let operators = match row.operators {
                0 => "what is around operators".to_owned(),
                number => figures.text(&plural(number, "operator")),
            };
            line!(text, "  the engine's own code ran {operators}{}{}", row.on(), share(row.total_ns));
        }
        if !self.places.is_empty() && self.places.iter().all(|row| !row.is_handed_over) {
            line!(text, "  no part that a provider or a delegate runs was seen");
        }
        let in_operators = self.runs_ns.saturating_sub(self.outside_operators_ns);
        if self.runs_ns > 0 && !self.places.is_empty() && in_operators < self.runs_ns / 2 {
            line!(
                text,
                "  most of the runs is outside of these: operators that are not seen, or the engine's work"
            );
        }
    }

    /// Adds a line for each place, and what is outside.
    fn places(&self, text: &mut Text, figures: Figures) {
        let all = self.operators_ns();
        if !self.places.is_empty() {
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
        }
        for row in &self.places {
            line!(
                text,
                "  {:>6}{:>10}{:>10}{:>11}{:>7}{:>10}  {:<11}{}",
                figures.percent(row.total_ns, all),
                figures.time(row.total_ns),
                self.a_run(row.in_runs_ns, figures),
                figures.count(row.operators),
                figures.count(row.parts),
                figures.count(row.calls),
                row.processor.map_or(UNKNOWN, Processor::name),
                row.who()
            );
            if row.on_cpu_inside > 0 {
                let share = figures.percent(row.on_cpu_inside_ns, row.total_ns);
                let calls = figures.text(&tenths(row.on_cpu_inside, row.calls));
                line!(text, "{:18}{share} of it in operators on the CPU, {calls} a call", "");
            }
            for DriverCallRow { device, count, total_ns } in &row.driver_calls {
                let share = figures.percent(*total_ns, row.total_ns);
                let calls = figures.text(&plural(*count, "call"));
                line!(text, "{:18}{share} of it in {calls} of the driver of {device}", "");
            }
        }
        // What is missing of the operators would be a part of it.
        if self.runs > 0 && !self.places.is_empty() && figures == Figures::new(false) {
            line!(
                text,
                "  outside of operators: {} a run, {} of the runs",
                self.a_run(self.outside_operators_ns, figures),
                figures.percent(self.outside_operators_ns, self.runs_ns)
            );
        }
        for DriverCallRow { device, count, total_ns } in &self.driver_calls {
            let (calls, time) = (figures.text(&plural(*count, "call")), figures.time(*total_ns));
            line!(text, "  outside of operators: {calls} of the driver of {device}, {time}");
        }
        if self.operators_outside_runs > 0 && self.runs > 0 {
            line!(
                text,
                "  without a run around them that ended: {} of operators, {}",
                figures.text(&plural(self.operators_outside_runs, "call")),
                figures.time(self.operators_outside_runs_ns)
            );
        }
        if self.crossings > 0 {
            line!(
                text,
                "  changes of place: {} a run, {} a run from one operator to the next",
                figures.text(&tenths(self.crossings, self.runs)),
                self.a_run(self.crossings_ns, figures)
            );
        }
    }

    fn operators(&self, text: &mut Text, figures: Figures) {
        if self.operators.is_empty() {
            return;
        }
        let all = self.operators_ns();
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
            let around = match row.around {
                0 => String::new(),
                number => format!(" (around others: {})", figures.count(number)),
            };
            let of_calls = |ns: Option<u64>| figures.known(ns.filter(|_| row.calls > 0), duration_ns);
            line!(
                text,
                "  {:>6}{:>10}{:>10}{:>10}{:>10}  {:<11}{}{around}",
                figures.percent(row.total_ns(), all),
                figures.time(row.total_ns()),
                figures.count(row.calls),
                of_calls(row.calls_ns.checked_div(row.calls)),
                of_calls(Some(row.max_ns)),
                row.processor.map_or(UNKNOWN, Processor::name),
                if row.name.is_empty() { UNKNOWN } else { &row.name }
            );
        }
        if let Some(rest @ [_, ..]) = self.operators.get(MOST_OPERATORS..) {
            let ns = rest.iter().fold(0, |sum: u64, row| sum.saturating_add(row.total_ns()));
            let more = count(rest.len() as u64);
            let share = figures.percent(ns, all);
            line!(text, "  {share:>6}{:>10}{:43}{more} more (see --json)", figures.time(ns), "");
        }
    }

    /// Returns a time by run; `-` without runs.
    fn a_run(&self, ns: u64, figures: Figures) -> String {
        figures.known(ns.checked_div(self.runs), duration_ns)
    }
}

impl PlaceRow {
    fn who(&self) -> &str {
        match &self.provider {
            Some(name) => name,
            None if self.is_handed_over => "(a driver)",
            None => "(the engine)",
        }
    }

    /// Returns on which processor it ran, as far as that is known, or was seen.
    fn on(&self) -> String {
        match self.processor {
            Some(processor) => format!(" on the {}", processor.name()),
            None if self.on_cpu_inside_ns > self.total_ns / 2 => " on the CPU".to_owned(),
            None => String::new(),
        }
    }
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
