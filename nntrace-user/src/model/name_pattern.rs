//! Patterns of names, in which `*` stands for any text and `?` for any one character.

use std::str::FromStr;

/// Pattern of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern(String);

impl NamePattern {
    /// Whether a name fits.
    #[must_use]
    pub fn fits(&self, name: &str) -> bool {
        if self.0.contains(['*', '?']) { glob(&self.0, name) } else { self.0 == name }
    }
}

impl FromStr for NamePattern {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

/// Whether `name` matches `pattern`.
pub(crate) fn glob(pattern: &str, name: &str) -> bool {
    let (mut rest, mut name) = (pattern, name);
    // Place to resume at when the text after the last `*` does not match: that star takes one more character.
    let mut star: Option<(&str, &str)> = None;
    while let Some(character) = name.chars().next() {
        let behind = &name[character.len_utf8()..];
        let mut pattern = rest.chars();
        match pattern.next() {
            Some('*') => {
                rest = pattern.as_str();
                star = Some((rest, name));
            }
            Some(first) if first == '?' || first == character => (rest, name) = (pattern.as_str(), behind),
            _ => {
                let Some((after, taken)) = star else { return false };
                let mut taken = taken.chars();
                taken.next();
                star = Some((after, taken.as_str()));
                (rest, name) = (after, taken.as_str());
            }
        }
    }
    rest.chars().all(|character| character == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        for (pattern, name, fits) in [
            ("app", "app", true),
            ("app", "apps", false),
            ("app*", "app", true),
            ("a*p", "a-long-p", true),
            ("a*p", "a-long-q", false),
            ("*bench*", "nn_benchmark", true),
            ("*a*ab", "xaaab", true),
            ("nn?", "nn1", true),
            ("nn?", "nn", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("?", "é", true),
            ("*é?*", "aéb", true),
            ("[ab]", "a", false),
        ] {
            assert_eq!(glob(pattern, name), fits, "{pattern} on {name}");
            assert_eq!(pattern.parse::<NamePattern>().unwrap().fits(name), fits, "{pattern} on {name}");
        }
    }
}
