//! A fit as text: comments before the model.

use std::fmt;

use super::{Fit, FittedInterval, Found, LeftOut};
use crate::{
    model::{energy::PowerUnit, plurals::counted},
    report::{
        number_format,
        rails::watts,
        terminal_text::{Text, line},
    },
};

/// Residuals that are listed.
const LARGEST: usize = 5;

impl Fit {
    /// Returns how well the fit is, and where its powers come from: comments in TOML.
    #[must_use]
    pub fn comments(&self) -> Text {
        let mut text = Text::new();
        let lengths = self.intervals.iter().map(|interval| interval.length_ns);
        let mean_length = lengths.sum::<u64>() / (self.intervals.len() as u64).max(1);
        let left_out = match self.left_out {
            LeftOut { short: 0, gaps: 0, unknown: 0 } => String::new(),
            left_out => format!("; left out: {left_out}"),
        };
        line!(text, "# Fitted to the rail {} ({}).", self.rail.path(), self.rail.kind.name());
        line!(
            text,
            "# {} of {} in the mean{left_out}",
            counted(self.intervals.len() as u64, "interval"),
            number_format::duration_ns(mean_length)
        );
        let measured = self.intervals.iter().map(|interval| interval.measured_watts);
        let mean = measured.sum::<f64>() / self.intervals.len() as f64;
        let r_squared = self.r_squared.map_or_else(
            || "R2 not defined, as the power did not vary".to_owned(),
            |share| format!("R2 {share:.4}"),
        );
        line!(
            text,
            "# {r_squared}; residuals {} (root mean square), of {} in the mean",
            watts(Some(self.rms_watts)),
            watts(Some(mean))
        );
        self.powers(&mut text);
        self.largest(&mut text);
        text
    }

    fn powers(&self, text: &mut Text) {
        let unit = self.model.unit.map_or("", PowerUnit::symbol);
        let names: Vec<String> = self.powers.iter().map(|power| self.model.name_of(power.place)).collect();
        let width = names.iter().map(|name| name.chars().count()).max().unwrap_or_default();
        line!(text, "#");
        line!(text, "# {:<width$}{:>14}{:>14}", "power", format!("was {unit}"), format!("is {unit}"));
        for (power, name) in self.powers.iter().zip(&names) {
            let (was, is) = (self.start.power(power.place), self.model.power(power.place));
            let note = match &power.found {
                Found::Value(Some(error)) => format!("+- {}", three_digits(*error)),
                Found::Value(None) => "exact: no more intervals than powers".into(),
                Found::Zero => "fits best at 0".into(),
                Found::NotMet => "kept: not met".into(),
                Found::Kept(others) if others.is_empty() => "kept: not determined".into(),
                Found::Kept(others) => {
                    let others: Vec<String> = others.iter().map(|&place| self.model.name_of(place)).collect();
                    format!("kept: the intervals do not tell it from {}", others.join(", "))
                }
            };
            line!(text, "# {name:<width$}{was:>14}{is:>14}  {note}");
        }
    }

    fn largest(&self, text: &mut Text) {
        let mut largest: Vec<&FittedInterval> = self.intervals.iter().collect();
        largest.sort_by(|a, b| b.residual_watts().abs().total_cmp(&a.residual_watts().abs()));
        line!(text, "#");
        line!(text, "# largest residuals");
        for interval in largest.into_iter().take(LARGEST) {
            line!(
                text,
                "# from {:>10.3} s: measured {:>8}, fitted {:>8}, residual {:>9}",
                interval.begin_ns as f64 * 1e-9,
                watts(Some(interval.measured_watts)),
                watts(Some(interval.fitted_watts)),
                watts(Some(interval.residual_watts())),
            );
        }
    }

    /// Returns all intervals as CSV.
    #[must_use]
    pub fn residuals(&self) -> Text {
        let mut text = Text::new();
        line!(text, "begin_ns,length_ns,measured_w,fitted_w,residual_w");
        for interval in &self.intervals {
            let FittedInterval { begin_ns, length_ns, measured_watts, fitted_watts } = interval;
            let residual = interval.residual_watts();
            line!(text, "{begin_ns},{length_ns},{measured_watts:.6},{fitted_watts:.6},{residual:.6}");
        }
        text
    }
}

fn three_digits(value: f64) -> String {
    format!("{value:.2e}").parse::<f64>().unwrap_or(value).to_string()
}

impl fmt::Display for LeftOut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reasons = [
            (self.short, "too short"),
            (self.gaps, "with a gap of the rail"),
            (self.unknown, "with unknown or unpriced time"),
        ];
        let reasons = reasons.into_iter().filter(|(count, _)| *count > 0);
        let reasons: Vec<String> = reasons.map(|(count, reason)| format!("{count} {reason}")).collect();
        formatter.write_str(if reasons.is_empty() { "none left out" } else { "" })?;
        formatter.write_str(&reasons.join(", "))
    }
}
