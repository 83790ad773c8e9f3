//! Names close to one that was mistyped.

/// Names that are suggested at most.
const MOST: usize = 5;

/// Returns the names that are close to one, the closest first: by the letters that have to be changed, or because one is a
/// part of the other. To an empty one, none is.
pub(crate) fn near<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    if name.is_empty() {
        return Vec::new();
    }
    let lower = name.to_lowercase();
    let most = (lower.chars().count() / 3).max(1);
    let mut close: Vec<(usize, &str)> = names
        .into_iter()
        .map(|other| {
            let other_lower = other.to_lowercase();
            let is_part = other_lower.contains(&lower) || lower.contains(&other_lower) && other.len() > 2;
            (if is_part { 0 } else { distance(&lower, &other_lower) }, other)
        })
        .filter(|(distance, _)| *distance <= most)
        .collect();
    close.sort_unstable();
    close.dedup();
    close.into_iter().map(|(_, name)| name).take(MOST).collect()
}

/// Returns a question for a message after the name: ` (did you mean record?)`, or nothing where no name is close.
#[must_use]
pub fn did_you_mean<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    match near(name, names)[..] {
        [] => String::new(),
        [one] => format!(" (did you mean {one}?)"),
        [ref several @ .., last] => format!(" (did you mean {} or {last}?)", several.join(", ")),
    }
}

/// Returns how many characters have to be changed, added, left out or swapped to get from one text to another.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    // The last three rows of the table.
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, character) in from.iter().enumerate() {
        let mut next = vec![line + 1; to.len() + 1];
        for (place, other) in to.iter().enumerate() {
            let changed = row[place] + usize::from(character != other);
            next[place + 1] = changed.min(row[place + 1] + 1).min(next[place] + 1);
            let is_swap = line > 0 && place > 0 && *character == to[place - 1] && from[line - 1] == *other;
            if is_swap {
                next[place + 1] = next[place + 1].min(before[place - 1] + 1);
            }
        }
        before = std::mem::replace(&mut row, next);
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_the_fewest_edits() {
        for (from, to, edits) in [
            ("", "abc", 3),
            ("abc", "abc", 0),
            ("record", "recrod", 1),
            ("kitten", "sitting", 3),
            ("ab", "ba", 1),
        ] {
            assert_eq!(distance(from, to), edits, "{from} {to}");
            assert_eq!(distance(to, from), edits, "{to} {from}");
        }
    }

    #[test]
    fn close_names_are_suggested() {
        let names = ["record", "report", "replay", "onnxruntime"];
        assert_eq!(did_you_mean("recrod", names), " (did you mean record?)");
        assert_eq!(did_you_mean("onnxrutime", names), " (did you mean onnxruntime?)");
        assert_eq!(did_you_mean("repo", ["report", "repost"]), " (did you mean report or repost?)");
        assert_eq!(did_you_mean("xyzzy", names), "");
        assert_eq!(did_you_mean("", names), "");
    }
}
