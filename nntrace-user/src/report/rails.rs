//! Table of the measured energy of power rails.

use super::{
    number_format,
    snapshot::{RailKind, RailRow, Rails, ResultUnit},
    terminal_text::{self, Text, line},
};

/// Measured energies; nothing where there is no rail.
#[must_use]
pub(super) fn table(rails: &Rails) -> Text {
    let mut text = Text::new();
    if !rails.rails.is_empty() {
        let sampled =
            rails.period_ns.map(|ns| format!(", power sampled each {}", number_format::duration_ns(ns)));
        line!(
            text,
            "measured rails{}, read in {}; they may overlap, and are in no sum",
            sampled.unwrap_or_default(),
            number_format::duration_ns(rails.reading_ns),
        );
        let width = names_width(rails);
        line!(
            text,
            "  {:<width$}  {:<8}{:>11}{:>11}{:>10}{:>10}",
            "rail",
            "by",
            "energy",
            "mean power",
            "in",
            "readings"
        );
        for rail in &rails.rails {
            let notes = notes(rail);
            line!(
                text,
                "  {:<width$}  {:<8}{:>11}{:>11}{:>10}{:>10}{notes}",
                name(rail),
                rail.kind.name(),
                joules(rail.joules()),
                watts(rail.mean_watts()),
                number_format::duration_ns(rail.known_ns()),
                number_format::count(rail.readings),
            );
        }
    }
    unreadable(&mut text, rails);
    text
}

/// Rails that there are, with the kind of their sensors.
#[must_use]
pub fn list(rails: &Rails) -> Text {
    let mut text = Text::new();
    for rail in &rails.rails {
        line!(text, "{:<width$}  {}", name(rail), rail.kind.name(), width = names_width(rails));
    }
    unreadable(&mut text, rails);
    text
}

fn unreadable(text: &mut Text, rails: &Rails) {
    for rail in &rails.unreadable {
        line!(text, "rail {} cannot be read: {}", rail.rail, rail.reason);
    }
}

fn names_width(rails: &Rails) -> usize {
    rails.rails.iter().map(|rail| name(rail).chars().count()).max().unwrap_or_default()
}

/// Name without a character that acts, so that its width is known.
fn name(rail: &RailRow) -> String {
    terminal_text::clean(&rail.path()).into_owned()
}

/// Returns an energy, which is below 0 where current flowed back: `1.25 J`.
pub(crate) fn joules(joules: f64) -> String {
    signed(joules, |joules| number_format::energy(joules, ResultUnit::Joule))
}

/// `1.25 W`, or `-` where it is not known.
pub(crate) fn watts(watts: Option<f64>) -> String {
    // The digits and prefixes of energies.
    let text = |watts| number_format::energy(watts, ResultUnit::Joule).replace('J', "W");
    watts.map_or_else(|| number_format::UNKNOWN.to_owned(), |watts| signed(watts, text))
}

/// Returns a text of a value that may be below 0.
fn signed(value: f64, text: impl Fn(f64) -> String) -> String {
    if value < 0.0 { format!("-{}", text(-value)) } else { text(value) }
}

/// Returns what people should know of a rail's figures, after two spaces; nothing where all is well.
pub(crate) fn notes(rail: &RailRow) -> String {
    let mut notes = String::new();
    let mut add =
        |note: String| notes = format!("{notes}{}{note}", if notes.is_empty() { "  " } else { ", " });
    if rail.wraps > 0 {
        add(format!("wraps: {}", number_format::count(rail.wraps)));
    }
    if rail.gaps > 0 {
        let (gaps, ns) = (number_format::count(rail.gaps), number_format::duration_ns(rail.gap_ns));
        add(match rail.kind {
            RailKind::Counter => format!("resets: {gaps}, without {ns}"),
            RailKind::Sampled => format!("gaps: {gaps}, without {ns}"),
        });
    }
    if rail.failed > 0 {
        let reason = rail.failure.as_deref().unwrap_or(number_format::UNKNOWN);
        add(format!("{} failed, the last by {reason}", number_format::plural(rail.failed, "reading")));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::snapshot::{RailSource, UnreadableRail};

    fn rail(name: &str, kind: RailKind, energy_nj: i64) -> RailRow {
        RailRow {
            source: RailSource::Hwmon,
            chip: "ina226".into(),
            name: name.into(),
            kind,
            energy_nj,
            begin_ns: 1_000_000_000,
            end_ns: 3_000_000_000,
            readings: 21,
            wraps: 0,
            gaps: 0,
            gap_ns: 0,
            failed: 0,
            failure: None,
        }
    }

    #[test]
    fn energies_and_what_is_wrong_with_them() {
        let failed = RailRow {
            gaps: 2,
            gap_ns: 500_000_000,
            failed: 3,
            failure: Some("power1_input: No such device".into()),
            ..rail("VDD_GPU\u{1b}[2J", RailKind::Sampled, -750_000_000)
        };
        let wrapped = RailRow { wraps: 1, ..rail("package", RailKind::Counter, 5_000_000_000) };
        let once = RailRow { end_ns: 1_000_000_000, readings: 1, ..rail("once", RailKind::Sampled, 0) };
        let rails = Rails {
            period_ns: Some(100_000_000),
            reading_ns: 12_000_000,
            rails: vec![rail("VDD_CPU", RailKind::Sampled, 3_000_000_000), failed, wrapped, once],
            unreadable: vec![UnreadableRail {
                rail: "powercap/intel-rapl/psys".into(),
                reason: "energy_uj: only root may read it".into(),
            }],
        };
        insta::assert_snapshot!(table(&rails));
        assert_eq!(table(&Rails::default()), "");
        assert_eq!(list(&rails).lines().count(), 5);
    }
}
