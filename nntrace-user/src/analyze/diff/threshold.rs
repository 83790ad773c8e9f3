//! Thresholds: conditions on figures that a job sets.

use std::str::FromStr;

use serde::Serialize;

use super::{
    comparison::{Comparison, Row},
    metric::Unit,
    values,
};
use crate::model::{
    condition::{self, Condition, ConditionError, Sign},
    name_pattern::NamePattern,
};

/// Word for the threshold that any figure is worse by the verdict.
const WORSE: &str = "worse";

const COMPARISON: &str =
    "a figure, a comparison (>, >=, < or <=) and a value, such as 'LR_PE.p99 > +5%', or the word worse";
const NAME: &str = "the name of a figure in front of the comparison, such as LR_PE.p99 or *.mean";
const VALUE: &str = "a change (+5%, -3%, +200us, +2pp) or a value (10ms, 40%, 0.5J) after the comparison";

/// Condition under which a comparison fails.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// Text, as it was given.
    text: String,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Figures { name: String, pattern: NamePattern, sign: Sign, limit: Limit },
    Worse,
}

/// Value that a figure is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// Limit of the relative change, of 1.
    Change(f64),
    /// Limit of the change of a share, of 1.
    Points(f64),
    /// Limit of the difference, in a unit.
    Difference(f64, Dimension),
    /// Limit of the value after, in a unit.
    Value(f64, Dimension),
}

/// Kind of unit that a value was given in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dimension {
    Time,
    Share,
    Energy,
    Power,
    /// No unit: counts, and energies of models without one.
    Number,
}

impl Dimension {
    const fn is_of(self, unit: Unit) -> bool {
        matches!(
            (self, unit),
            (Self::Time, Unit::Ns)
                | (Self::Share, Unit::Share)
                | (Self::Energy, Unit::Joule)
                | (Self::Power, Unit::Watt)
                | (Self::Number, Unit::Count | Unit::Relative)
        )
    }
}

/// Outcome of a threshold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Outcome {
    /// The threshold, as it was given.
    pub(super) threshold: String,
    /// Whether it holds: the comparison fails.
    pub(super) is_tripped: bool,
    /// Figures for which it holds; those that were compared, where there are none.
    pub(super) figures: Vec<String>,
}

impl FromStr for Threshold {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let whole = text.trim();
        if whole == WORSE {
            return Ok(Self { text: whole.into(), kind: Kind::Worse });
        }
        let none = || ConditionError::new(text, text.trim_end().len(), COMPARISON);
        let Condition { name, sign, value, .. } = Condition::split(text).ok_or_else(none)?;
        let parts = Condition::split(text).ok_or_else(none)?;
        if name.is_empty() {
            return Err(parts.name_error(NAME));
        }
        let limit = limit(value).ok_or_else(|| parts.value_error(VALUE))?;
        let Ok(pattern) = name.parse();
        Ok(Self { text: whole.into(), kind: Kind::Figures { name: name.into(), pattern, sign, limit } })
    }
}

/// Reads `+5%`, `-200us`, `10ms`: with a sign a change, without a value.
fn limit(text: &str) -> Option<Limit> {
    let factor = match text.as_bytes().first()? {
        b'+' => Some(1.0),
        b'-' => Some(-1.0),
        _ => None,
    };
    let amount = if factor.is_some() { &text[1..] } else { text }.trim_start();
    let unit_at = amount.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(amount.len());
    let number = amount[..unit_at].parse::<f64>().ok().filter(|number| number.is_finite());
    let (number, dimension) = match (number, amount[unit_at..].trim()) {
        (Some(number), "%") => match factor {
            Some(factor) => return Some(Limit::Change(factor * number / 100.0)),
            None => (number / 100.0, Dimension::Share),
        },
        (Some(number), "pp") => return Some(Limit::Points(factor? * number / 100.0)),
        (Some(number), "J") => (number, Dimension::Energy),
        (Some(number), "mJ") => (number / 1e3, Dimension::Energy),
        (Some(number), "W") => (number, Dimension::Power),
        (Some(number), "mW") => (number / 1e3, Dimension::Power),
        (Some(number), "") => (number, Dimension::Number),
        (Some(number), unit) if time_unit(unit).is_some() => (number * time_unit(unit)?, Dimension::Time),
        _ => (condition::duration_ns(amount)? as f64, Dimension::Time),
    };
    Some(match factor {
        Some(factor) => Limit::Difference(factor * number, dimension),
        None => Limit::Value(number, dimension),
    })
}

/// Returns the nanoseconds of a unit whose numbers may have fractions.
fn time_unit(unit: &str) -> Option<f64> {
    match unit {
        "ns" => Some(1.0),
        "us" => Some(1e3),
        "ms" => Some(1e6),
        "s" => Some(1e9),
        _ => None,
    }
}

impl Threshold {
    /// Returns the outcome, or the reason why there is none.
    pub(super) fn check(&self, comparison: &Comparison) -> Result<Outcome, String> {
        let (name, pattern, sign, limit) = match &self.kind {
            Kind::Worse => return self.check_verdict(comparison),
            Kind::Figures { name, pattern, sign, limit } => (name, pattern, *sign, *limit),
        };
        let mut rows: Vec<&Row> = comparison.metrics.iter().filter(|row| row.name == *name).collect();
        if rows.is_empty() {
            rows = comparison.metrics.iter().filter(|row| pattern.fits(&row.name)).collect();
        }
        if rows.is_empty() {
            return Err(format!("no run has a figure {name}: diff --all lists those that there are"));
        }
        let mut compared = Vec::new();
        let mut tripped = Vec::new();
        for row in rows {
            let Some((figure, limit)) = limit.figure(row)? else { continue };
            if sign.holds(figure, limit) { &mut tripped } else { &mut compared }.push(values::change_of(row));
        }
        if tripped.is_empty() && compared.is_empty() {
            return Err(format!("{name} has no value on one of the sides, or is 0 before"));
        }
        let is_tripped = !tripped.is_empty();
        let figures = if is_tripped { tripped } else { compared };
        Ok(Outcome { threshold: self.text.clone(), is_tripped, figures })
    }

    fn check_verdict(&self, comparison: &Comparison) -> Result<Outcome, String> {
        if !comparison.can_judge {
            return Err(values::why_no_verdict(comparison));
        }
        let figures = values::culprits(comparison);
        Ok(Outcome { threshold: self.text.clone(), is_tripped: !figures.is_empty(), figures })
    }
}

impl Limit {
    /// Returns the number of a row that it limits, and the limit; `None` where the row has no such number.
    fn figure(self, row: &Row) -> Result<Option<(f64, f64)>, String> {
        let fits = match self {
            Self::Change(_) => true,
            Self::Points(_) => row.unit == Unit::Share,
            Self::Difference(_, dimension) | Self::Value(_, dimension) => dimension.is_of(row.unit),
        };
        if !fits {
            let (name, unit) = (&row.name, values::unit_name(row.unit));
            return Err(format!("{name} is {unit}, and the threshold has another unit"));
        }
        let (figure, limit) = match self {
            // Nothing that comes new, or stays nothing.
            Self::Change(limit) => (row.change.or_else(|| row.change_from_nothing()), limit),
            Self::Points(limit) | Self::Difference(limit, _) => (row.difference, limit),
            Self::Value(limit, _) => (row.after.median, limit),
        };
        Ok(figure.map(|figure| (figure, limit)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (String, Sign, Limit) {
        match text.parse::<Threshold>().unwrap().kind {
            Kind::Figures { name, sign, limit, .. } => (name, sign, limit),
            Kind::Worse => panic!("{text}"),
        }
    }

    #[test]
    fn conditions_have_a_figure_a_comparison_and_a_value() {
        let figure = |name: &str, sign, limit| (name.to_owned(), sign, limit);
        let time = Dimension::Time;
        assert_eq!(parsed("LR_PE.p99 > +5%"), figure("LR_PE.p99", Sign::Over, Limit::Change(0.05)));
        assert_eq!(parsed("x<-3%"), figure("x", Sign::Under, Limit::Change(-0.03)));
        assert_eq!(parsed("x >= +1.5us"), figure("x", Sign::AtLeast, Limit::Difference(1_500.0, time)));
        assert_eq!(parsed("x<=10ms "), figure("x", Sign::AtMost, Limit::Value(1e7, time)));
        assert_eq!(parsed("x > 1s 500ms"), figure("x", Sign::Over, Limit::Value(1.5e9, time)));
        assert_eq!(parsed("c > 40%"), figure("c", Sign::Over, Limit::Value(0.4, Dimension::Share)));
        assert_eq!(parsed("c > + 2pp"), figure("c", Sign::Over, Limit::Points(0.02)));
        assert_eq!(parsed("e > 2mJ"), figure("e", Sign::Over, Limit::Value(0.002, Dimension::Energy)));
        assert_eq!(parsed("p < 250mW"), figure("p", Sign::Under, Limit::Value(0.25, Dimension::Power)));
        assert_eq!(parsed("n > -3"), figure("n", Sign::Over, Limit::Difference(-3.0, Dimension::Number)));
        assert_eq!(parsed("f<int>.mean > 1ms").0, "f<int>.mean");
        assert_eq!(" worse ".parse::<Threshold>().unwrap().kind, Kind::Worse);
    }

    #[test]
    fn what_is_no_condition_is_refused_with_the_place() {
        let place = |text: &str| {
            let error = text.parse::<Threshold>().unwrap_err();
            (error.place, error.expected)
        };
        assert_eq!(place("LR_PE.p99"), (10, COMPARISON));
        assert_eq!(place("> 5%"), (1, NAME));
        assert_eq!(place("x > "), (5, VALUE));
        for value in ["soon", "5 %%", "2pp", "+", "1.2.3ms", "-5 lightyears", "NaN", "++5%", "1e9s"] {
            assert_eq!(place(&format!("x > {value}")), (5, VALUE), "{value}");
        }
    }
}
