//! Components of work: functions by layer and phase.

use std::fmt;

use nntrace_common::layer::Tag;
use rustc_hash::FxHashMap;

use super::graph::UNMARKED;
use crate::model::near_names;

/// Names that an error lists at most.
const MOST_NAMES: usize = 8;

/// Name of work that no section covers.
pub(in crate::analyze) const UNMARKED_NAME: &str = "unmarked";

/// Function of a layer and phase.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::analyze) struct Component {
    /// Layer and phase, as written.
    pub(in crate::analyze) tag: Tag,
    /// Function.
    pub(in crate::analyze) function: String,
}

impl fmt::Display for Component {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", layer_phase(self.tag), self.function)
    }
}

/// Returns the layer and phase in short: `LD_PE`.
pub(in crate::analyze) fn layer_phase(tag: Tag) -> String {
    format!("{}_{}", tag.layer().code(), tag.phase().code())
}

/// All components of a run, by number.
#[derive(Clone, Debug, Default)]
pub(in crate::analyze) struct Components {
    all: Vec<Component>,
    /// Numbers by tag and the hash of the name.
    numbers: FxHashMap<(Tag, u64), u32>,
}

impl Components {
    /// Returns the number of a component, by the hash of its name; the text is asked for once.
    pub(in crate::analyze) fn number(&mut self, tag: Tag, name: u64, text: impl FnOnce() -> String) -> u32 {
        // The first one stands for work without a section.
        let next = self.all.len() as u32 + UNMARKED + 1;
        *self.numbers.entry((tag, name)).or_insert_with(|| {
            self.all.push(Component { tag, function: text() });
            next
        })
    }

    /// Returns how many there are, with the one of unmarked work.
    pub(in crate::analyze) fn len(&self) -> usize {
        self.all.len() + 1
    }

    /// Returns all marked components with their numbers.
    pub(in crate::analyze) fn iter(&self) -> impl Iterator<Item = (u32, &Component)> {
        (UNMARKED + 1..).zip(&self.all)
    }

    /// Returns the name of a component.
    pub(in crate::analyze) fn name(&self, number: u32) -> String {
        let marked = number.checked_sub(1).and_then(|place| self.all.get(place as usize));
        marked.map_or_else(|| UNMARKED_NAME.into(), ToString::to_string)
    }
}

/// Returns the error of a name that is not among these, with those close to it.
pub(in crate::analyze) fn not_found(name: &str, mut names: Vec<String>) -> String {
    names.sort_unstable();
    names.dedup();
    let close = near_names::near(name, names.iter().map(String::as_str));
    if close.is_empty() {
        let more = if names.len() > MOST_NAMES { " .." } else { "" };
        names.truncate(MOST_NAMES);
        format!("nothing in the run is named {name}; there is {}{more}", names.join(", "))
    } else {
        format!("nothing in the run is named {name}; close to it: {}", close.join(", "))
    }
}
