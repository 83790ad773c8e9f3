//! Figures and changes as people read them.

use super::{
    comparison::{Comparison, Row, Verdict},
    metric::{Per, Unit},
};
use crate::report::{
    number_format::{self, UNKNOWN},
    rails,
    snapshot::ResultUnit,
};

/// Returns a value with its unit.
pub(super) fn value(value: Option<f64>, unit: Unit) -> String {
    let Some(value) = value else { return UNKNOWN.to_owned() };
    match unit {
        Unit::Ns => number_format::duration_ns(whole(value)),
        Unit::Count if value < 1000.0 && value.fract() > 0.0 => format!("{value:.2}"),
        Unit::Count => number_format::count(whole(value)),
        Unit::Share => format!("{:.2}%", value * 100.0),
        Unit::Joule => rails::joules(value),
        Unit::Watt => rails::watts(Some(value)),
        Unit::Relative => number_format::energy(value, ResultUnit::Relative),
    }
}

#[expect(clippy::cast_sign_loss, reason = "figures are not negative, and a cast takes what is for 0")]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// Returns the change of a row: of its share in points, else in percent.
pub(super) fn change(row: &Row) -> String {
    match (row.unit, row.difference, row.change) {
        (Unit::Share, Some(difference), _) => points(difference),
        (_, Some(_), Some(change)) => percent(change),
        (_, Some(difference), None) if difference > 0.0 => "new".into(),
        (_, Some(_), None) => "0".into(),
        (_, None, _) => UNKNOWN.into(),
    }
}

/// Returns the interval of the change; `None` where there is none.
pub(super) fn interval(row: &Row) -> Option<String> {
    let shown = if row.unit == Unit::Share { points } else { percent };
    row.interval.map(|interval| format!("{} to {}", shown(interval.low), shown(interval.high)))
}

fn percent(change: f64) -> String {
    let percent = change * 100.0;
    if percent.abs() >= 9_999.5 {
        ">9999%".into()
    } else if percent.abs() >= 99.95 {
        format!("{percent:+.0}%")
    } else {
        format!("{percent:+.1}%")
    }
}

fn points(difference: f64) -> String {
    format!("{:+.2}pp", difference * 100.0)
}

/// Returns a figure with its change: `LR_PE.p99 +7.1% (+5.0% to +8.9%), 12.3 ms to 13.2 ms`.
pub(super) fn change_of(row: &Row) -> String {
    let interval = interval(row).map(|interval| format!(" ({interval})")).unwrap_or_default();
    let (before, after) = (value(row.before.median, row.unit), value(row.after.median, row.unit));
    format!("{} {}{interval}, {before} to {after}", row.name, change(row))
}

/// Returns what costs more: a line each, and one for the phases that do so only by what is nested in them.
pub(super) fn culprits(comparison: &Comparison) -> Vec<String> {
    let (nested, own): (Vec<_>, Vec<_>) =
        comparison.culprits().into_iter().partition(|(_, is_by_nested)| *is_by_nested);
    let mut lines: Vec<String> = own.into_iter().map(|(row, _)| change_of(row)).collect();
    if !nested.is_empty() {
        let names: Vec<String> =
            nested.into_iter().map(|(row, _)| format!("{} {}", row.name, change(row))).collect();
        lines.push(format!("{}, by what is nested", names.join(", ")));
    }
    lines
}

/// Returns the unit of figures.
pub(super) const fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Ns => "a time",
        Unit::Count => "a count",
        Unit::Share => "a share",
        Unit::Joule => "an energy in J",
        Unit::Watt => "a power in W",
        Unit::Relative => "an energy without a unit",
    }
}

/// Returns the words for a verdict; empty where nothing is judged.
pub(super) fn verdict(comparison: &Comparison, row: &Row) -> &'static str {
    match row.verdict {
        Verdict::Worse if comparison.is_by_nested(row) => "worse, by what is nested in it",
        Verdict::Better if comparison.is_by_nested(row) => "better, by what is nested in it",
        Verdict::Worse => "worse",
        Verdict::Better => "better",
        Verdict::More => "more",
        Verdict::Less => "less",
        // Of all of them, it is said once.
        Verdict::NoneFound | Verdict::TooFewRuns if !comparison.can_judge => "",
        Verdict::NoneFound => "no change found",
        Verdict::TooFewRuns => "too few runs",
        Verdict::Incomplete => "incomplete",
        Verdict::NotJudged => "",
    }
}

/// Returns the reason why there is no verdict.
pub(super) fn why_no_verdict(comparison: &Comparison) -> String {
    let needed = match comparison.needed_runs {
        Some(runs) => format!("{runs} runs of each side would do"),
        None => "no number of runs would do".into(),
    };
    match (comparison.before.len(), comparison.after.len()) {
        (1, 1) => format!("one run of each side is not enough for a verdict: {needed}"),
        (before, after) => {
            format!("{before} and {after} runs are too few for a verdict on this many figures: {needed}")
        }
    }
}

/// Returns the verdict on everything.
pub(super) fn summary(comparison: &Comparison) -> String {
    if !comparison.can_judge {
        return why_no_verdict(comparison);
    }
    let count = |verdict| comparison.metrics.iter().filter(|row| row.verdict == verdict).count();
    let (worse, better) = (count(Verdict::Worse), count(Verdict::Better));
    let different = count(Verdict::More) + count(Verdict::Less);
    if worse + better + different == 0 {
        return "no change found".into();
    }
    format!("figures: {worse} worse, {better} better, {different} different")
}

/// Returns how the figures were made.
pub(super) fn method(comparison: &Comparison) -> [String; 2] {
    let per = match comparison.per {
        Per::Execution => "for each execution",
        Per::Second => "for each second",
        Per::Run => "of a whole run",
    };
    let alarm = hundred(1.0 - comparison.confidence);
    [
        format!("count, total, exclusive and energy are {per}; mean and exclusive_mean of one section"),
        format!(
            "change of the median with its {}% interval (bootstrap); d: Cliff's delta; verdict: Mann-Whitney, {alarm}% for \
             any false alarm (Holm)",
            hundred(comparison.confidence)
        ),
    ]
}

/// Returns a share in percent, without digits that are noise.
fn hundred(share: f64) -> f64 {
    (share * 1e6).round() / 1e4
}
