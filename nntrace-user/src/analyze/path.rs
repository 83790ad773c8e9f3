//! Paths of functions, `capture>infer>show`: how long work takes from the begin of the first to the end of the last, over the
//! hand-overs between their threads and processes.
//!
//! From a section the path goes on to what begins in it on its thread, and to the work that is handed over in it, whatever
//! functions lie between two of the path. The earliest section of the next function that is reached so is the next one.

mod collect;
mod find;
mod report;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

pub use collect::PathCollector;
pub use report::PathReport;

/// Most functions of a path.
const MOST_FUNCTIONS: usize = 32;

/// Names of the functions of a path, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path(Vec<String>);

impl std::str::FromStr for Path {
    type Err = String;

    /// Reads `A>B>C`; blanks around names are none of them. A `>` after a `<` of the same name, and one after a backslash, is
    /// part of the name.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let names = split(text);
        if names.len() < 2 || names.iter().any(String::is_empty) {
            return Err(
                "a path is two functions or more with a > between them, such as 'capture>infer>show'".into(),
            );
        }
        if names.len() > MOST_FUNCTIONS {
            return Err(format!("{} functions, and a path has {MOST_FUNCTIONS} at most", names.len()));
        }
        Ok(Self(names))
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.0.iter().map(|name| escaped(name)).collect();
        formatter.write_str(&names.join(">"))
    }
}

/// Characters that a backslash makes part of a name.
const SPECIAL: [char; 3] = ['<', '>', '\\'];

/// Splits a path into the names of its functions.
fn split(text: &str) -> Vec<String> {
    let (mut names, mut name, mut open) = (Vec::new(), String::new(), 0_usize);
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\\' if chars.peek().is_some_and(|next| SPECIAL.contains(next)) => name.extend(chars.next()),
            '>' if open == 0 => names.push(std::mem::take(&mut name)),
            _ => {
                open = match char {
                    '<' => open + 1,
                    '>' => open - 1,
                    _ => open,
                };
                name.push(char);
            }
        }
    }
    names.push(name);
    names.iter().map(|name| name.trim().to_owned()).collect()
}

/// Returns a name as a path may have it.
fn escaped(name: &str) -> Cow<'_, str> {
    if split(name) == [name] && split(&format!("{name}>x")) == [name, "x"] {
        return name.into();
    }
    let parts =
        name.chars().flat_map(|char| SPECIAL.contains(&char).then_some('\\').into_iter().chain([char]));
    parts.collect::<String>().into()
}
