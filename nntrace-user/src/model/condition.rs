//! Conditions as people write them: `NAME > VALUE`.

use std::{error, fmt};

/// Parts of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Condition<'a> {
    /// Text that it is part of.
    text: &'a str,
    /// Name in front of the sign, without the spaces around it; empty if there is none.
    pub(crate) name: &'a str,
    /// Comparison.
    pub(crate) sign: Sign,
    /// Value after the sign, without the spaces around it; empty if there is none.
    pub(crate) value: &'a str,
    /// Place of the sign, bytes.
    sign_at: usize,
}

/// Comparison of a figure with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    /// `>`
    Over,
    /// `>=`
    AtLeast,
    /// `<`
    Under,
    /// `<=`
    AtMost,
}

impl Sign {
    /// Whether a figure has this relation to a value.
    pub(crate) fn holds(self, figure: f64, value: f64) -> bool {
        match self {
            Self::Over => figure > value,
            Self::AtLeast => figure >= value,
            Self::Under => figure < value,
            Self::AtMost => figure <= value,
        }
    }
}

impl<'a> Condition<'a> {
    /// Splits a text at its last sign: names of templates have some, too. `None` without a sign.
    pub(crate) fn split(text: &'a str) -> Option<Self> {
        let sign_at = text.rfind(['>', '<'])?;
        let (is_over, behind) = (text[sign_at..].starts_with('>'), &text[sign_at + 1..]);
        let (is_inclusive, value) = behind.strip_prefix('=').map_or((false, behind), |rest| (true, rest));
        let sign = match (is_over, is_inclusive) {
            (true, false) => Sign::Over,
            (true, true) => Sign::AtLeast,
            (false, false) => Sign::Under,
            (false, true) => Sign::AtMost,
        };
        Some(Self { text, name: text[..sign_at].trim(), sign, value: value.trim(), sign_at })
    }

    /// Returns the error of a name that is none.
    pub(crate) fn name_error(&self, expected: &'static str) -> ConditionError {
        ConditionError::new(self.text, self.sign_at, expected)
    }

    /// Returns the error of a value that is none.
    pub(crate) fn value_error(&self, expected: &'static str) -> ConditionError {
        let at = self.text.len() - self.text[self.sign_at + 1..].trim_start_matches('=').trim_start().len();
        ConditionError::new(self.text, at, expected)
    }
}

/// Reads a duration such as `20ms`, ns.
pub(crate) fn duration_ns(text: &str) -> Option<u64> {
    let duration = humantime::parse_duration(text).ok()?;
    u64::try_from(duration.as_nanos()).ok()
}

/// Reason why a text is no condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConditionError {
    /// Number of the character, from 1 on.
    pub(crate) place: usize,
    /// Words for what belongs there.
    pub(crate) expected: &'static str,
}

impl ConditionError {
    /// Creates the error at a place of a text, bytes.
    pub(crate) fn new(text: &str, at: usize, expected: &'static str) -> Self {
        Self { place: text[..at].chars().count() + 1, expected }
    }
}

impl fmt::Display for ConditionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "at character {}: expected {}", self.place, self.expected)
    }
}

impl error::Error for ConditionError {}
