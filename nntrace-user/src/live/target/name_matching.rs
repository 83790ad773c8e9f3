//! Similarity of names, for "did you mean".

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
