//! Patterns of names, as users write them.

/// Whether `name` matches `pattern`, where `*` stands for any text and `?` for any one character.
pub(crate) fn glob(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Place to resume at when the text after the last `*` does not match: that star takes one more character.
    let mut star = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(&c) if c == '?' || c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((at, taken)) = star else { return false };
                star = Some((at, taken + 1));
                (p, n) = (at + 1, taken + 1);
            }
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
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
            ("?", "é", true),
            ("[ab]", "a", false),
        ] {
            assert_eq!(glob(pattern, name), fits, "{pattern} on {name}");
        }
    }
}
