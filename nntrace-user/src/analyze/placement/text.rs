//! Where operators ran, as text for people.

use super::{DriverCallRow, OperatorRow, Page, PlaceRow, Placement, Process, Processor};
use crate::report::{
    incomplete_figures::Figures,
    number_format::{UNKNOWN, calls, count, duration_ns, or_unknown, percent, plural},
    terminal_text::{Text, line},
};

/// Operators that are shown of each process.
const MOST_OPERATORS: usize = 20;
/// Operators on the CPU that are shown of each part.
const MOST_INSIDE: usize = 3;
/// Advice where no operator was seen.
const HOW_TO_SEE_OPERATORS: &str =
    "recordings have them with --engine-level op; `nntrace-bpf engines PID` shows what can be seen";

impl Page {
    /// Returns the page as text of some 80 columns.
    #[must_use]
    pub fn text(&self) -> Text {
        let mut text = Text::new();
        let figures = self.placement.figures();
        line!(text, "{}", self.run);
        if self.placement.processes.is_empty() {
            line!(text, "no run and no operator was seen: {HOW_TO_SEE_OPERATORS}");
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
        self.placement.remarks(&mut text);
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
        self.remarks(text);
    }

    fn figures(&self) -> Figures {
        Figures::new(self.is_incomplete)
    }

    fn remarks(&self, text: &mut Text) {
        let has_operators = self.processes.iter().any(|process| !process.places.is_empty());
        if has_operators && !self.engines_of_all_backends.is_empty() {
            let engines = self.engines_of_all_backends.join(", ");
            line!(text, "note: operators of {engines} are among those of the CPU, even if a GPU ran them");
        }
        if self.sections_left_out > 0 {
            let sections = plural(self.sections_left_out, "section");
            line!(text, "note: {sections} did not fit in memory: raise --memory, or shorten the run");
        }
    }
}

impl Process {
    fn headline(&self, figures: Figures) -> String {
        let runs = match self.runs {
            0 => "no run of a model ended".to_owned(),
            1 => format!("1 run of a model, {}", figures.time(self.runs_ns)),
            runs => {
                let mean = duration_ns(self.runs_ns / runs);
                format!("{} runs of models, {mean} on average", figures.count(runs))
            }
        };
        format!("{}: {runs}", self.title())
    }

    /// Returns name and id.
    fn title(&self) -> String {
        format!("{} ({})", self.comm.as_deref().unwrap_or(UNKNOWN), self.pid)
    }

    /// Adds the answer, in one line for each that ran operators.
    fn verdict(&self, text: &mut Text, figures: Figures) {
        if self.places.is_empty() {
            line!(text, "  no operator was seen: {HOW_TO_SEE_OPERATORS}");
        }
        let all = self.operators_ns();
        for row in self.places.iter().filter(|row| row.is_handed_over) {
            let work = self.work(row, figures);
            line!(text, "  {} ran {work}{}{}", row.runner(), row.on(), row.share_of(all));
        }
        for row in self.places.iter().filter(|row| !row.is_handed_over) {
            let work = self.work(row, figures);
            line!(text, "  the engine's own code ran {work}{}{}", row.on(), row.share_of(all));
        }
        if !self.places.is_empty() && self.places.iter().all(|row| !row.is_handed_over) {
            line!(text, "  no provider or delegate was seen to run a part");
        }
        for DriverCallRow { device, processor, count, total_ns } in &self.driver_calls {
            let (calls, time) = (figures.text(&calls(*count)), figures.time(*total_ns));
            line!(
                text,
                "  outside of operators: {calls} to the driver of {device}{}, {time}",
                kind(*processor)
            );
        }
        let in_operators = self.runs_ns.saturating_sub(self.outside_operators_ns);
        if self.runs_ns > 0 && !self.places.is_empty() && in_operators < self.runs_ns / 2 {
            line!(
                text,
                "  most of the time of runs is outside of these operators: others that are not seen or"
            );
            line!(text, "  are on other threads, the engine's overhead, or the probes (hooks cost less)");
        }
    }

    /// Returns how much ran at a place: by run, where there are runs.
    fn work(&self, row: &PlaceRow, figures: Figures) -> String {
        let names = row.operators + row.parts;
        let what = if row.parts > 0 { "part" } else { "operator" };
        if names == 0 {
            "sections around operators".to_owned()
        } else if row.calls_in_runs > 0 && self.runs > 0 {
            format!("{} {what}s a run", tenths(row.calls_in_runs, self.runs))
        } else {
            format!("{} of {}", figures.text(&calls(row.calls)), plural(names, what))
        }
    }

    /// Adds one line for each place, and what is outside.
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
                percent(row.total_ns, all),
                figures.time(row.total_ns),
                self.a_run(row.in_runs_ns),
                figures.count(row.operators),
                figures.count(row.parts),
                figures.count(row.calls),
                row.processor.map_or(UNKNOWN, Processor::name),
                row.who()
            );
            if row.on_cpu_inside > 0 {
                let share = percent(row.on_cpu_inside_ns, row.total_ns);
                let calls = tenths(row.on_cpu_inside, row.calls);
                line!(text, "{:18}{share} of it in operators on the CPU, {calls} per call of a part", "");
            }
            for DriverCallRow { device, processor, count, total_ns } in &row.driver_calls {
                let share = percent(*total_ns, row.total_ns);
                let calls = figures.text(&calls(*count));
                line!(
                    text,
                    "{:18}{share} of it in {calls} to the driver of {device}{}",
                    "",
                    kind(*processor)
                );
            }
        }
        // What is missing of the operators would be a part of it.
        if self.runs > 0 && !self.places.is_empty() && figures.are_complete() {
            line!(
                text,
                "  outside of operators: {} a run, {} of the runs",
                self.a_run(self.outside_operators_ns),
                percent(self.outside_operators_ns, self.runs_ns)
            );
        }
        if self.operators_outside_runs > 0 && self.runs > 0 {
            line!(
                text,
                "  not in a run that ended: {} of operators, {}",
                figures.text(&calls(self.operators_outside_runs)),
                figures.time(self.operators_outside_runs_ns)
            );
        }
        if self.crossings > 0 {
            line!(
                text,
                "  changes of place: {} a run, with {} a run between operators",
                tenths(self.crossings, self.runs),
                self.a_run(self.crossings_ns)
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
            row.line(text, all, figures);
        }
        if let Some(rest @ [_, ..]) = self.operators.get(MOST_OPERATORS..) {
            let ns = rest.iter().fold(0, |sum: u64, row| sum.saturating_add(row.total_ns()));
            let (share, more) = (percent(ns, all), count(rest.len() as u64));
            line!(text, "  {share:>6}{:>10}{:43}{more} more (see --json)", figures.time(ns), "");
        }
    }

    /// Returns a time by run; `-` without runs.
    fn a_run(&self, ns: u64) -> String {
        or_unknown(ns.checked_div(self.runs), duration_ns)
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

    /// Returns the provider, or the driver by the processor that it serves.
    fn runner(&self) -> String {
        let first = self.driver_calls.first().and_then(|row| row.processor);
        match (&self.provider, first) {
            (Some(name), _) => name.clone(),
            (None, Some(processor)) if self.driver_calls.iter().all(|row| row.processor == first) => {
                format!("the driver of the {}", processor.name())
            }
            (None, _) => "a driver".to_owned(),
        }
    }

    /// Returns the processor in words, if it is known.
    fn on(&self) -> String {
        self.processor.map_or_else(String::new, |processor| format!(" on the {}", processor.name()))
    }

    /// Returns the share of the time of operators, and the part of that which was seen on the CPU, unless that is known.
    fn share_of(&self, all: u64) -> String {
        if all == 0 {
            return String::new();
        }
        let seen = match self.on_cpu_inside_ns {
            1.. if self.processor != Some(Processor::Cpu) => {
                format!(", {} of that in operators on the CPU", percent(self.on_cpu_inside_ns, self.total_ns))
            }
            _ => String::new(),
        };
        format!(": {} of operators' time{seen}", percent(self.total_ns, all))
    }
}

impl OperatorRow {
    /// Adds its line, and those of the operators in it.
    fn line(&self, text: &mut Text, all: u64, figures: Figures) {
        let around = match self.around {
            0 => String::new(),
            number => format!(" (around others: {})", figures.count(number)),
        };
        let of_calls = |ns: Option<u64>| or_unknown(ns.filter(|_| self.calls > 0), duration_ns);
        line!(
            text,
            "  {:>6}{:>10}{:>10}{:>10}{:>10}  {:<11}{}{around}",
            percent(self.total_ns(), all),
            figures.time(self.total_ns()),
            figures.count(self.calls),
            of_calls(self.calls_ns.checked_div(self.calls)),
            of_calls(Some(self.max_ns)),
            self.processor.map_or(UNKNOWN, Processor::name),
            named(&self.name)
        );
        for inside in self.on_cpu_inside.iter().take(MOST_INSIDE) {
            let share = percent(inside.total_ns, self.calls_ns);
            line!(text, "{:61}{share} of it in {} on the CPU", "", named(&inside.name));
        }
    }
}

/// Returns the processor that a driver serves, in parentheses.
fn kind(processor: Option<Processor>) -> String {
    processor.map_or_else(String::new, |processor| format!(" ({})", processor.name()))
}

/// Returns the name of an operator; `-` for one without a name.
fn named(name: &str) -> &str {
    if name.is_empty() { UNKNOWN } else { name }
}

/// Returns a quotient with one decimal; `-` where there is nothing to divide by.
fn tenths(number: u64, by: u64) -> String {
    if by == 0 {
        return UNKNOWN.to_owned();
    }
    let quotient = number as f64 / by as f64;
    if number > 0 && quotient < 0.05 { "<0.1".to_owned() } else { format!("{quotient:.1}") }
}
