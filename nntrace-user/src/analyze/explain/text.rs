//! The page as text for people.

use super::{Cluster, Page, Work};
use crate::report::{
    incomplete_figures::Figures,
    number_format::{count, duration_ns, energy, khz, per_second, percent},
    snapshot::LanguageModelRow,
    terminal_text::{Text, line},
};

impl Page {
    /// Returns the page as text of some 80 columns.
    #[must_use]
    pub fn text(&self) -> Text {
        let mut text = Text::new();
        self.headline(&mut text);
        if !self.functions.is_empty() {
            line!(text, "");
        }
        self.functions.table(&mut text, "where the time went", Figures::new(self.is_incomplete));
        self.causes(&mut text);
        self.places(&mut text);
        line!(text, "");
        line!(text, "next");
        let widest = self.next.iter().map(|step| step.command.len()).max().unwrap_or(0);
        for step in &self.next {
            line!(text, "  {:<widest$}  {}", step.command, step.shows);
        }
        for note in &self.notes {
            line!(text, "note: {note}");
        }
        text
    }

    fn headline(&self, text: &mut Text) {
        line!(text, "{}: {}", self.run, duration_ns(self.window_ns));
        let Some(Work { function, count: number, p50_ns, p99_ns, max_ns }) = &self.work else {
            line!(text, "no marked section ended");
            return;
        };
        let rate = match self.window_ns {
            0 => String::new(),
            ns => format!(", {:.1} a second", *number as f64 * 1e9 / ns as f64),
        };
        let at_least = if self.is_incomplete { "at least " } else { "" };
        line!(
            text,
            "{function} ended {at_least}{} times{rate}: p50 {}, p99 {}, max {}",
            count(*number),
            duration_ns(*p50_ns),
            duration_ns(*p99_ns),
            duration_ns(*max_ns)
        );
        for row in &self.language_models {
            let process = match self.language_models.len() {
                1 => String::new(),
                _ => format!("{} ({}) ", row.comm, row.pid),
            };
            tokens(text, &process, row, Figures::new(self.is_incomplete));
        }
        if let Some(total) = &self.energy {
            let each = total.per_execution.map_or_else(String::new, |each| {
                format!(", {} for each execution", energy(each, total.unit))
            });
            line!(
                text,
                "energy of all CPUs and clusters {}{each} ({} to {} with what is unknown)",
                energy(total.total, total.unit),
                energy(total.total_min, total.unit),
                energy(total.total_max, total.unit)
            );
        }
    }

    fn causes(&self, text: &mut Text) {
        if self.work.is_none() {
            return;
        }
        line!(text, "");
        match (&self.why, &self.why_unknown) {
            (Some(answer), _) => *text += &answer.text(),
            (None, Some(reason)) => line!(text, "why the slowest were slow is not known: {reason}"),
            (None, None) => {}
        }
    }

    /// Where the threads and the CPUs spent the time.
    fn places(&self, text: &mut Text) {
        if self.threads.is_none() && self.clusters.is_empty() {
            return;
        }
        line!(text, "");
        line!(text, "where it ran");
        if let Some(threads) = &self.threads {
            let unknown = match threads.unknown_ns {
                0 => String::new(),
                ns => format!(", not known {}", duration_ns(ns)),
            };
            line!(
                text,
                "  {} thread{}: on CPU {}, waiting for a CPU {}, asleep {}{unknown}",
                count(threads.threads as u64),
                if threads.threads == 1 { "" } else { "s" },
                duration_ns(threads.on_cpu_ns),
                duration_ns(threads.runnable_ns),
                duration_ns(threads.asleep_ns)
            );
        }
        for cluster in &self.clusters {
            let Cluster { name, cpus, active_ns, mean_khz, idle_ns, offline_ns, unknown_ns } = cluster;
            let frequency = match mean_khz {
                Some(mean) => format!(" (requested: {} on average)", khz(*mean)),
                None => " (frequency unknown)".into(),
            };
            let share = |what: &str, ns: u64| match ns {
                0 => String::new(),
                ns => format!(", {what} {}", percent(ns, self.window_ns)),
            };
            let more = share("offline", *offline_ns) + &share("unknown", *unknown_ns);
            line!(
                text,
                "  cluster {name}, {} CPU{}: active {}{frequency}, idle {}{more}",
                cpus.len(),
                if cpus.len() == 1 { "" } else { "s" },
                percent(*active_ns, self.window_ns),
                percent(*idle_ns, self.window_ns)
            );
        }
    }
}

/// Adds what a user of a language model waits for: a line for prompts, a line for decoding.
fn tokens(text: &mut Text, process: &str, row: &LanguageModelRow, figures: Figures) {
    let time = |ns| figures.known(ns, duration_ns);
    let rate = |tokens, ns| figures.text(&per_second(tokens, ns));
    if row.prompt_batches > 0 {
        let first = &row.first_token;
        let waits = match first.count {
            0 => String::new(),
            requests => format!(
                "; time to first token p50 {}, max {} ({} request{})",
                time(first.p50_ns),
                time(first.max_ns),
                figures.count(requests),
                if requests == 1 { "" } else { "s" }
            ),
        };
        let (tokens, rate) = (figures.count(row.prompt_tokens), rate(row.prompt_tokens, row.prompt_ns));
        line!(text, "{process}prompts: {tokens} tokens, {rate} a second{waits}");
    }
    if row.decode.count > 0 {
        let between = &row.between_tokens;
        let waits = match between.count {
            0 => String::new(),
            _ => format!(
                "; between tokens p50 {}, p99 {}, max {}",
                time(between.p50_ns),
                time(between.p99_ns),
                time(between.max_ns)
            ),
        };
        let (tokens, rate) = (figures.count(row.decode.count), rate(row.decode.count, row.decode.total_ns));
        let unit = if row.decode.count == 1 { "token" } else { "tokens" };
        line!(text, "{process}decoding: {tokens} {unit}, {rate} a second{waits}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::snapshot::DurationsRow;

    #[test]
    fn what_is_not_known_of_tokens_is_left_out() {
        let waits = |count: u64| DurationsRow {
            count,
            total_ns: count * 20_000_000,
            p50_ns: (count > 0).then_some(20_000_000),
            p95_ns: (count > 0).then_some(22_000_000),
            p99_ns: (count > 0).then_some(24_000_000),
            max_ns: (count > 0).then_some(30_000_000),
        };
        let row = |prompt_batches, decoded, requests, between| LanguageModelRow {
            pid: 7,
            comm: "chat".into(),
            prompt_batches,
            prompt_tokens: 512 * prompt_batches,
            prompt_ns: 400_000_000 * prompt_batches,
            decode: waits(decoded),
            first_token: waits(requests),
            between_tokens: waits(between),
        };
        let mut text = Text::new();
        for row in [row(1, 100, 1, 100), row(2, 0, 0, 0), row(0, 1, 0, 0)] {
            tokens(&mut text, "", &row, Figures::new(false));
        }
        let expected = "\
prompts: 512 tokens, 1,280 a second; time to first token p50 20.0 ms, max 30.0 ms (1 request)
decoding: 100 tokens, 50.0 a second; between tokens p50 20.0 ms, p99 24.0 ms, max 30.0 ms
prompts: 1,024 tokens, 1,280 a second
decoding: 1 token, 50.0 a second
";
        assert_eq!(text, expected);
    }
}
