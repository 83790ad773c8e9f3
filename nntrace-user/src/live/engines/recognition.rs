//! Engines in a file, by what it contains.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{
    catalog::Catalog,
    engine_map::{ClassName, EngineMap, Evidence},
    examined_file::Library,
    symbol_search::{self, FoundFunction, Names, Wanted},
};

/// Engine, or a part of one, that a file contains.
#[derive(Clone, Debug)]
pub(in crate::live) struct Recognized<'catalog> {
    /// Its map.
    pub(in crate::live) map: &'catalog EngineMap,
    /// Signs that were found.
    pub(in crate::live) signs: Vec<String>,
    /// How sure it is.
    pub(in crate::live) sureness: Sureness,
}

/// How sure an engine is recognized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::live) enum Sureness {
    /// By names that others could have as well: patterns.
    Likely,
    /// By a name of its own, or by its classes.
    Certain,
}

impl fmt::Display for Sureness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Likely => "likely",
            Self::Certain => "certain",
        })
    }
}

/// Places of an evidence's patterns in the list of all that is wanted.
struct Search<'catalog> {
    map: &'catalog EngineMap,
    evidence: &'catalog Evidence,
    /// Numbers of exports, symbols and absent ones, one after the other.
    first: usize,
}

/// Returns the engines of a catalog that a file contains, in the catalog's order.
pub(in crate::live) fn engines_in<'catalog>(
    library: &Library<'_, '_>,
    catalog: &'catalog Catalog,
) -> Vec<Recognized<'catalog>> {
    let (mut wanted, mut searches) = (Vec::new(), Vec::new());
    for map in catalog.maps() {
        for evidence in &map.evidence {
            if evidence.file.as_ref().is_some_and(|name| name.matches(library.file_name()).is_none()) {
                continue;
            }
            searches.push(Search { map, evidence, first: wanted.len() });
            let exported = evidence.exports.iter().map(|pattern| Wanted { pattern, names: Names::Exported });
            let others = evidence.symbols.iter().chain(&evidence.absent);
            wanted.extend(exported.chain(others.map(|pattern| Wanted { pattern, names: Names::All })));
        }
    }
    let found = symbol_search::functions(library.image(), &wanted);
    let mut recognized: Vec<Recognized<'_>> = Vec::new();
    for search in searches {
        // One sign suffices.
        if recognized.last().is_some_and(|last| std::ptr::eq(last.map, search.map)) {
            continue;
        }
        if let Some((signs, sureness)) = search.signs(library, &wanted, &found) {
            recognized.push(Recognized { map: search.map, signs, sureness });
        }
    }
    recognized
}

impl Search<'_> {
    /// Returns the signs, if all are there.
    fn signs(
        &self,
        library: &Library<'_, '_>,
        wanted: &[Wanted<'_>],
        found: &[Vec<FoundFunction>],
    ) -> Option<(Vec<String>, Sureness)> {
        let Evidence { exports, symbols, classes, absent, .. } = self.evidence;
        let present = exports.len() + symbols.len();
        let of = |number: usize| (wanted[self.first + number].pattern, &found[self.first + number]);
        if (present..present + absent.len()).any(|number| !of(number).1.is_empty()) {
            return None;
        }
        let mut signs = Vec::new();
        let mut sureness = Sureness::Likely;
        for number in 0..present {
            let (pattern, functions) = of(number);
            let function = functions.first()?;
            let kind = if number < exports.len() { "exports" } else { "has the symbol" };
            signs.push(format!("{kind} {}", function.shown));
            if pattern.is_exact() {
                sureness = Sureness::Certain;
            }
        }
        if classes.iter().any(|class| library.classes(class).is_empty()) {
            return None;
        }
        if !classes.is_empty() {
            if classes.iter().any(|class| class.mangled.is_exact()) {
                sureness = Sureness::Certain;
            }
            signs.extend(classes.iter().map(|class: &ClassName| format!("has the class {class}")));
        }
        Some((signs, sureness))
    }
}
