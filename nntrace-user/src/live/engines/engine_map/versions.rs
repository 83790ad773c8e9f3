//! Versions of engines, and which of them an entry of a map is for.

use std::{cmp::Ordering, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Version of an engine: numbers with points between them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::live) struct Version {
    text: String,
    numbers: Vec<u64>,
}

impl Version {
    /// Reads the version that a text begins with, such as `1.31.1` of `1.31.1-dev`; `None` where there is none.
    pub(in crate::live) fn of(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let end = text.bytes().position(|byte| !byte.is_ascii_digit() && byte != b'.').unwrap_or(text.len());
        let text = text[..end].trim_end_matches('.');
        let numbers: Vec<u64> = text.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
        Some(Self { text: text.to_owned(), numbers })
    }

    /// Reads a version whose numbers are joined, without the century and with one digit for the last one: `2641` is 2026.4.1.
    pub(in crate::live) fn of_joined(text: &str) -> Option<Self> {
        let is_joined = text.len() >= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
        let (year, rest) = is_joined.then(|| text.split_at(2))?;
        let (minor, patch) = rest.split_at(rest.len() - 1);
        Self::of(&format!("20{year}.{minor}.{patch}"))
    }

    /// Compares with as many numbers as a requirement has; missing ones are 0.
    fn compare(&self, wanted: &[u64]) -> Ordering {
        let own = self.numbers.iter().copied().chain(std::iter::repeat(0)).take(wanted.len());
        own.cmp(wanted.iter().copied())
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Versions that an entry is for: `>=1.21`, `>=2.14, <2.17`, `1.31` for 1.31 and all 1.31.x.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::live) struct Requirement {
    text: String,
    comparisons: Vec<(Operator, Vec<u64>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    AtLeast,
    Above,
    AtMost,
    Below,
    Is,
}

const OPERATORS: [(&str, Operator); 5] = [
    (">=", Operator::AtLeast),
    ("<=", Operator::AtMost),
    (">", Operator::Above),
    ("<", Operator::Below),
    ("=", Operator::Is),
];

impl Requirement {
    /// Whether it holds for a version.
    pub(in crate::live) fn allows(&self, version: &Version) -> bool {
        self.comparisons.iter().all(|(operator, wanted)| {
            let order = version.compare(wanted);
            match operator {
                Operator::AtLeast => order.is_ge(),
                Operator::Above => order.is_gt(),
                Operator::AtMost => order.is_le(),
                Operator::Below => order.is_lt(),
                Operator::Is => order.is_eq(),
            }
        })
    }
}

impl FromStr for Requirement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let comparison = |part: &str| {
            let (operator, version) = OPERATORS
                .iter()
                .find_map(|(sign, operator)| Some((*operator, part.strip_prefix(sign)?)))
                .unwrap_or((Operator::Is, part));
            let numbers = version.trim().split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
            Some((operator, numbers))
        };
        let comparisons = text.split(',').map(|part| comparison(part.trim())).collect::<Option<_>>();
        match comparisons {
            Some(comparisons) => Ok(Self { text: text.to_owned(), comparisons }),
            None => Err(format!(
                "expected versions such as \">=1.21\", \">=2.14, <2.17\" or \"1.31\", found {text:?}"
            )),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(requirement: &str, version: &str) -> bool {
        requirement.parse::<Requirement>().unwrap().allows(&Version::of(version).unwrap())
    }

    #[test]
    fn versions_end_where_the_numbers_do() {
        let of = |text: &str| Version::of(text).map(|version| version.to_string());
        assert_eq!(of("1.31.1").as_deref(), Some("1.31.1"));
        assert_eq!(of("2026.4.1-22069-abc").as_deref(), Some("2026.4.1"));
        assert_eq!(of("v1.2.").as_deref(), Some("1.2"));
        assert_eq!(of("b5000"), None);
        let joined = |text: &str| Version::of_joined(text).map(|version| version.to_string());
        assert_eq!(joined("2641").as_deref(), Some("2026.4.1"));
        assert_eq!(joined("2500").as_deref(), Some("2025.0.0"));
        assert_eq!((joined("261"), joined("2026.4.1")), (None, None));
        assert_eq!(of(""), None);
        assert_eq!(of("99999999999999999999999"), None);
    }

    #[test]
    fn requirements_compare_the_numbers_that_they_have() {
        for (requirement, version, fits) in [
            (">=1.21", "1.21.0", true),
            (">=1.21", "1.9", false),
            (">=1.21, <1.32", "1.31.9", true),
            (">=1.21, <1.32", "1.32", false),
            ("1.31", "1.31.1", true),
            ("=1.31.0", "1.31", true),
            ("1.31", "1.30.9", false),
            (">2.14", "2.14.1", false),
            (">2.14.0", "2.14.1", true),
            ("<=2.14", "2.14.7", true),
        ] {
            assert_eq!(allows(requirement, version), fits, "{version} {requirement}");
        }
    }

    #[test]
    fn no_requirements() {
        for text in ["", ">=", "1.x", ">= 1.2,", "~1.2", "one"] {
            assert!(text.parse::<Requirement>().is_err(), "{text:?}");
        }
    }
}
