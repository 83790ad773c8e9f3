//! Comparison of names: globs for `--comm`, similarity for "did you mean".

/// Whether `name` matches `pattern`, where `*` stands for any text and `?` for any one character.
pub(super) fn glob(pattern: &str, name: &str) -> bool {
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

/// Returns the edit distance of two names: characters to insert, remove or replace.
pub(super) fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// Whether `a` is `b` but for a typing error or two: at most one changed character in four, and at most three.
pub(super) fn alike(a: &str, b: &str) -> bool {
    let allowed = (a.len().min(b.len()) / 4).min(3);
    a.len().abs_diff(b.len()) <= allowed && distance(a, b) <= allowed
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

    #[test]
    fn distances() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("same", "same"), 0);
        assert!(alike("tracing_mark_write", "trace_mark_write"));
        assert!(alike("tracing_mark_write", "tracing_markwrite"));
        assert!(!alike("tracing_mark_write", "write"));
        assert!(!alike("ab", "cd"));
    }
}
