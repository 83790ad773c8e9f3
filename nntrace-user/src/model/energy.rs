//! Energy of the time in idle states and at frequencies, by a model that the user gives.
//!
//! Source: the power contract, section 3. [`EnergyModel`] is read from a file in one of two forms, and `price` applies
//! it to what CPUs and clusters did.

mod coefficients;
mod idlestat_grammar;
mod matching;
mod model;
mod over_time;
mod price;
mod shares;
mod template;
mod toml_form;
mod toml_text;

use std::path::Path;

use thiserror::Error;

pub(crate) use coefficients::Coefficient;
#[cfg(test)]
pub(crate) use model::ClusterModel;
pub(crate) use model::{Cost, EnergyUnit, PowerUnit};
pub use model::{EnergyModel, ResultUnit};
pub(crate) use over_time::visit_power;
pub(crate) use price::{Energy, EnergyParts, price};
pub(crate) use shares::{PlacePrices, Share, divide};
pub(crate) use template::{KernelPowers, KernelUnit, template};
pub(crate) use toml_text::to_toml;

/// Why a model cannot be used: what stands where, and what was expected instead.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{file}:{line}: `{text}`: {what}")]
pub struct ModelError {
    /// The file.
    pub(crate) file: String,
    /// The line, from 1.
    pub(crate) line: usize,
    /// The text of the line; empty when the file ends too early.
    pub(crate) text: String,
    /// Problem, and what was expected.
    pub(crate) what: String,
}

impl ModelError {
    /// An error in a line (from 1) of a text.
    fn at(file: &str, text: &str, line: usize, what: impl Into<String>) -> Self {
        let text = text.lines().nth(line.saturating_sub(1)).unwrap_or_default().trim();
        Self { file: file.into(), line, text: text.into(), what: what.into() }
    }
}

/// Whether a file of this name is read as our TOML form, and not as idlestat's.
#[must_use]
pub fn is_toml(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
}

/// The model in the text of a file: our TOML form when its name ends in `.toml`, otherwise that of idlestat.
///
/// # Errors
/// When a line is not what it should be.
pub fn parse(file: &str, text: &str) -> Result<EnergyModel, ModelError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if is_toml(Path::new(file)) { toml_form::parse(file, text) } else { idlestat_grammar::parse(file, text) }
}

#[cfg(test)]
mod tests;
