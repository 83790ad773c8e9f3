//! The page as text for people.

use super::{Cluster, Function, Page, Work};
use crate::report::{
    number_format::{count, duration_ns, energy, khz, or_unknown, percent},
    power::fit,
    terminal_text::{Text, line},
};

/// Width of the column of functions.
const NAME: usize = 28;

impl Page {
    /// Returns the page as text of some 80 columns.
    #[must_use]
    pub fn text(&self) -> Text {
        let mut text = Text::new();
        self.headline(&mut text);
        self.functions(&mut text);
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

    fn functions(&self, text: &mut Text) {
        if self.functions.is_empty() {
            return;
        }
        line!(text, "");
        line!(
            text,
            "{:<NAME$}{:>8}{:>9}{:>9}{:>9}{:>10}{:>7}",
            "where the time went",
            "count",
            "p50",
            "p99",
            "max",
            "exclusive",
            "share"
        );
        let mark = if self.is_incomplete { "~" } else { "" };
        let several = self.functions.iter().any(|row| row.pid != self.functions[0].pid);
        for row in &self.functions {
            let Function { pid, layer, phase, name, .. } = row;
            let of = if several { format!(" ({pid})") } else { String::new() };
            line!(
                text,
                "  {}{:>8}{:>9}{:>9}{:>9}{:>10}{:>7}",
                fit(&format!("{layer}_{phase} {name}{of}"), NAME - 2),
                format!("{mark}{}", count(row.count)),
                or_unknown(row.p50_ns, duration_ns),
                or_unknown(row.p99_ns, duration_ns),
                or_unknown(row.max_ns, duration_ns),
                format!("{mark}{}", duration_ns(row.exclusive_ns)),
                percent(row.exclusive_ns, self.exclusive_ns)
            );
        }
        if self.functions_left_out > 0 {
            let shown: u64 = self.functions.iter().map(|row| row.exclusive_ns).sum();
            let rest = self.exclusive_ns.saturating_sub(shown);
            line!(
                text,
                "  {:<width$}{:>10}{:>7}",
                format!("{} others", count(self.functions_left_out as u64)),
                format!("{mark}{}", duration_ns(rest)),
                percent(rest, self.exclusive_ns),
                width = NAME - 2 + 35
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
