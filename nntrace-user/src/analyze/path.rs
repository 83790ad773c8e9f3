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

pub use collect::PathCollector;
pub use report::PathReport;

/// Most functions of a path.
const MOST_FUNCTIONS: usize = 32;

/// Names of the functions of a path, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path(Vec<String>);

impl std::str::FromStr for Path {
    type Err = String;

    /// Reads `A>B>C`; blanks around names are none of them.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let names: Vec<String> = text.split('>').map(|name| name.trim().to_owned()).collect();
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
        formatter.write_str(&self.0.join(">"))
    }
}
