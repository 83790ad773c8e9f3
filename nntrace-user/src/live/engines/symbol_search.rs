//! Search of the symbols of a file for many patterns at once.

use std::collections::HashMap;

use memchr::memmem::Finder;

use super::{demangled_names::SymbolName, engine_map::Pattern, image::Image};
use crate::live::demangling;

/// Functions that one pattern finds at most.
const MOST_FOUND: usize = 8192;

/// Pattern, and the names that it is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    /// Pattern.
    pub(super) pattern: &'a Pattern,
    /// Names.
    pub(super) names: Names,
}

/// Kind of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// Exported symbols.
    Exported,
    /// Symbols of all tables.
    All,
    /// Symbols of all tables, demangled.
    Demangled,
}

/// Function that a pattern found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundFunction {
    /// Address of its first instruction.
    pub(super) address: u64,
    /// Name: demangled, if it is mangled.
    pub(super) shown: String,
    /// Text in the place of `{name}`.
    pub(super) captured: Option<String>,
    /// Whether its arguments may be others than the source's.
    pub(super) has_other_arguments: bool,
}

/// Pattern with what makes a quick test of a name.
struct Prepared<'a> {
    wanted: Wanted<'a>,
    finder: Finder<'a>,
}

/// Returns the functions that each pattern finds, each function once, by address.
pub(super) fn functions(image: &Image<'_>, wanted: &[Wanted<'_>]) -> Vec<Vec<FoundFunction>> {
    let mut found: Vec<Vec<FoundFunction>> = wanted.iter().map(|_| Vec::new()).collect();
    let (mut exact, mut others) = (HashMap::<&str, Vec<usize>>::new(), Vec::new());
    for (number, wanted) in wanted.iter().enumerate() {
        if wanted.pattern.is_exact() && wanted.names != Names::Demangled {
            exact.entry(wanted.pattern.needle()).or_default().push(number);
        } else {
            let needle = match wanted.names {
                Names::Demangled => wanted.pattern.identifier(),
                Names::Exported | Names::All => wanted.pattern.needle(),
            };
            others.push((number, Prepared { wanted: *wanted, finder: Finder::new(needle) }));
        }
    }
    if wanted.is_empty() {
        return found;
    }
    for symbol in image.symbols() {
        let name = SymbolName::of(symbol.name);
        if name.is_part || !image.is_code(symbol.address) {
            continue;
        }
        let mut add = |number: usize, captured: Option<&str>, demangled: Option<&str>| {
            let list: &mut Vec<FoundFunction> = &mut found[number];
            if list.len() < MOST_FOUND {
                let shown = demangled.map(str::to_owned).or_else(|| demangling::function(name.base));
                list.push(FoundFunction {
                    address: symbol.address,
                    shown: shown.unwrap_or_else(|| name.base.to_owned()),
                    captured: captured.map(str::to_owned),
                    has_other_arguments: name.has_other_arguments,
                });
            }
        };
        for &number in exact.get(name.base).into_iter().flatten() {
            if symbol.is_exported || wanted[number].names == Names::All {
                add(number, None, None);
            }
        }
        let mut demangled = None;
        for (number, Prepared { wanted, finder }) in &others {
            let is_candidate = (symbol.is_exported || wanted.names != Names::Exported)
                && finder.find(name.base.as_bytes()).is_some();
            if !is_candidate {
                continue;
            }
            if wanted.names == Names::Demangled {
                let text = demangled.get_or_insert_with(|| demangling::function(name.base));
                let text = text.as_deref().unwrap_or(name.base);
                if let Some(fits) = wanted.pattern.matches(text) {
                    add(*number, fits.captured, Some(text));
                }
            } else if let Some(fits) = wanted.pattern.matches(name.base) {
                add(*number, fits.captured, None);
            }
        }
    }
    for list in &mut found {
        // An exported function is in both tables; one of several names is known by the first of them.
        list.sort_by(|a, b| a.address.cmp(&b.address).then_with(|| a.shown.cmp(&b.shown)));
        list.dedup_by_key(|function| function.address);
    }
    found
}
