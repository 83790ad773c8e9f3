//! The page as text for people.

use super::{Cluster, Page};
use crate::report::{
    number_format::{count, duration_ns, khz, percent},
    terminal_text::{Text, line},
};

impl Page {
    /// Returns the page as text of some 80 columns.
    #[must_use]
    pub fn text(&self) -> Text {
        let mut text = Text::new();
        line!(text, "{}: {}", self.run, duration_ns(self.headline.window_ns()));
        for line in self.headline.lines() {
            line!(text, "{line}");
        }
        if !self.functions.is_empty() {
            line!(text, "");
        }
        self.functions.table(&mut text, "where the time went", self.headline.figures());
        self.causes(&mut text);
        self.placement.summary(&mut text);
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

    fn causes(&self, text: &mut Text) {
        if !self.headline.has_work() {
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
                ns => format!(", {what} {}", percent(ns, self.headline.window_ns())),
            };
            let more = share("offline", *offline_ns) + &share("unknown", *unknown_ns);
            line!(
                text,
                "  cluster {name}, {} CPU{}: active {}{frequency}, idle {}{more}",
                cpus.len(),
                if cpus.len() == 1 { "" } else { "s" },
                percent(*active_ns, self.headline.window_ns()),
                percent(*idle_ns, self.headline.window_ns())
            );
        }
    }
}
