//! The split of hand-overs as a table, CSV and JSON.

use nntrace_common::layer::{Layer, Phase};
use serde::Serialize;

use super::{
    number_format::{self, UNKNOWN, or_unknown},
    power::{CsvError, to_csv},
    snapshot::{HandOverEvidence, HandOverPair, HandOverPart, HandOverSplit},
    terminal_text::{Text, clean, line},
};
use crate::model::plurals::one_or_many;

/// Row of the CSV: a part of hand-overs.
#[derive(Clone, Debug, Serialize)]
struct PartRow<'a> {
    from: Option<Layer>,
    to: Option<Layer>,
    phase: Option<Phase>,
    name: Option<String>,
    evidence: HandOverEvidence,
    hand_overs: u64,
    hb_violations: u64,
    gated: u64,
    part: &'a str,
    count: Option<u64>,
    sum_ns: Option<u128>,
    min_ns: Option<u64>,
    p50_ns: Option<u64>,
    p95_ns: Option<u64>,
    max_ns: Option<u64>,
    first_ns: Option<u64>,
    rest_p50_ns: Option<u64>,
    rest_max_ns: Option<u64>,
}

/// Words for the parts of a hand-over, in the order of [`HandOverPair::parts`].
const PARTS: [&str; 6] = ["propagation", "setup", "head", "execution", "tail", "latency"];

impl HandOverPair {
    /// Returns the parts with their names: propagation, setup, head, execution, tail and latency.
    #[must_use]
    pub fn parts(&self) -> [(&'static str, Option<&HandOverPart>); 6] {
        let parts = [
            self.propagation.as_ref(),
            self.setup.as_ref(),
            self.head.as_ref(),
            self.execution.as_ref(),
            self.tail.as_ref(),
            self.latency.as_ref(),
        ];
        std::array::from_fn(|part| (PARTS[part], parts[part]))
    }

    /// Returns the two layers: `IPC > Driver`.
    #[must_use]
    pub fn layers(&self) -> String {
        let name = |layer: Option<Layer>| layer.map_or(UNKNOWN, Layer::name);
        format!("{} > {}", name(self.from), name(self.to))
    }
}

impl HandOverSplit {
    /// Returns the table, for people.
    #[must_use]
    pub fn text(&self) -> Text {
        let mut text = Text::new();
        if self.pairs.is_empty() {
            line!(text, "no work was handed over that marks show");
            return text;
        }
        for pair in &self.pairs {
            rows(&mut text, pair);
        }
        self.totals(&mut text);
        text
    }

    /// Adds how long all hand-overs took together, and what is wrong with some.
    fn totals(&self, text: &mut Text) {
        let parts = PARTS.iter().enumerate().map(|(part, name)| {
            let sums = self.pairs.iter().filter_map(|pair| pair.parts()[part].1).map(|part| part.sum_ns);
            format!("{name} {}", sums.reduce(|sum, ns| sum + ns).map_or_else(|| "-".into(), time))
        });
        let parts: Vec<String> = parts.collect();
        line!(text, "{}: {}", number_format::plural(self.count, "hand-over"), parts.join(", "));
        let wrong = [
            (
                self.hb_violations,
                ["was taken before it was given", "were taken before they were given"],
                "(hb_violation): clocks or marks are wrong",
            ),
            (
                self.unserved,
                ["call has", "calls have"],
                "no server that was seen: name its process too, or record the whole system",
            ),
            (
                self.uncalled,
                ["call has", "calls have"],
                "no client that was seen: name its process too, or record the whole system",
            ),
        ];
        for (count, [one, many], what) in wrong.into_iter().filter(|(count, ..)| *count > 0) {
            line!(text, "{} {} {what}", number_format::count(count), one_or_many(count, one, many));
        }
    }

    /// Returns the parts of all pairs as CSV.
    ///
    /// # Errors
    /// When a row cannot be written.
    pub fn csv(&self) -> Result<String, CsvError> {
        let rows = self.pairs.iter().flat_map(|pair| {
            pair.parts().into_iter().map(move |(name, part)| PartRow {
                from: pair.from,
                to: pair.to,
                phase: pair.phase,
                // A row is a line, and no character in it acts.
                name: pair.name.as_deref().map(|name| clean(name).into_owned()),
                evidence: pair.evidence,
                hand_overs: pair.count,
                hb_violations: pair.hb_violations,
                gated: pair.gated,
                part: name,
                count: part.map(|part| part.count),
                sum_ns: part.map(|part| part.sum_ns),
                min_ns: part.map(|part| part.min_ns),
                p50_ns: part.map(|part| part.p50_ns),
                p95_ns: part.map(|part| part.p95_ns),
                max_ns: part.map(|part| part.max_ns),
                first_ns: part.and_then(|part| part.first_ns),
                rest_p50_ns: part.and_then(|part| part.rest_p50_ns),
                rest_max_ns: part.and_then(|part| part.rest_max_ns),
            })
        });
        to_csv(rows)
    }
}

/// Adds the rows of a pair: a headline, and a line for each part.
fn rows(text: &mut Text, pair: &HandOverPair) {
    let mut about = vec![number_format::count(pair.count)];
    if pair.gated > 0 {
        about.push(format!("{} gated", number_format::count(pair.gated)));
    }
    if pair.hb_violations > 0 {
        about.push(format!("{} hb_violation", number_format::count(pair.hb_violations)));
    }
    about.push(pair.evidence.words().to_owned());
    line!(
        text,
        "{}, {}: {} ({})",
        pair.layers(),
        pair.phase.map_or(UNKNOWN, Phase::name),
        pair.name.as_deref().unwrap_or(UNKNOWN),
        about.join(", "),
    );
    line!(
        text,
        "  {:<12}{:>7}{:>9}{:>9}{:>9}{:>9}{:>9}{:>7}{:>9}{:>10}",
        "part",
        "count",
        "min",
        "p50",
        "p95",
        "max",
        "sum",
        "share",
        "first",
        "rest p50"
    );
    let latency = pair.latency.as_ref();
    for (name, part) in pair.parts() {
        let of = |value: fn(&HandOverPart) -> u64| or_unknown(part.map(value), number_format::duration_ns);
        // Of parts that not every latency has, the share would be one of others.
        let share = part.zip(latency).filter(|(part, latency)| part.count == latency.count);
        let share = share.map_or_else(
            || UNKNOWN.to_owned(),
            |(part, latency)| number_format::percent(part.sum(), latency.sum()),
        );
        line!(
            text,
            "  {name:<12}{:>7}{:>9}{:>9}{:>9}{:>9}{:>9}{share:>7}{:>9}{:>10}",
            or_unknown(part.map(|part| part.count), number_format::count),
            of(|part| part.min_ns),
            of(|part| part.p50_ns),
            of(|part| part.p95_ns),
            of(|part| part.max_ns),
            part.map_or_else(|| UNKNOWN.to_owned(), |part| time(part.sum_ns)),
            or_unknown(part.and_then(|part| part.first_ns), number_format::duration_ns),
            or_unknown(part.and_then(|part| part.rest_p50_ns), number_format::duration_ns),
        );
    }
}

impl HandOverPart {
    /// Returns the sum, ns; one that is longer than 584 years as that.
    pub(crate) fn sum(&self) -> u64 {
        whole(self.sum_ns)
    }
}

/// Returns a sum that is longer than 584 years as that.
fn whole(ns: u128) -> u64 {
    u64::try_from(ns).unwrap_or(u64::MAX)
}

fn time(ns: u128) -> String {
    number_format::duration_ns(whole(ns))
}

impl HandOverEvidence {
    /// Returns it in words.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Handle => "by handles",
            Self::Binder => "by binder transactions",
            Self::Interface => "by the marks of both sides",
            Self::Asynchronous => "by begin and end",
            Self::WakeUp => "by wake-ups, inferred",
        }
    }
}
